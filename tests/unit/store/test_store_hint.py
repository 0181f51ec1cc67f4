"""The hint: one file of GENERATED, believed only if the manifest agrees."""

from __future__ import annotations

import os
import sys

import pytest
from pypto_store import ArtifactStore, Hint, Invalid, Miss, StorageError
from pypto_store.testing import GENERATED, HINT, READY, payload_builder, sample_key, snapshot

_recording: list[str] | None = None


def _record(event, detail):
    if _recording is not None and event == "open":
        _recording.append(os.path.basename(str(detail[0])))


sys.addaudithook(_record)


@pytest.fixture
def store(tmp_path):
    return ArtifactStore(tmp_path / "root", lock_timeout=10)


@pytest.fixture
def slot(store, tmp_path):
    result = store.get_or_build(
        sample_key(), GENERATED, payload_builder(), private_parent=tmp_path / "p"
    )
    return result.entry.path


@pytest.mark.conforms("cache.39")
@pytest.mark.parametrize("position", range(len(HINT)))
@pytest.mark.parametrize("bit", [0, 5])
def test_a_hint_of_other_bytes_is_invalid(store, slot, position, bit):
    data = bytearray(HINT)
    data[position] ^= 1 << bit
    (slot / "kernel_config.json").write_bytes(data)
    before = snapshot(slot)
    found = store.read_hint(sample_key())
    assert isinstance(found, Invalid)
    assert found.path == str(slot)
    assert snapshot(slot) == before


@pytest.mark.conforms("cache.39")
def test_nothing_but_the_manifest_and_the_hint_is_opened(store, slot):
    global _recording
    store.read_hint(sample_key())  # the root's marker is read once
    _recording = opened = []
    try:
        found = store.read_hint(sample_key())
    finally:
        _recording = None
    assert found == Hint(HINT)
    assert set(opened) == {"generated", "artifact_manifest.json", "kernel_config.json"}


@pytest.mark.parametrize("size", [0, 1, len(HINT) - 1, len(HINT) + 1, 5 << 20])
def test_a_hint_of_another_size_is_invalid(store, slot, size):
    os.truncate(slot / "kernel_config.json", size)
    assert isinstance(store.read_hint(sample_key()), Invalid)


def test_a_hint_of_another_key_or_state_is_invalid(store, slot, tmp_path):
    os.rename(slot, tmp_path / "aside")
    assert store.read_hint(sample_key()) == Miss()
    ready = store.get_or_build(
        sample_key(), READY, payload_builder(), private_parent=tmp_path / "p"
    ).entry.path
    os.rename(ready, slot)
    assert isinstance(store.read_hint(sample_key()), Invalid)
    os.rename(slot, tmp_path / "ready")
    other = store.get_or_build(
        sample_key("two"), GENERATED, payload_builder(), private_parent=tmp_path / "p"
    ).entry.path
    os.rename(other, slot)
    assert isinstance(store.read_hint(sample_key()), Invalid)


def test_a_root_that_cannot_be_read_is_a_storage_error(store, slot, monkeypatch):
    open_file = os.open

    def fail(path, *more, **options):
        if str(path) == str(slot):
            raise OSError(5, "Input/output error", path)
        return open_file(path, *more, **options)

    monkeypatch.setattr(os, "open", fail)
    assert isinstance(store.read_hint(sample_key()), StorageError)
