"""Validating entries of the store with the native core.

It reads, hashes and compares an entry in one call, and accepts the one spelling of a manifest that
the store itself writes. It can only say yes. Whatever it does not accept goes to the store's own
validator, so that there is one place with verdicts and reasons.
"""

from __future__ import annotations

import os

from pypto_store import ArtifactKey, ArtifactSpec, State
from pypto_store.manifest import SIZE_LIMIT, FileRecord, Manifest, frame, spec_of
from pypto_store.paths import MANIFEST_NAME, PLAIN_LIMIT, SIGNATURE_NAME
from pypto_store.validation import KEEP_FILE, KEEP_TOTAL, PYTHON_VALIDATOR, Validator

try:
    from pypto._native import SlotReader
except ImportError:
    SlotReader = None  # type: ignore[assignment, misc]


class NativeValidator:
    """Validates what is as it should be; `otherwise` decides about the rest."""

    def __init__(self, otherwise: Validator) -> None:
        self._otherwise = otherwise
        self._reader = SlotReader(
            record=FileRecord,
            manifest_name=MANIFEST_NAME,
            signature_name=SIGNATURE_NAME,
            manifest_limit=SIZE_LIMIT,
            path_limit=PLAIN_LIMIT,
            keep_file=KEEP_FILE,
            keep_total=KEEP_TOTAL,
        )

    def validate(
        self, slot: int, key: ArtifactKey, spec: ArtifactSpec | None, state: State
    ) -> tuple[Manifest, dict[str, bytes]]:
        """As Validator has it."""
        head, middle = frame(key)
        read = self._reader.validate(slot, head, middle)
        if read is not None:
            found = spec_of(read[0])
            if found is not None and found.state is state and (spec is None or found == spec):
                manifest = Manifest.of_proven_files(key, found, read[1])
                if manifest is not None:
                    return manifest, read[2]
        # The native core may have been stopped within the list of names, where it got to.
        os.lseek(slot, 0, os.SEEK_SET)
        return self._otherwise.validate(slot, key, spec, state)

    def read_file(
        self, slot: int, key: ArtifactKey, state: State, path: str, limit: int
    ) -> bytes | None:
        """As Validator has it."""
        head, middle = frame(key)
        read = self._reader.read_file(slot, head, middle, path, limit)
        if read is not None:
            found = spec_of(read[0])
            if (
                found is not None
                and found.state is state
                and Manifest.of_proven_files(key, found, read[1]) is not None
            ):
                return read[2]
        return self._otherwise.read_file(slot, key, state, path, limit)


def best_validator() -> Validator:
    """The native validator, or the store's own where the extension cannot be imported."""
    return PYTHON_VALIDATOR if SlotReader is None else NativeValidator(PYTHON_VALIDATOR)
