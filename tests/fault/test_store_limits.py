"""Limits that a real kernel enforces, and calls that do less than they were asked to."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import shutil
from pathlib import Path

import pytest
from pypto_store import ArtifactStore, Failure, Hit, Miss, Private, Published
from pypto_store.testing import GENERATED, PAYLOAD, READY, payload_builder, sample_key, snapshot

pytestmark = pytest.mark.usefixtures("no_sync")

NEW_NAMESPACES = 0x10000000 | 0x00020000  # CLONE_NEWUSER, CLONE_NEWNS
REMOUNT = 32
UNAVAILABLE = 77

_libc = ctypes.CDLL(None, use_errno=True)


def request(root, spec=READY, payload=PAYLOAD):
    store = ArtifactStore(root, lock_timeout=5)
    return store.get_or_build(
        sample_key(), spec, payload_builder(payload), private_parent=root.parent / "private"
    )


def descriptors():
    return {
        os.readlink(f"/proc/self/fd/{name}")
        for name in os.listdir("/proc/self/fd")
        if os.path.lexists(f"/proc/self/fd/{name}")
    }


def check_private(result, payload=PAYLOAD):
    assert isinstance(result, Private), result
    assert result.failure in (Failure.STORAGE, Failure.LOCK)
    assert result.reason
    assert {path: (result.path / path).read_bytes() for path in payload} == payload


def check_root(root):
    """Nothing partial is visible, whatever has gone wrong."""
    for spec in (GENERATED, READY):
        assert isinstance(ArtifactStore(root).lookup(sample_key(), spec), (Hit, Miss))


# -- descriptors


def test_too_few_descriptors_at_every_level(tmp_path, child):
    """The limit of open files grows by one until a publication fits."""
    # More files than are kept open at a time, so that the limit also strikes between them.
    many = {**PAYLOAD, **{f"many/{number}": b"%d" % number for number in range(70)}}
    ready = tmp_path / "ready"
    request(ready / "root", GENERATED)

    def climb():
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        for failures, number in enumerate(range(3, 200)):
            base = tmp_path / f"limit-{number}"
            shutil.copytree(ready, base)
            before = descriptors()
            built = []

            def build(directory, hard=hard, built=built):
                # A builder of its own needs descriptors that are none of the store's business.
                limit = resource.getrlimit(resource.RLIMIT_NOFILE)
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
                payload_builder(many)(directory)
                resource.setrlimit(resource.RLIMIT_NOFILE, limit)
                built.append(directory)

            store = ArtifactStore(base / "root", lock_timeout=5)
            resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
            try:
                result = store.get_or_build(
                    sample_key(), READY, build, private_parent=base / "private"
                )
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            store._lease.drop()
            assert descriptors() == before, descriptors() - before
            assert len(built) == 1
            check_root(base / "root")
            if isinstance(result, Published):
                assert failures > 2
                return 0
            check_private(result, many)
        return 1

    assert child(climb).wait() == 0


# -- space


def in_own_namespace(action):
    """Run `action` where this process may mount; UNAVAILABLE where the machine forbids that."""
    uid, gid = os.getuid(), os.getgid()
    if _libc.unshare(NEW_NAMESPACES) != 0:
        return UNAVAILABLE
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"0 {uid} 1"),
        ("gid_map", f"0 {gid} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text)
    return action()


def mount_tmpfs(place, options, flags=0):
    status = _libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", flags, options.encode())
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(place))


@pytest.mark.parametrize("limit", ["size={}k", "nr_inodes={}"])
def test_a_file_system_that_is_full_at_every_level(tmp_path, child, limit):
    """A file system of its own grows a step at a time until a publication fits."""

    def grow():
        for failures, step in enumerate(range(1, 60)):
            base = tmp_path / f"level-{step}"
            disk = base / "disk"
            disk.mkdir(parents=True)
            mount_tmpfs(disk, limit.format(step * (4 if "size" in limit else 1)))
            result = ArtifactStore(disk / "root", lock_timeout=5).get_or_build(
                sample_key(), READY, payload_builder(), private_parent=base / "private"
            )
            check_root(disk / "root")
            if isinstance(result, Published):
                # What a full disk costs is sharing: the index may be incomplete, never wrong.
                assert failures > 5
                return 0
            check_private(result)
            assert result.failure in (Failure.STORAGE, Failure.LOCK)
            assert not [path for path in snapshot(disk) if ".tmp." in path]
            mount_tmpfs(disk, "size=10m,nr_inodes=1000", REMOUNT)
            assert isinstance(request(disk / "root"), Published)
        return 1

    status = child(lambda: in_own_namespace(grow)).wait()
    if status == UNAVAILABLE:
        pytest.skip("this machine gives no user namespaces, so no file system can be mounted")
    assert status == 0


def test_a_file_size_limit_is_a_storage_error(tmp_path, child):
    """EFBIG: the kernel refuses to write a file beyond the process's limit."""
    large = {**PAYLOAD, "large": bytes(200_000)}

    def limited():
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

        def build(directory):
            payload_builder(large)(directory)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))

        store = ArtifactStore(tmp_path / "root", lock_timeout=5)
        result = store.get_or_build(sample_key(), READY, build, private_parent=tmp_path / "private")
        check_private(result, large)
        check_root(tmp_path / "root")
        return 0

    assert child(limited).wait() == 0
    assert isinstance(request(tmp_path / "root", payload=large), Published)


