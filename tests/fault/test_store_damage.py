"""One wrong byte anywhere in an entry: never served, never repaired."""

from __future__ import annotations

import os
import random

import pytest
from pypto.jit.native_validation import NativeValidator
from pypto_store import ArtifactStore, Failure, Hint, Hit, Invalid, Private
from pypto_store.testing import GENERATED, READY, payload_builder, sample_key, snapshot
from pypto_store.validation import PYTHON_VALIDATOR

ROUNDS = int(os.environ.get("STORE_FAULT_ROUNDS", "5"))
DAMAGES = 400 * ROUNDS

PAYLOAD = {
    "kernel_config.json": b'{"schema":1,"kernels":[]}',
    "binary_manifest.json": b'{"binaries":["prebuilt/kernel_0.bin"]}',
    "prebuilt/kernel_0.bin": b"\x7fELF" + bytes(range(256)) * 2,
}


@pytest.fixture(params=["python", "native"])
def store(tmp_path, request):
    native = request.param == "native"
    validator = NativeValidator(PYTHON_VALIDATOR) if native else PYTHON_VALIDATOR
    return ArtifactStore(tmp_path / "root", validator=validator)


@pytest.fixture
def slot(store, tmp_path):
    result = store.get_or_build(
        sample_key(), READY, payload_builder(PAYLOAD), private_parent=tmp_path / "p"
    )
    return result.entry.path


def files(slot):
    return sorted(path for path in slot.rglob("*") if path.is_file())


@pytest.mark.conforms("cache.50")
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


@pytest.mark.conforms("cache.50")
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


class Damage:
    """A file that is changed in one of many ways, and put back as it was."""

    def __init__(self, generator, path):
        self.path = path
        self.data = path.read_bytes()
        kinds = ["flip", "flip", "cut", "cut", "grow", "blank", "swap"] if self.data else ["grow"]
        self.kind = generator.choice(kinds)
        self.changed = getattr(self, f"_{self.kind}")(generator, bytearray(self.data))

    def _flip(self, generator, data):
        data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        return data

    def _cut(self, generator, data):
        return data[: generator.randrange(len(data))]

    def _grow(self, generator, data):
        return data + generator.randbytes(generator.choice([1, 2, 4096]))

    def _blank(self, generator, data):
        """A block that was never written, as a crash of the machine may leave it."""
        start = generator.randrange(len(data))
        stop = start + generator.choice([1, 16, 4096])
        return data[:start] + bytes(len(data[start:stop])) + data[stop:]

    def _swap(self, generator, data):
        one, other = (generator.randrange(len(data)) for _ in range(2))
        data[one], data[other] = data[other], data[one]
        return data

    @property
    def real(self):
        return self.changed != self.data

    def __enter__(self):
        self.path.write_bytes(self.changed)

    def __exit__(self, *_):
        self.path.write_bytes(self.data)

    def __str__(self):
        return f"{self.kind} of {self.path.name}"


def test_random_damage_of_both_states_is_always_found(store, tmp_path, record_property):
    """Flips, truncations and more, over every file of both states and both manifests."""
    slots = {}
    for spec in (GENERATED, READY):
        # Large enough for every way in which a file is read, and an empty file.
        payload = {**PAYLOAD, "large": random.Random(3).randbytes(300_000), "empty": b""}
        result = store.get_or_build(
            sample_key(), spec, payload_builder(payload), private_parent=tmp_path / "p"
        )
        slots[spec] = result.entry.path
    sound = Hint(PAYLOAD["kernel_config.json"])
    generator = random.Random(4)
    places = [(spec, path) for spec, slot in slots.items() for path in files(slot)]
    seen = {"flip": 0, "cut": 0}
    while seen["flip"] + seen["cut"] < DAMAGES:
        spec, path = places[sum(seen.values()) % len(places)]
        damage = Damage(generator, path)
        if not damage.real:
            continue
        with damage:
            looked = store.lookup(sample_key(), spec)
            assert isinstance(looked, Invalid), (str(damage), looked)
            if spec is GENERATED:
                assert isinstance(store.lookup_generated(sample_key()), Invalid), str(damage)
                hint = store.read_hint(sample_key())
                if path.name == "kernel_config.json":
                    assert isinstance(hint, Invalid), str(damage)
                else:
                    # A manifest that is wrong about another file is right about this one.
                    assert isinstance(hint, Invalid) or hint == sound, str(damage)
            else:
                discovered = store.discover_ready(sample_key(), lambda _: READY)
                assert not isinstance(discovered, Hit), str(damage)
        seen[damage.kind] = seen.get(damage.kind, 0) + 1
    for spec in slots:
        assert isinstance(store.lookup(sample_key(), spec), Hit)
    record_property("damages", sum(seen.values()))
    print(f"{sum(seen.values())} damages: {seen}")
    assert min(seen.values()) > DAMAGES // 20
