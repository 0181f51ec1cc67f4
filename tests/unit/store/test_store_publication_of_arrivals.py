"""What arrived from a remote becomes the entry's files itself, where it can."""

from __future__ import annotations

import errno
import os
import stat

import pytest
from pypto_store import ArtifactStore, Hit, linux
from pypto_store.layout import Layout
from pypto_store.publication import publish
from pypto_store.staging import UnfitPayload
from pypto_store.testing import EXECUTABLES, PAYLOAD, READY, payload_builder, sample_key, snapshot

KEY = sample_key()


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


@pytest.fixture
def manifest(tmp_path):
    """That of an entry with the usual payload, published elsewhere."""
    store = ArtifactStore(tmp_path / "far")
    made = store.get_or_build(KEY, READY, payload_builder(), private_parent=tmp_path / "p")
    return made.entry.manifest


@pytest.fixture
def arrival(tmp_path):
    """A directory with that payload, as a fetch leaves it."""
    directory = tmp_path / "arrival"
    directory.mkdir()
    payload_builder()(directory)
    return directory


def put(root, manifest, arrival):
    return publish(Layout(str(root)), KEY, READY, str(arrival), expected=manifest)


def slot(root):
    found = ArtifactStore(root).lookup(KEY, READY)
    assert isinstance(found, Hit)
    return found.entry.directory


def inodes(directory):
    return {path: os.stat(f"{directory}/{path}").st_ino for path in PAYLOAD}


def test_its_files_are_those_that_arrived(root, manifest, arrival):
    arrived = inodes(arrival)
    for path in PAYLOAD:
        os.chmod(arrival / path, 0o755 if path in EXECUTABLES else 0o644)
    put(root, manifest, arrival)
    assert inodes(slot(root)) == arrived
    for path in PAYLOAD:
        status = os.stat(f"{slot(root)}/{path}")
        assert stat.S_IMODE(status.st_mode) == (0o700 if path in EXECUTABLES else 0o600)
        # Here, in the index, and where it arrived.
        assert status.st_nlink == 3
    again = ArtifactStore(root).lookup(KEY, READY)
    assert isinstance(again, Hit) and again.entry.manifest == manifest


def test_they_are_durable_before_they_are_visible(root, manifest, arrival, monkeypatch):
    arrived = set(inodes(arrival).values())
    synced = set()
    rename, fsync = linux.rename_new, os.fsync

    def watched_fsync(descriptor):
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def watched_rename(source, target):
        assert not target.endswith(READY.digest.hex) or arrived <= synced
        rename(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(linux, "rename_new", watched_rename)
    put(root, manifest, arrival)
    assert arrived <= synced


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EMLINK, errno.EPERM])
def test_where_they_cannot_be_linked_they_are_copied(root, manifest, arrival, monkeypatch, code):
    link = os.link

    def refuse(source, target, **more):
        if str(source).startswith(str(arrival)):
            raise OSError(code, os.strerror(code))
        link(source, target, **more)

    monkeypatch.setattr(os, "link", refuse)
    put(root, manifest, arrival)
    assert set(inodes(slot(root)).values()).isdisjoint(inodes(arrival).values())


def test_what_has_another_name_is_copied(root, manifest, arrival, tmp_path):
    name = min(PAYLOAD)
    os.link(arrival / name, tmp_path / "somebody's")
    put(root, manifest, arrival)
    there, arrived = inodes(slot(root)), inodes(arrival)
    assert [path for path in PAYLOAD if there[path] != arrived[path]] == [name]


def test_a_root_that_a_group_shares_gets_files_of_its_own(root, manifest, arrival):
    root.mkdir()
    root.chmod(0o2770)
    put(root, manifest, arrival)
    assert set(inodes(slot(root)).values()).isdisjoint(inodes(arrival).values())
    assert all(os.stat(f"{slot(root)}/{path}").st_mode & 0o040 for path in PAYLOAD)


@pytest.mark.parametrize("damage", ["other bytes", "fewer bytes", "a link", "mode", "gone", "more"])
def test_what_is_not_what_it_should_be_is_no_entry(root, manifest, arrival, damage, tmp_path):
    name = min(path for path in PAYLOAD if PAYLOAD[path] and path not in EXECUTABLES)
    place = arrival / name
    data = place.read_bytes()
    if damage == "other bytes":
        place.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    elif damage == "fewer bytes":
        place.write_bytes(data[:-1])
    elif damage == "mode":
        place.chmod(0o700)
    elif damage == "more":
        (arrival / "more").write_bytes(b"x")
    else:
        place.unlink()
        if damage == "a link":
            (tmp_path / "elsewhere").write_bytes(data)
            place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnfitPayload):
        put(root, manifest, arrival)
    assert not [path for path in snapshot(root) if "/ready/" in path or "payload" in path]


def test_many_files_are_not_all_open_at_once(root, tmp_path):
    payload = {f"part{number}": b"%d" % number for number in range(200)} | PAYLOAD
    far = ArtifactStore(tmp_path / "far").get_or_build(
        KEY, READY, payload_builder(payload), private_parent=tmp_path / "p"
    )
    arrival = tmp_path / "arrival"
    arrival.mkdir()
    payload_builder(payload)(arrival)
    most = 0
    scan = os.link

    def counting(source, target, **more):
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))
        scan(source, target, **more)

    before = len(os.listdir("/proc/self/fd"))
    os.link = counting
    try:
        put(root, far.entry.manifest, arrival)
    finally:
        os.link = scan
    assert most < before + 80
    assert len(os.listdir("/proc/self/fd")) <= before