# -- less than was asked for


def test_short_reads_and_writes_change_nothing(tmp_path, monkeypatch):
    write, read, readv = os.write, os.read, os.readv

    def short_readv(descriptor, vector):
        (buffer,) = vector
        return readv(descriptor, [buffer[:11]])

    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:13]))
    monkeypatch.setattr(os, "read", lambda descriptor, size: read(descriptor, min(size, 11)))
    monkeypatch.setattr(os, "readv", short_readv)
    payload = {**PAYLOAD, "large": os.urandom(3000)}
    root = tmp_path / "root"
    assert isinstance(request(root, GENERATED, payload), Published)
    assert isinstance(request(root, READY, payload), Published)
    store = ArtifactStore(root)
    hit = store.lookup(sample_key(), READY)
    assert isinstance(hit, Hit)
    assert {path: hit.entry.read(path) for path in payload} == payload
    assert isinstance(store.lookup_generated(sample_key()), Hit)
    assert store.read_hint(sample_key()).data == payload["kernel_config.json"]
    assert isinstance(store.discover_ready(sample_key(), lambda _: READY), Hit)
    hit.entry.materialize(tmp_path / "out")
    assert {path: (tmp_path / "out" / path).read_bytes() for path in payload} == payload


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EINTR])
def test_a_close_that_reports_an_error_has_closed(tmp_path, monkeypatch, child, code):
    """A file system may say at last that a write failed; the descriptor is gone all the same."""
    close = os.close
    base = tmp_path / "rehearsal"

    class Closing:
        def __init__(self, place, target=-1):
            self.place, self.target, self.seen = str(place), target, 0

        def __call__(self, descriptor):
            concerned = os.readlink(f"/proc/self/fd/{descriptor}").startswith(self.place)
            close(descriptor)
            if concerned:
                self.seen += 1
                if self.seen - 1 == self.target:
                    raise OSError(code, os.strerror(code))

    def attempt(base, target=-1):
        closing = Closing(base, target)
        store = ArtifactStore(base / "root", lock_timeout=5)
        with monkeypatch.context() as patch:
            patch.setattr(os, "close", closing)
            result = store.get_or_build(
                sample_key(), READY, payload_builder(), private_parent=base / "private"
            )
        store._lease.drop()
        return result, closing.seen

    request(base / "root", GENERATED)
    result, count = attempt(base)
    assert isinstance(result, Published)
    assert count > 20

    def all_in_turn():
        for target in range(count):
            base = tmp_path / f"{target}"
            request(base / "root", GENERATED)
            before = descriptors()
            result, _ = attempt(base, target)
            assert descriptors() == before, (target, descriptors() - before)
            found = ArtifactStore(base / "root").lookup(sample_key(), READY)
            assert isinstance(found, (Hit, Miss)), target
            # Whoever is told that it is published finds it, and whoever is not does not.
            assert isinstance(result, (Hit, Published)) == isinstance(found, Hit), (target, result)
            if isinstance(result, Private):
                check_private(result)
            assert isinstance(request(base / "root"), (Hit, Published))
        return 0

    assert child(all_in_turn).wait() == 0
