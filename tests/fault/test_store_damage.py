"""One wrong byte anywhere in an entry: never served, never repaired."""

from __future__ import annotations

import os
import random

import pytest
from pypto_store import ArtifactStore, Failure, Hit, Invalid, Private
from pypto_store.testing import READY, payload_builder, sample_key, snapshot

PAYLOAD = {
    "kernel_config.json": b'{"schema":1,"kernels":[]}',
    "binary_manifest.json": b'{"binaries":["prebuilt/kernel_0.bin"]}',
    "prebuilt/kernel_0.bin": b"\x7fELF" + bytes(range(256)) * 2,
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


def files(slot):
    return sorted(path for path in slot.rglob("*") if path.is_file())


def test_every_single_byte_counts(store, slot):
    generator = random.Random(1)
    checked = 0
    for path in files(slot):
        data = path.read_bytes()
        with path.open("r+b", buffering=0) as file:
            for place, byte in enumerate(data):
                os.pwrite(file.fileno(), bytes([byte ^ (1 << generator.randrange(8))]), place)
                assert isinstance(store.lookup(sample_key(), READY), Invalid), (path, place)
                os.pwrite(file.fileno(), bytes([byte]), place)
                checked += 1
    assert isinstance(store.lookup(sample_key(), READY), Hit)
    assert checked > 1500


def test_every_length_counts(store, slot):
    for path in files(slot):
        data = path.read_bytes()
        for length in [*range(len(data)), len(data) + 1]:
            os.truncate(path, length)
            assert isinstance(store.lookup(sample_key(), READY), Invalid), (path, length)
        path.write_bytes(data)
    assert isinstance(store.lookup(sample_key(), READY), Hit)


def test_damage_is_built_around_and_left_alone(store, slot, tmp_path):
    generator = random.Random(2)
    for path in files(slot):
        data = bytearray(path.read_bytes())
        place = generator.randrange(len(data))
        data[place] ^= 0x10
        path.write_bytes(data)
        before = snapshot(tmp_path / "root")
        result = store.get_or_build(
            sample_key(), READY, payload_builder(PAYLOAD), private_parent=tmp_path / "p"
        )
        assert isinstance(result, Private)
        assert result.failure is Failure.INVALID
        built = {name: (result.path / name).read_bytes() for name in PAYLOAD}
        assert built == PAYLOAD
        assert snapshot(tmp_path / "root") == before
        data[place] ^= 0x10
        path.write_bytes(data)


def test_damage_after_the_lookup_is_not_read(store, slot):
    hit = store.lookup(sample_key(), READY)
    for path in files(slot):
        path.write_bytes(b"")
    assert hit.entry.read("kernel_config.json") == PAYLOAD["kernel_config.json"]
