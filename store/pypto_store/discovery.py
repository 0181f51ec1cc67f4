"""Finding READY when nothing says which specification to look for.

Only specification directories of one key are considered, at most 32 of them: at the 33rd the
search stops with no candidate opened, so that its cost is bounded whatever stands there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from pypto_store.digest import is_digest_name
from pypto_store.entry import Entry
from pypto_store.keys import ArtifactKey, ArtifactSpec, State
from pypto_store.outcomes import Hit, Invalid, Lookup, Miss
from pypto_store.validation import SlotFault, open_slot, read_bounded

if TYPE_CHECKING:
    from pypto_store.layout import Layout
    from pypto_store.validation import Validator

CANDIDATE_LIMIT = 32
HINT_NAME = "kernel_config.json"
HINT_LIMIT = 1024 * 1024  # bytes

DeriveSpec = Callable[[bytes], ArtifactSpec]


def discover(
    layout: Layout, key: ArtifactKey, derive_spec: DeriveSpec, validator: Validator
) -> Lookup:
    """The one valid READY entry of `key`; OSError if the storage cannot be read.

    `derive_spec` turns a candidate's kernel_config.json into its specification, or raises
    ValueError (KeyError and TypeError count too: the bytes are not trusted yet).
    """
    directory = layout.ready_slots(key)
    names = candidate_names(directory)
    if len(names) > CANDIDATE_LIMIT:
        return Miss(f"more than {CANDIDATE_LIMIT} READY candidates under {directory}")
    rejected: list[Invalid] = []
    found: Entry | None = None
    for name in sorted(names):
        slot = f"{directory}/{name}"
        try:
            entry = _candidate(slot, name, key, derive_spec, validator)
        except SlotFault as fault:
            rejected.append(Invalid(slot, fault.reason))
            continue
        if entry is None:
            continue
        if found is not None:
            return Invalid(directory, "two valid READY entries; neither is chosen")
        found = entry
    if found is None:
        return Miss(rejected=tuple(rejected))
    return Hit(found, tuple(rejected))


def candidate_names(directory: str) -> list[str]:
    """Names of candidate directories, at most one more than the limit. Nothing is opened."""
    names: list[str] = []
    try:
        entries = os.scandir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return names
    with entries:
        for entry in entries:
            # is_dir with follow_symlinks=False: a link neither counts nor is looked through.
            if is_digest_name(entry.name) and entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
                if len(names) > CANDIDATE_LIMIT:
                    break
    return names


def _candidate(
    slot: str, name: str, key: ArtifactKey, derive_spec: DeriveSpec, validator: Validator
) -> Entry | None:
    descriptor = open_slot(slot)
    if descriptor is None:
        return None  # removed meanwhile
    try:
        data = read_bounded(descriptor, HINT_NAME, HINT_LIMIT)
        try:
            spec = derive_spec(data)
        except (ValueError, LookupError, TypeError) as error:
            raise SlotFault(f"{HINT_NAME} is unusable: {error}", HINT_NAME) from None
        if spec.digest.hex != name or spec.state is not State.READY:
            raise SlotFault(f"{HINT_NAME} belongs to another specification", HINT_NAME)
        manifest, kept = validator.validate(descriptor, key, spec, State.READY)
        return Entry(slot, manifest, kept)
    finally:
        os.close(descriptor)
