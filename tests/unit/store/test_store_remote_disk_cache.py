"""A directory laid out as Bazel's disk cache, and what may be wrong with one."""

from __future__ import annotations

import errno
import os
from contextlib import closing

import pytest
from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import (
    ENTRY_LIMIT,
    BlobDigest,
    RemoteProtocolError,
    RemoteRefused,
    RemoteUnavailable,
    source_of,
)
from pypto_store.remote.engines import open_engine

BLOB = BlobDigest.of(b"abc")


@pytest.fixture
def root(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def engine(root):
    with closing(open_engine(RemoteConfig(root.as_uri()))) as engine:
        yield engine


def place(root, kind, digest=BLOB):
    path = root / kind / digest.sha256.hex[:2] / digest.sha256.hex
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_files_stand_where_bazel_looks_for_them(root, engine):
    engine.blobs.put(BLOB, source_of(b"abc"))
    engine.entries.put(BLOB, b"entry")
    files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    name = BLOB.sha256.hex
    assert files == {f"cas/{name[:2]}/{name}", f"ac/{name[:2]}/{name}"}
    assert place(root, "cas").read_bytes() == b"abc" and place(root, "ac").read_bytes() == b"entry"


def test_asking_makes_nothing(root, engine):
    assert engine.blobs.get(BLOB) is None and engine.entries.get(BLOB) is None
    assert engine.blobs.find_missing([BLOB]) == {BLOB}
    assert not root.exists()


def test_the_umask_says_who_may_read(root, engine):
    before = os.umask(0o027)
    try:
        engine.blobs.put(BLOB, source_of(b"abc"))
    finally:
        os.umask(before)
    assert place(root, "cas").stat().st_mode & 0o777 == 0o640


def test_what_is_read_is_not_old_except_for_readers(root, engine):
    engine.blobs.put(BLOB, source_of(b"abc"))
    path = place(root, "cas")
    os.utime(path, (1, 1))
    reader = open_engine(RemoteConfig(root.as_uri(), readonly=True))
    reader.blobs.get(BLOB).close()
    assert path.stat().st_mtime == 1
    engine.blobs.get(BLOB).close()
    assert path.stat().st_mtime > 1


def test_a_blob_of_another_size_is_missing_and_replaced(root, engine):
    place(root, "cas").write_bytes(b"ab")
    assert engine.blobs.find_missing([BLOB]) == {BLOB}
    engine.blobs.put(BLOB, source_of(b"abc"))
    assert engine.blobs.find_missing([BLOB]) == frozenset()


def test_a_blob_that_goes_away_while_it_is_read_is_read(root, engine):
    engine.blobs.put(BLOB, source_of(b"abc"))
    with closing(engine.blobs.get(BLOB)) as stream:
        place(root, "cas").unlink()
        assert stream.read(9) == b"abc"


def test_a_huge_entry_is_refused(root, engine):
    path = place(root, "ac")
    path.touch()
    os.truncate(path, ENTRY_LIMIT)
    assert len(engine.entries.get(BLOB)) == ENTRY_LIMIT
    os.truncate(path, 1 << 40)
    with pytest.raises(RemoteProtocolError, match=f"more than {ENTRY_LIMIT}"):
        engine.entries.get(BLOB)


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        os.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(__file__),
    ],
)
def test_what_is_no_file_is_not_read(root, engine, make):
    for kind in ("cas", "ac"):
        make(place(root, kind))
    assert engine.blobs.find_missing([BLOB]) == {BLOB}
    for read in (engine.blobs.get, engine.entries.get):
        with pytest.raises(RemoteProtocolError, match="disk cache of Bazel"):
            read(BLOB)


def test_a_place_that_is_taken_is_reported_and_nothing_is_left(root, engine):
    (place(root, "cas") / "inside").mkdir(parents=True)
    with pytest.raises(RemoteProtocolError):
        engine.blobs.put(BLOB, source_of(b"abc"))
    assert list((root / "tmp").iterdir()) == []


def test_a_root_that_is_a_file_is_no_cache(root, engine):
    root.write_bytes(b"")
    for step in (
        lambda: engine.blobs.get(BLOB),
        lambda: engine.blobs.put(BLOB, source_of(b"abc")),
        lambda: engine.blobs.find_missing([BLOB]),
    ):
        with pytest.raises(RemoteProtocolError, match=f"{root.as_uri()}: "):
            step()


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (errno.ENOSPC, RemoteUnavailable),
        (errno.EIO, RemoteUnavailable),
        (errno.EACCES, RemoteRefused),
        (errno.EROFS, RemoteRefused),
    ],
)
def test_errors_of_the_system_are_faults(root, engine, monkeypatch, number, fault):
    def fail(_descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(fault, match=os.strerror(number)) as caught:
        engine.blobs.put(BLOB, source_of(b"abc"))
    assert caught.value.operation == f"put blob {BLOB}"
    assert list((root / "tmp").iterdir()) == []
    assert engine.blobs.find_missing([BLOB]) == {BLOB}


def test_a_directory_whose_name_is_not_utf_8_is_the_one_that_the_url_says(tmp_path):
    directory = os.path.join(os.fsencode(tmp_path), b"\xe9t\xe9")
    with closing(open_engine(RemoteConfig(f"{tmp_path.as_uri()}/%E9t%E9"))) as engine:
        engine.blobs.put(BLOB, source_of(b"abc"))
        assert os.listdir(directory + b"/cas") == [BLOB.sha256.hex[:2].encode()]
        assert engine.blobs.get_many([BLOB]) == {BLOB: b"abc"}
        os.rename(directory, directory + b".gone")
        with open(directory, "wb"):
            pass
        with pytest.raises(RemoteProtocolError, match="Not a directory") as caught:
            engine.blobs.put(BLOB, source_of(b"abc"))
        assert str(caught.value).encode()
