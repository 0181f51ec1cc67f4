"""Everything that can be wrong with the tree of an entry."""

from __future__ import annotations

import os
import shutil
import socket

import pytest
from pypto_store import ArtifactStore, Hit, Invalid, StorageError
from pypto_store.testing import GENERATED, READY, payload_builder, sample_key, snapshot

PAYLOAD = {
    "kernel_config.json": b"{}",
    "prebuilt/kernel_0.bin": b"binary" * 100,
    "large": bytes(600_000),
    "empty": b"",
}


@pytest.fixture
def store(tmp_path):
    return ArtifactStore(tmp_path / "root")


@pytest.fixture
def slot(store, tmp_path):
    result = store.get_or_build(
        sample_key(), READY, payload_builder(PAYLOAD), private_parent=tmp_path / "p"
    )
    return result.entry.path


def replace(path, make):
    path.unlink()
    make(path)


def listen(path):
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


WRONG = {
    "extra file": lambda slot: (slot / "extra").write_bytes(b""),
    "extra file below": lambda slot: (slot / "prebuilt/extra").write_bytes(b""),
    "extra directory": lambda slot: (slot / "more").mkdir(),
    "extra link": lambda slot: (slot / "more").symlink_to("large"),
    "extra temporary": lambda slot: (slot / ".tmp.x").write_bytes(b""),
    "missing file": lambda slot: (slot / "large").unlink(),
    "missing empty file": lambda slot: (slot / "empty").unlink(),
    "missing directory": lambda slot: shutil.rmtree(slot / "prebuilt"),
    "grown": lambda slot: (slot / "empty").write_bytes(b"x"),
    "shrunk": lambda slot: (slot / "large").write_bytes(bytes(599_999)),
    "changed": lambda slot: (slot / "large").write_bytes(bytes(599_999) + b"\1"),
    "changed small": lambda slot: (slot / "kernel_config.json").write_bytes(b"[]"),
    "not executable": lambda slot: (slot / "prebuilt/kernel_0.bin").chmod(0o600),
    "link to the same bytes": lambda slot: (
        shutil.copy(slot / "large", slot.parents[1] / "copy"),
        replace(slot / "large", lambda path: path.symlink_to(slot.parents[1] / "copy")),
    ),
    "directory for file": lambda slot: replace(slot / "empty", lambda path: path.mkdir()),
    "fifo for file": lambda slot: replace(slot / "empty", os.mkfifo),
    "socket for file": lambda slot: replace(slot / "empty", listen),
    "file for directory": lambda slot: (
        shutil.rmtree(slot / "prebuilt"),
        (slot / "prebuilt").write_bytes(b""),
    ),
    "linked directory": lambda slot: (
        (slot / "prebuilt").rename(slot.parents[1] / "moved"),
        (slot / "prebuilt").symlink_to(slot.parents[1] / "moved"),
    ),
    "no manifest": lambda slot: (slot / "artifact_manifest.json").unlink(),
    "empty manifest": lambda slot: (slot / "artifact_manifest.json").write_bytes(b""),
    "manifest is a directory": lambda slot: replace(
        slot / "artifact_manifest.json", lambda path: path.mkdir()
    ),
    "manifest is a fifo": lambda slot: replace(slot / "artifact_manifest.json", os.mkfifo),
    "manifest is a link": lambda slot: (
        (slot / "artifact_manifest.json").rename(slot.parents[1] / "m"),
        (slot / "artifact_manifest.json").symlink_to(slot.parents[1] / "m"),
    ),
    "huge manifest": lambda slot: os.truncate(slot / "artifact_manifest.json", 16 * 2**20 + 1),
    "signature is a link": lambda slot: (slot / "artifact_manifest.json.sig").symlink_to("x"),
    "signature is a directory": lambda slot: (slot / "artifact_manifest.json.sig").mkdir(),
    "slot is a file": lambda slot: (shutil.rmtree(slot), slot.write_bytes(b"")),
    "slot is a link": lambda slot: (
        slot.rename(slot.parents[1] / "moved"),
        slot.symlink_to(slot.parents[1] / "moved"),
    ),
    "slot is empty": lambda slot: (shutil.rmtree(slot), slot.mkdir()),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_tree_is_invalid_and_stays(store, slot, tmp_path, wrong):
    WRONG[wrong](slot)
    before = snapshot(tmp_path / "root")
    found = store.lookup(sample_key(), READY)
    assert isinstance(found, Invalid), wrong
    assert found.path == str(slot)
    assert found.reason
    assert snapshot(tmp_path / "root") == before


def test_modes_times_and_a_signature_do_not_matter(store, slot):
    for parent, directories, files in os.walk(slot):
        for name in directories + files:
            os.chmod(os.path.join(parent, name), 0o555)
            os.utime(os.path.join(parent, name), (0, 0))
    (slot / "artifact_manifest.json.sig").write_bytes(b"signed")
    assert isinstance(store.lookup(sample_key(), READY), Hit)


def test_entry_of_another_key_or_state_in_the_slot_is_invalid(store, slot, tmp_path):
    other = slot.parents[2] / sample_key("two").digest.hex / "ready" / slot.name
    shutil.copytree(slot, other)
    found = store.lookup(sample_key("two"), READY)
    assert isinstance(found, Invalid)
    assert "belongs to key" in found.reason
    shutil.copytree(slot, slot.parents[1] / "generated")
    assert isinstance(store.lookup(sample_key(), GENERATED), Invalid)
    assert isinstance(store.lookup_generated(sample_key()), Invalid)
    assert isinstance(store.read_hint(sample_key()), Invalid)


def test_file_in_the_way_of_the_slot_is_storage_trouble(store, slot, tmp_path):
    shutil.rmtree(slot.parents[1])
    slot.parents[1].write_bytes(b"")
    assert isinstance(store.lookup(sample_key(), READY), StorageError)


def test_generated_without_a_hint_is_told(store, tmp_path):
    key = sample_key("no hint")
    spec = type(GENERATED)(GENERATED.state, "l2")
    store.get_or_build(key, spec, payload_builder({"a": b""}), private_parent=tmp_path / "p")
    found = store.read_hint(key)
    assert isinstance(found, Invalid)
    assert "kernel_config.json" in found.reason


def test_entry_renamed_away_during_validation_is_still_read_whole(store, slot, monkeypatch):
    """Cleaning moves slots aside while readers, who take no lock, may be inside."""
    scandir = os.scandir

    def move_first(place):
        if slot.exists():
            slot.rename(slot.parents[1] / "trash")
        return scandir(place)

    monkeypatch.setattr(os, "scandir", move_first)
    assert isinstance(store.lookup(sample_key(), READY), Hit)
