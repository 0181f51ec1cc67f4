"""What a root holds and what its entries share, told from manifests and inodes.

Takes no lock and opens no payload: what it finds wrong is what shows from outside. `fsck` reads.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from pypto_store.keys import State
from pypto_store.layout import resolve
from pypto_store.listing import EntryRow
from pypto_store.paths import MANIFEST_NAME
from pypto_store.tools.comparison import EvidenceShelf

_Inode = tuple[int, int]
_SEVERAL = -1


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One entry.

    kernel: "" if nothing tells. published, used: seconds since the epoch, None if that is not
    known; the file system tells the last use, to the day, where it keeps times of access.
    shared: bytes in files that other entries name too. damage: why it is unusable.
    """

    row: EntryRow
    kernel: str
    published: float | None
    used: float | None
    shared: int
    damage: str | None


class Content(NamedTuple):
    """One file content: how many entries hold it, and in how many inodes."""

    sha256: str
    size: int
    entries: int
    copies: int

    @property
    def saved(self) -> int:
        """Bytes that sharing it saves."""
        return self.size * max(0, self.entries - self.copies)


@dataclass(frozen=True, slots=True)
class Survey:
    """A whole root.

    artifacts: the directory of all entries. payload_size: what entries declare together.
    disk_sizes: each inode once, by the state of the first entry that has it.
    """

    root: str
    artifacts: str
    entries: Sequence[Surveyed]
    contents: Sequence[Content]
    payload_size: int
    disk_sizes: Mapping[State, int]

    @property
    def disk_size(self) -> int:
        """Bytes on disk."""
        return sum(self.disk_sizes.values())

    @property
    def saved(self) -> int:
        """Bytes that sharing files saves, against entries that share nothing."""
        return self.payload_size - self.disk_size

    def count(self, state: State) -> int:
        """Usable entries of a state."""
        return sum(entry.damage is None and entry.row.state is state for entry in self.entries)

    @property
    def damaged(self) -> int:
        """Entries that something is wrong with."""
        return sum(entry.damage is not None for entry in self.entries)


def survey(root: str, rows: Iterable[EntryRow], advance: Callable[[int], None]) -> Survey:
    """Look at every file of every entry from outside; `advance` is told each entry."""
    layout, _ = resolve(root)
    rows = list(rows)
    sharing = _Sharing()
    damages = []
    for number, row in enumerate(rows):
        found = sharing.add(number, row)
        damages.append(row.damage or found)
        advance(1)
    shelf = EvidenceShelf(layout)
    entries = [
        Surveyed(row, shelf.kernel(row), *_times(row), sharing.shared(number), damage)
        for number, (row, damage) in enumerate(zip(rows, damages, strict=True))
    ]
    payload_size = sum(row.size or 0 for row in rows)
    return Survey(
        root, layout.artifacts, entries, sharing.contents(), payload_size, sharing.disk_sizes
    )


class _Sharing:
    """Which inodes and contents are whose."""

    def __init__(self) -> None:
        self._owners: dict[_Inode, int] = {}
        self._files: list[list[tuple[_Inode, int]]] = []
        self._contents: dict[str, tuple[int, set[int], set[_Inode]]] = {}
        self.disk_sizes = dict.fromkeys(State, 0)

    def add(self, number: int, row: EntryRow) -> str | None:
        """Take in an entry; what is wrong with it as far as that shows."""
        files: list[tuple[_Inode, int]] = []
        self._files.append(files)
        damage = None
        for record in () if row.manifest is None else row.manifest.files:
            try:
                status = os.lstat(f"{row.path}/{record.path}")
            except OSError as error:
                damage = damage or f"{record.path!r}: {error.strerror}"
                continue
            if not stat.S_ISREG(status.st_mode) or status.st_size != record.size:
                damage = damage or f"{record.path!r} is not a file of {record.size} bytes"
            inode = (status.st_dev, status.st_ino)
            files.append((inode, record.size))
            owner = self._owners.get(inode)
            if owner is None:
                self._owners[inode] = number
                self.disk_sizes[row.state] += status.st_size
            elif owner != number:
                self._owners[inode] = _SEVERAL
            _, holders, inodes = self._contents.setdefault(
                record.sha256, (record.size, set(), set())
            )
            holders.add(number)
            inodes.add(inode)
        return damage

    def shared(self, number: int) -> int:
        """Bytes of an entry in inodes that others have too."""
        return sum(size for inode, size in self._files[number] if self._owners[inode] == _SEVERAL)

    def contents(self) -> list[Content]:
        """Every content, what saves most first."""
        found = [
            Content(sha256, size, len(holders), len(inodes))
            for sha256, (size, holders, inodes) in self._contents.items()
        ]
        return sorted(found, key=lambda content: (-content.saved, content.sha256))


def _times(row: EntryRow) -> tuple[float | None, float | None]:
    """When an entry was published, and when it was last looked up since."""
    with suppress(OSError):
        # A manifest is written once, at the end of the publication, and read by every hit.
        status = os.lstat(f"{row.path}/{MANIFEST_NAME}")
        return status.st_mtime, status.st_atime if status.st_atime > status.st_mtime else None
    return None, None
