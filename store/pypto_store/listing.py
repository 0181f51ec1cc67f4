"""What a root holds, read from manifests and declared sizes alone.

Takes no lock, opens no payload, repairs nothing: safe on a read-only root and beside writers. Nor
does looking count as use: manifests keep their times of access, by which `gc` tells what is used.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_store.digest import is_digest_name
from pypto_store.keys import ArtifactSpec, State
from pypto_store.layout import Layout, resolve
from pypto_store.manifest import SIZE_LIMIT, ManifestError, parse
from pypto_store.paths import MANIFEST_NAME
from pypto_store.validation import SlotFault, open_slot, read_and_close, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pypto_store.manifest import Manifest

_UNNOTICED = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOATIME


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One slot. `damage` says why its manifest is unusable; then only its place is known.

    size and files are those the manifest declares, in bytes and number of files.
    """

    path: str
    environment: str
    key: str
    state: State
    manifest: Manifest | None
    damage: str | None

    @property
    def spec(self) -> ArtifactSpec | None:
        """What the entry is."""
        return None if self.manifest is None else self.manifest.spec

    @property
    def size(self) -> int | None:
        """Declared bytes of the payload."""
        return None if self.manifest is None else self.manifest.payload_size

    @property
    def files(self) -> int | None:
        """Declared number of payload files."""
        return None if self.manifest is None else len(self.manifest.files)


def iterate_entries(root: str | os.PathLike[str]) -> Iterator[EntryRow]:
    """Every slot of a root in a fixed order.

    FileNotFoundError if the root does not exist, NotADirectoryError if it is no directory, any
    other OSError if it cannot be read or is marked as something else. A damaged slot is a row.
    """
    given = os.path.abspath(os.fspath(root))
    os.close(os.open(given, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    layout, _ = resolve(given)
    return _rows(layout)


def _rows(layout: Layout) -> Iterator[EntryRow]:
    for environment in _digest_directories(layout.artifacts):
        for key in _digest_directories(f"{layout.artifacts}/{environment}"):
            directory = f"{layout.artifacts}/{environment}/{key}"
            yield from _row(f"{directory}/generated", environment, key, State.GENERATED)
            for spec in _digest_directories(f"{directory}/ready"):
                yield from _row(f"{directory}/ready/{spec}", environment, key, State.READY)


def _row(path: str, environment: str, key: str, state: State) -> Iterator[EntryRow]:
    try:
        descriptor = open_slot(path)
        if descriptor is None:
            return
        try:
            manifest = read_manifest_unnoticed(descriptor)
        finally:
            os.close(descriptor)
        check_place(path, environment, key, state, manifest)
    except SlotFault as fault:
        yield EntryRow(path, environment, key, state, None, fault.reason)
    except OSError as error:
        yield EntryRow(path, environment, key, state, None, error.strerror or str(error))
    else:
        yield EntryRow(path, environment, key, state, manifest, None)


def read_manifest_unnoticed(slot: int) -> Manifest:
    """The manifest of an open slot, of whatever key; SlotFault unless it is valid.

    Leaves its time of access as it is, where the system lets this user do so (its owner may).
    """
    try:
        descriptor = os.open(MANIFEST_NAME, _UNNOTICED, dir_fd=slot)
    except OSError:
        return read_manifest(slot, None, None)  # it may be someone else's; or this says what it is
    try:
        return parse(read_and_close(descriptor, MANIFEST_NAME, SIZE_LIMIT))
    except ManifestError as error:
        raise SlotFault(f"{MANIFEST_NAME}: {error}", MANIFEST_NAME) from None


def check_place(path: str, environment: str, key: str, state: State, manifest: Manifest) -> None:
    """SlotFault unless `manifest` is of the slot at `path`, which lies under these names."""
    if manifest.key.digest.hex != key or manifest.key.environment.hex != environment:
        raise SlotFault(f"the manifest belongs to key {manifest.key.digest}")
    if manifest.spec.state is not state:
        raise SlotFault(f"the manifest says {manifest.spec.state.value}")
    if state is State.READY and manifest.spec.digest.hex != os.path.basename(path):
        raise SlotFault(f"the manifest is of specification {manifest.spec.digest}")


def _digest_directories(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(
                entry.name
                for entry in entries
                if is_digest_name(entry.name) and entry.is_dir(follow_symlinks=False)
            )
    except (FileNotFoundError, NotADirectoryError):
        return []
