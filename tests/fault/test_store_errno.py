"""Every system call the store makes fails in turn: the outcome is typed, the result right."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from contextlib import contextmanager

import pytest
from pypto_store import (
    ArtifactStore,
    Failure,
    Hint,
    Hit,
    Invalid,
    Miss,
    Private,
    Published,
    StorageError,
)
from pypto_store import linux as linux_calls
from pypto_store.testing import GENERATED, PAYLOAD, READY, payload_builder, sample_key, snapshot

WRITING = (
    (os, "open"), (os, "read"), (os, "readv"), (os, "write"), (os, "fsync"),
    (os, "mkdir"), (os, "link"), (os, "unlink"), (os, "listdir"), (os, "scandir"),
    (os, "lstat"), (os, "stat"), (os, "fstat"), (os, "rmdir"),
    (fcntl, "flock"), (linux_calls, "rename_new"),
)  # fmt: skip
READING = tuple(call for call in WRITING if call[1] in ("open", "read", "readv", "listdir",
                                                        "scandir", "fstat"))  # fmt: skip


pytestmark = pytest.mark.usefixtures("no_sync")
CODES = (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO, errno.EMFILE, errno.ESTALE)
STRIDE = len(CODES)


class Saboteur:
    """Makes one call that concerns a root fail, or only counts them."""

    def __init__(self, root, code=0, target=-1):
        self.root = str(root)
        self.code = code
        self.target = target
        self.seen = 0
        self.struck = ""

    def concerns(self, place, dir_fd=None):
        if isinstance(place, int):
            return os.readlink(f"/proc/self/fd/{place}").startswith(self.root)
        if dir_fd is not None:
            return self.concerns(dir_fd)
        return os.fspath(place).startswith(self.root)

    def wrap(self, name, call):
        def wrapped(place, *arguments, **more):
            if self.concerns(place, more.get("dir_fd")):
                self.seen += 1
                if self.seen - 1 == self.target:
                    self.struck = name
                    raise OSError(self.code, os.strerror(self.code), str(place))
            return call(place, *arguments, **more)

        return wrapped

    @contextmanager
    def at_work(self, calls):
        with pytest.MonkeyPatch.context() as patch:
            for module, name in calls:
                patch.setattr(module, name, self.wrap(name, getattr(module, name)))
            yield self


def request(root, spec=READY, calls=None):
    return ArtifactStore(root, lock_timeout=5).get_or_build(
        sample_key(), spec, payload_builder(calls=calls), private_parent=root.parent / "private"
    )


def prepare(root):
    """A GENERATED entry of the key, and another key whose blobs can be linked."""
    request(root, GENERATED)
    ArtifactStore(root).get_or_build(
        sample_key("other"), READY, payload_builder(), private_parent=root.parent / "private"
    )


@pytest.mark.parametrize("start", ["nothing", "some entries"])
@pytest.mark.parametrize("code", CODES)
def test_publication_with_one_failing_call(tmp_path, start, code):
    template = tmp_path / "template" / "root"
    if start == "some entries":
        prepare(template)

    def fresh(name):
        root = tmp_path / name / "root"
        root.parent.mkdir()
        if template.exists():
            shutil.copytree(template, root)
        return root

    root = fresh("rehearsal")
    with Saboteur(root).at_work(WRITING) as rehearsal:
        assert isinstance(request(root), Published)
    assert rehearsal.seen > 60
    outcomes = set()
    # Each errno strikes every sixth call, the second start with them in another order, so that
    # every call fails in two ways.
    order = CODES if start == "nothing" else CODES[::-1]
    for target in range(order.index(code), rehearsal.seen, STRIDE):
        root = fresh(f"{target}")
        with Saboteur(root, code, target).at_work(WRITING) as saboteur:
            result = request(root)
        told = (target, saboteur.struck, result)
        outcomes.add(type(result))
        if isinstance(result, Private):
            assert result.failure in (Failure.STORAGE, Failure.LOCK), told
            assert result.reason, told
            built = {path: (result.path / path).read_bytes() for path in PAYLOAD}
        else:
            built = {path: result.entry.read(path) for path in PAYLOAD}
        assert built == PAYLOAD, told
        healed = ArtifactStore(root).lookup(sample_key(), READY)
        assert isinstance(healed, (Hit, Miss)), told
        assert isinstance(result, Private) or isinstance(healed, Hit), told
        calls = []
        again = request(root, calls=calls)
        assert isinstance(again, (Hit, Published)), told
        assert len(calls) <= 1
        if calls:
            assert not [path for path in snapshot(root) if ".tmp." in path], told
        shutil.rmtree(root.parent)
    assert outcomes == {Private, Published}


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ESTALE])
def test_reading_with_one_failing_call_is_a_storage_error(tmp_path, code):
    root = tmp_path / "root"
    request(root, GENERATED)
    request(root, READY)
    before = snapshot(root)
    operations = {
        "lookup": lambda store: store.lookup(sample_key(), READY),
        "generated": lambda store: store.lookup_generated(sample_key()),
        "hint": lambda store: store.read_hint(sample_key()),
        "discovery": lambda store: store.discover_ready(sample_key(), lambda _: READY),
    }
    for name, operation in operations.items():
        with Saboteur(root).at_work(READING) as rehearsal:
            assert isinstance(operation(ArtifactStore(root)), (Hit, Hint))
        for target in range(rehearsal.seen):
            with Saboteur(root, code, target).at_work(READING) as saboteur:
                found = operation(ArtifactStore(root))
            assert isinstance(found, StorageError), (name, saboteur.struck, found)
            assert not isinstance(found, Invalid)
    assert snapshot(root) == before


@pytest.mark.conforms("cache.54")
def test_storage_that_refuses_everything_still_gives_a_result(tmp_path):
    root = tmp_path / "root"

    class Refusing(Saboteur):
        def wrap(self, name, call):
            def wrapped(place, *arguments, **more):
                if self.concerns(place, more.get("dir_fd")):
                    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(place))
                return call(place, *arguments, **more)

            return wrapped

    with Refusing(root).at_work(WRITING):
        result = request(root)
    assert isinstance(result, Private)
    assert result.failure is Failure.STORAGE
    assert not root.exists()


def test_file_in_place_of_the_root(tmp_path):
    root = tmp_path / "root"
    root.write_bytes(b"")
    result = request(root)
    assert isinstance(result, Private)
    assert result.failure in (Failure.STORAGE, Failure.LOCK)
    assert root.read_bytes() == b""


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_file_system_without_locks_degrades_to_private_builds(tmp_path, monkeypatch, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    result = request(tmp_path / "root")
    assert isinstance(result, Private)
    assert result.failure is Failure.LOCK
