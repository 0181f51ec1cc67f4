"""An entry whose manifest is replaced by any bytes, and what every reader makes of them."""

from __future__ import annotations

from pathlib import Path

from pypto.jit.native_validation import NativeValidator
from pypto_store import (
    ArtifactStore,
    Hint,
    Hit,
    Invalid,
    Miss,
    State,
    iterate_entries,
)
from pypto_store.manifest import ManifestError, parse
from pypto_store.testing import GENERATED, READY, payload_builder, sample_key
from pypto_store.validation import PYTHON_VALIDATOR

PAYLOAD = {"kernel_config.json": b'{"schema":1}', "kernels/add.cpp": b"int add;\n", "empty": b""}


class ManifestSlot:
    """One entry of each state; `judge` puts bytes in place of a manifest and asks for it."""

    def __init__(self, base: Path) -> None:
        self._root = base / "root"
        validators = (PYTHON_VALIDATOR, NativeValidator(PYTHON_VALIDATOR))
        self._stores = [ArtifactStore(self._root, validator=how) for how in validators]
        self._places = {}
        self.sound = {}
        for spec in (GENERATED, READY):
            result = self._stores[0].get_or_build(
                sample_key(), spec, payload_builder(PAYLOAD), private_parent=base / "p"
            )
            place = result.entry.path / "artifact_manifest.json"
            self._places[spec.state] = place
            self.sound[spec.state] = place.read_bytes()

    def judge(self, data: bytes, state: State) -> None:
        """Raises unless every answer is of its type and nothing but the sound bytes is a hit."""
        place = self._places[state]
        place.write_bytes(data)
        try:
            self._judge_parsers(data, state)
            for store in self._stores:
                self._judge_store(store, data == self.sound[state], state)
            (row,) = [row for row in iterate_entries(self._root) if row.state is state]
            assert (row.manifest is None) == (row.damage is not None)
        finally:
            place.write_bytes(self.sound[state])

    def _judge_parsers(self, data: bytes, state: State) -> None:
        spec = GENERATED if state is State.GENERATED else READY
        for expected in ({}, {"key": sample_key()}, {"key": sample_key(), "spec": spec}):
            try:
                manifest = parse(data, **expected)
            except ManifestError as error:
                assert str(error)  # noqa: PT017  it says what is wrong
            else:
                assert manifest.encode() == data

    @staticmethod
    def _is_own(found: object) -> bool:
        """Whether an entry is refused, or is whole by a specification of its own."""
        return isinstance(found, Invalid) or (
            isinstance(found, Hit)
            and found.entry.spec != GENERATED
            and {file.path for file in found.entry.manifest.files} == set(PAYLOAD)
        )

    def _judge_store(self, store: ArtifactStore, sound: bool, state: State) -> None:
        spec = GENERATED if state is State.GENERATED else READY
        found = store.lookup(sample_key(), spec)
        assert isinstance(found, Hit if sound else Invalid), found
        if state is State.GENERATED:
            generated = store.lookup_generated(sample_key())
            # It takes the files that the manifest itself asks for: fewer than this one's, maybe.
            assert isinstance(generated, Hit) if sound else self._is_own(generated), generated
            hint = store.read_hint(sample_key())
            # Bytes that another manifest of this key also vouches for are still the right ones.
            assert isinstance(hint, Invalid) or hint == Hint(PAYLOAD["kernel_config.json"])
        else:
            discovered = store.discover_ready(sample_key(), lambda _: READY)
            assert isinstance(discovered, Hit if sound else Miss), discovered
