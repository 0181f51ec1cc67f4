from __future__ import annotations

import os

import pytest
from pypto_store import ArtifactStore, Hit, StorageError
from pypto_store.layout import MARKER, Layout, UnknownLayout, make_directories, resolve
from pypto_store.testing import GENERATED, READY, payload_builder, sample_key


def test_places_are_pinned():
    layout, key = Layout("/r"), sample_key()
    base = f"/r/artifacts/v1/{key.environment}/{key.digest}"
    assert layout.slot(key, GENERATED) == f"{base}/generated"
    assert layout.slot(key, READY) == f"{base}/ready/{READY.digest}"
    assert layout.key_lock(key) == f"/r/locks/{key.digest}.lock"
    assert layout.store_lock == "/r/locks/store.lock"
    assert layout.blob("ab" * 32, executable=False) == "/r/cas/ab/" + "ab" * 32
    assert layout.blob("ab" * 32, executable=True) == "/r/cas/ab/" + "ab" * 32 + ".x"
    assert layout.second_blob("ab" * 32, executable=False) == "/r/cas/ab/" + "ab" * 32 + ".2"
    assert layout.second_blob("ab" * 32, executable=True) == "/r/cas/ab/" + "ab" * 32 + ".x.2"
    assert layout.marker == "/r/STORE"


def test_unmarked_and_absent_roots_resolve_to_themselves(tmp_path):
    assert resolve(str(tmp_path / "absent")) == (Layout(str(tmp_path / "absent")), False)
    assert resolve(str(tmp_path)) == (Layout(str(tmp_path)), False)


def test_publication_marks_the_root(tmp_path):
    store = ArtifactStore(tmp_path / "root")
    store.get_or_build(sample_key(), READY, payload_builder(), private_parent=tmp_path / "p")
    assert (tmp_path / "root/STORE").read_bytes() == MARKER
    assert resolve(str(tmp_path / "root"))[1] is True


def test_linked_marker_stands_for_the_root_of_its_target(tmp_path):
    real = ArtifactStore(tmp_path / "real")
    real.get_or_build(sample_key(), READY, payload_builder(), private_parent=tmp_path / "p")
    tree = tmp_path / "runfiles"
    tree.mkdir()
    (tmp_path / "hop").symlink_to(tmp_path / "real/STORE")
    (tree / "STORE").symlink_to(tmp_path / "hop")
    hit = ArtifactStore(tree, readonly=True).lookup(sample_key(), READY)
    assert isinstance(hit, Hit)
    assert hit.entry.path.is_relative_to(tmp_path / "real")
    assert [path.name for path in tree.iterdir()] == ["STORE"]


@pytest.mark.parametrize("marker", [b"", b"pypto-store 2\n", b"pypto-store 1", b"x" * 300])
def test_root_of_another_layout_is_a_storage_error(tmp_path, marker):
    (tmp_path / "STORE").write_bytes(marker)
    with pytest.raises(UnknownLayout, match="use another root"):
        resolve(str(tmp_path))
    store = ArtifactStore(tmp_path)
    assert isinstance(store.lookup(sample_key(), READY), StorageError)
    assert isinstance(store.read_hint(sample_key()), StorageError)
    assert isinstance(store.discover_ready(sample_key(), lambda _: READY), StorageError)


def test_dangling_marker_is_a_storage_error(tmp_path):
    (tmp_path / "STORE").symlink_to(tmp_path / "gone")
    assert isinstance(ArtifactStore(tmp_path).lookup(sample_key(), READY), StorageError)


def test_relative_root_is_taken_from_the_directory_of_its_birth(tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    store = ArtifactStore("root")
    monkeypatch.chdir(tmp_path / "two")
    store.get_or_build(sample_key(), READY, payload_builder(), private_parent=tmp_path / "p")
    assert (tmp_path / "one/root/STORE").exists()
    assert not (tmp_path / "two/root").exists()


def test_made_directories_are_private_and_reported_outermost_first(tmp_path):
    previous = os.umask(0)
    try:
        created = make_directories(str(tmp_path / "a/b"))
    finally:
        os.umask(previous)
    assert created == [str(tmp_path / "a"), str(tmp_path / "a/b")]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert make_directories(str(tmp_path / "a/b")) == []
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        make_directories(str(tmp_path / "file"))
