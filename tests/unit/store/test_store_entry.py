from __future__ import annotations

import os

import pytest
from pypto_store import ArtifactStore, EntryChanged, Hit
from pypto_store.testing import READY, payload_builder, sample_key

LARGE = os.urandom(300_000)
PAYLOAD = {"kernel_config.json": b"{}", "large.bin": LARGE, "sub/x": b"x"}


@pytest.fixture
def entry(tmp_path):
    store = ArtifactStore(tmp_path / "root")
    store.get_or_build(sample_key(), READY, payload_builder(PAYLOAD), private_parent=tmp_path / "p")
    hit = store.lookup(sample_key(), READY)
    assert isinstance(hit, Hit)
    return hit.entry


def test_small_files_come_from_memory_and_large_ones_from_disk(entry):
    assert {path: entry.read(path) for path in PAYLOAD} == PAYLOAD
    for path in PAYLOAD:
        (entry.path / path).unlink()
    assert entry.read("kernel_config.json") == b"{}"
    with pytest.raises(FileNotFoundError):
        entry.read("large.bin")


def test_unknown_path_is_a_key_error(entry):
    with pytest.raises(KeyError):
        entry.read("nothing")
    with pytest.raises(KeyError):
        entry.read("artifact_manifest.json")


def test_changed_file_is_not_returned(entry):
    with (entry.path / "large.bin").open("r+b") as file:
        file.write(b"!")
    with pytest.raises(EntryChanged, match=r"large\.bin"):
        entry.read("large.bin")


def test_a_file_is_verified_on_disk_even_if_it_is_kept_in_memory(entry):
    for record in entry.manifest.files:
        entry.verify(record.path)
        with (entry.path / record.path).open("ab") as file:
            file.write(b"!")
        with pytest.raises(EntryChanged):
            entry.verify(record.path)


def test_failed_materialize_leaves_no_file(entry, tmp_path):
    with (entry.path / "large.bin").open("r+b") as file:
        file.write(b"!")
    with pytest.raises(EntryChanged):
        entry.materialize(tmp_path / "out")
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_materialize_overwrites_nothing(entry, tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    (target / "large.bin").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        entry.materialize(target)
    assert {path.name: path.read_bytes() for path in target.iterdir() if path.is_file()} == {
        "large.bin": b"mine"
    }


def test_fifo_in_place_of_a_file_does_not_block(entry):
    (entry.path / "large.bin").unlink()
    os.mkfifo(entry.path / "large.bin")
    with pytest.raises(EntryChanged):
        entry.read("large.bin")
