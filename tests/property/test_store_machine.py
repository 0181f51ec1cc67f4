"""Any sequence of operations on a store gives what a dictionary would give."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from pypto_store import (
    ArtifactStore,
    Failure,
    Hint,
    Hit,
    Invalid,
    Miss,
    Private,
    Published,
    iterate_entries,
)
from pypto_store.testing import GENERATED, ready_spec, sample_key, snapshot

KEYS = tuple(sample_key(name, place) for name in "ab" for place in "xy")
SPECS = (GENERATED, ready_spec("x86-64"), ready_spec("x86-64-v3"))
HINTS = {f'{{"spec":{number}}}'.encode(): spec for number, spec in enumerate(SPECS)}
HINT_OF = {spec: hint for hint, spec in HINTS.items()}

slots = st.tuples(st.sampled_from(KEYS), st.sampled_from(SPECS))
payloads = st.dictionaries(
    st.sampled_from(["a", "b", "d/c", "d/e/f"]), st.binary(max_size=3), max_size=4
)


class Refused(Exception):
    pass


class StoreMachine(RuleBasedStateMachine):
    """The model: published payloads and damaged places by (key, spec)."""

    stores = Bundle("stores")

    def __init__(self):
        super().__init__()
        # Durability is not what is modelled, and the disk is slow.
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(os, "fsync", lambda _: None)
        self.base = Path(tempfile.mkdtemp(prefix="store-machine-"))
        self.root = self.base / "root"
        self.model = {}
        self.damaged = {}

    def teardown(self):
        self.patch.undo()
        shutil.rmtree(self.base)

    @initialize(target=stores)
    def first_store(self):
        return ArtifactStore(self.root, lock_timeout=10)

    @rule(target=stores, readonly=st.booleans())
    def another_store(self, readonly):
        return ArtifactStore(self.root, readonly=readonly, lock_timeout=10)

    def builder(self, spec, payload, calls):
        def build(directory):
            calls.append(directory)
            for path, data in {**payload, "kernel_config.json": HINT_OF[spec]}.items():
                (directory / path).parent.mkdir(parents=True, exist_ok=True)
                (directory / path).write_bytes(data)

        return build

    def content(self, hit):
        return {record.path: hit.entry.read(record.path) for record in hit.entry.manifest.files}

    @rule(store=stores, slot=slots)
    def look_up(self, store, slot):
        found = store.lookup(*slot)
        if slot in self.damaged:
            assert isinstance(found, Invalid)
        elif slot in self.model:
            assert self.content(found) == self.model[slot]
        else:
            assert found == Miss()

    @rule(store=stores, slot=slots, payload=payloads)
    def get_or_build(self, store, slot, payload):
        calls = []
        before = snapshot(self.root) if store.readonly else None
        result = store.get_or_build(
            *slot, self.builder(slot[1], payload, calls), private_parent=self.base / "private"
        )
        if slot in self.damaged:
            assert isinstance(result, Private)
            assert result.failure is Failure.INVALID
        elif slot in self.model:
            assert isinstance(result, Hit)
            assert self.content(result) == self.model[slot]
            assert calls == []
        elif store.readonly:
            assert isinstance(result, Private)
            assert result.failure is None
        else:
            assert isinstance(result, Published)
            self.model[slot] = {**payload, "kernel_config.json": HINT_OF[slot[1]]}
            assert self.content(result) == self.model[slot]
        if isinstance(result, Private):
            assert (result.path / "kernel_config.json").read_bytes() == HINT_OF[slot[1]]
            shutil.rmtree(result.path)
        if before is not None:
            assert snapshot(self.root) == before

    @rule(store=stores, slot=slots)
    def fail_to_build(self, store, slot):
        def build(directory):
            (directory / "half").write_bytes(b"")
            raise Refused

        try:
            result = store.get_or_build(*slot, build, private_parent=self.base / "private")
        except Refused:
            assert slot not in self.model or slot in self.damaged
        else:
            assert isinstance(result, Hit)
            assert slot in self.model

    @rule(slot=slots, kind=st.sampled_from(["flip", "extra", "truncate", "remove", "manifest"]))
    def damage(self, slot, kind):
        if slot not in self.model or slot in self.damaged:
            return
        hit = ArtifactStore(self.root).lookup(*slot)
        place = hit.entry.path / "kernel_config.json"
        data = place.read_bytes()
        place.unlink()  # its inode may be another slot's too
        if kind in ("extra", "manifest"):
            place.write_bytes(data)
            name = "artifact_manifest.json" if kind == "manifest" else "extra"
            with (hit.entry.path / name).open("ab") as file:
                file.write(b"\n")
        elif kind == "flip":
            place.write_bytes(data.replace(b":", b";"))
        elif kind == "truncate":
            place.write_bytes(data[:-1])
        self.damaged[slot] = snapshot(hit.entry.path)

    @rule(store=stores, key=st.sampled_from(KEYS))
    def hint(self, store, key):
        found = store.read_hint(key)
        if (key, GENERATED) not in self.model:
            assert found == Miss()
        elif (key, GENERATED) in self.damaged:
            assert isinstance(found, (Invalid, Hint))  # an extra file does not hurt a hint
        else:
            assert found == Hint(HINT_OF[GENERATED])

    @rule(store=stores, key=st.sampled_from(KEYS))
    def discover(self, store, key):
        found = store.discover_ready(key, HINTS.__getitem__)
        ready = [slot for slot in self.model if slot[0] == key and slot[1] != GENERATED]
        sound = [slot for slot in ready if slot not in self.damaged]
        if len(sound) == 1:
            assert self.content(found) == self.model[sound[0]]
        elif sound:
            assert isinstance(found, Invalid)
        else:
            assert isinstance(found, Miss)
            assert len(found.rejected) == len(ready)

    @invariant()
    def damaged_slots_stay_as_they_are(self):
        for (key, spec), before in self.damaged.items():
            rows = [row for row in iterate_entries(self.root) if row.key == key.digest.hex]
            name = "generated" if spec == GENERATED else spec.digest.hex
            (slot,) = [row.path for row in rows if os.path.basename(row.path) == name]
            assert snapshot(Path(slot)) == before

    @invariant()
    def nothing_temporary_remains(self):
        if self.root.exists():
            assert len(list(iterate_entries(self.root))) == len(self.model)
            assert not [path for path in snapshot(self.root) if ".tmp." in path]


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
