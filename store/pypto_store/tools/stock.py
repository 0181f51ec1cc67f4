"""Taking stock of a root for cleaning: what is there, who needs it, and when it was last used.

Decided from the inodes that slots hold and from the digests that they name. A slot whose manifest
is damaged is counted by its inodes; it is `fsck`'s matter.

When something was last used is what the file system says: the later of the times of modification
(publication) and access of the manifests, which every lookup that ends in a hit reads and no tool
of ours touches. Nothing is ever written for it. Mounted with `relatime`, as is the default, access
is told to the day; with `noatime` or read-only, publication is what is left.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pypto_store.digest import is_digest_name
from pypto_store.keys import State
from pypto_store.layout import STAGING_PREFIX, Layout
from pypto_store.listing import EntryRow, iterate_entries
from pypto_store.paths import MANIFEST_NAME
from pypto_store.tools.answer import Progress
from pypto_store.tools.comparison import EvidenceShelf
from pypto_store.tools.names import BLOB, RECORD, RECORD_DIRECTORIES

Inode = tuple[int, int]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that gc may remove by itself. used: seconds since the epoch."""

    path: str
    inode: Inode
    size: int
    used: float


@dataclass(frozen=True, slots=True)
class StoredKey:
    """One key: all its slots, and all that they need.

    slots: READY before GENERATED, the order in which they are dropped. holds: size by inode of all
    files of the slots, and of the blobs and the evidence that they name. blobs, components: what
    they name, as names in the index and as digests.
    """

    key: str
    environment: str
    kernel: str
    slots: tuple[str, ...]
    used: float
    holds: Mapping[Inode, int]
    blobs: frozenset[str]
    components: frozenset[str]


@dataclass(slots=True)
class Stock:
    """Everything of a root that gc has a say in.

    staging, trash, half_written: what crashes left. directories: those that go when nothing is in
    them any more, inner ones first.
    """

    layout: Layout
    keys: list[StoredKey] = field(default_factory=list)
    blobs: dict[str, StoredFile] = field(default_factory=dict)
    evidence: dict[str, StoredFile] = field(default_factory=dict)
    records: list[StoredFile] = field(default_factory=list)
    staging: list[str] = field(default_factory=list)
    trash: list[str] = field(default_factory=list)
    half_written: list[StoredFile] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    left_behind: dict[Inode, int] = field(default_factory=dict)

    def size(self) -> int:
        """Bytes of all of it, every inode once."""
        inodes = dict(self.left_behind)
        for key in self.keys:
            inodes.update(key.holds)
        single = (self.blobs.values(), self.evidence.values(), self.records, self.half_written)
        for files in single:
            inodes.update((file.inode, file.size) for file in files)
        return sum(inodes.values())


class Need:
    """How many of the keys that are kept hold each inode."""

    def __init__(self, keys: Iterable[StoredKey]) -> None:
        self._count: Counter[Inode] = Counter()
        self.size = 0
        for key in keys:
            for inode, size in key.holds.items():
                self._count[inode] += 1
                if self._count[inode] == 1:
                    self.size += size

    def drop(self, key: StoredKey) -> int:
        """Do without a key; gives the bytes that nobody else holds."""
        freed = 0
        for inode, size in key.holds.items():
            self._count[inode] -= 1
            if not self._count[inode]:
                freed += size
        self.size -= freed
        return freed

    def holds(self, inode: Inode) -> bool:
        """Whether a key that is kept holds it."""
        return self._count[inode] > 0


def take_stock(layout: Layout, progress: Progress) -> Stock:
    """Look at everything below a root. OSError if it cannot be read."""
    stock = Stock(layout)
    for directory in _names(layout.cas):
        for name, file in _files(f"{layout.cas}/{directory}"):
            if BLOB.fullmatch(name) and name.startswith(directory):
                stock.blobs[name] = file
    for name, file in _files(layout.evidence):
        if found := RECORD.fullmatch(name):
            stock.evidence[found[1]] = file
        elif name.startswith(STAGING_PREFIX):
            stock.half_written.append(file)
    for directory in RECORD_DIRECTORIES:
        for name, file in _files(f"{layout.root}/{directory}"):
            if RECORD.fullmatch(name):
                stock.records.append(file)
            elif name.startswith(STAGING_PREFIX):
                stock.half_written.append(file)
    stock.trash = [f"{layout.trash}/{name}" for name in _names(layout.trash)]
    _look_around(stock)
    for path in (*stock.trash, *stock.staging):
        stock.left_behind.update(_inodes(path))
    rows: dict[tuple[str, str], list[EntryRow]] = {}
    for row in iterate_entries(layout.root):
        rows.setdefault((row.environment, row.key), []).append(row)
    shelf = EvidenceShelf(layout)
    with progress.of("keys", len(rows)) as advance:
        for group in rows.values():
            stock.keys.append(_key(group, stock, shelf))
            advance(1)
    return stock


def _key(rows: list[EntryRow], stock: Stock, shelf: EvidenceShelf) -> StoredKey:
    holds: dict[Inode, int] = {}
    blobs: set[str] = set()
    components: set[str] = set()
    kernel = ""
    for row in rows:
        holds.update(_inodes(row.path))
        if row.manifest is None:
            continue
        for record in row.manifest.files:
            # The second inode of a content (.2) is needed by nobody but the slots that hold it.
            blobs.add(f"{record.sha256}{'.x' if record.executable else ''}")
        components.update(digest.hex for _, digest in row.manifest.key.components())
        kernel = kernel or shelf.subject(row.manifest.key.source)
    named = [stock.blobs[name] for name in blobs if name in stock.blobs]
    named += [stock.evidence[name] for name in components if name in stock.evidence]
    holds.update((file.inode, file.size) for file in named)
    ready_first = sorted(rows, key=lambda row: row.state is State.GENERATED)
    return StoredKey(
        rows[0].key,
        rows[0].environment,
        kernel,
        tuple(row.path for row in ready_first),
        max(last_used(row.path) for row in rows),
        holds,
        frozenset(blobs),
        frozenset(components),
    )


def last_used(slot: str) -> float:
    """When an entry was published or last looked up, by its manifest; by the slot without one.

    Seconds since the epoch.
    """
    for path in (f"{slot}/{MANIFEST_NAME}", slot):
        try:
            status = os.lstat(path)
        except OSError:
            continue
        return max(status.st_mtime, status.st_atime) if path != slot else status.st_mtime
    return 0.0


def _inodes(path: str) -> dict[Inode, int]:
    """Size by inode of every file at and below `path`; what disappears meanwhile has none."""
    found: dict[Inode, int] = {}
    # Not recursive: what stands there need not be an entry, and may be of any depth.
    pending = [path]
    while pending:
        place = pending.pop()
        try:
            status = os.lstat(place)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            continue  # too deep for any entry, and for what is counted here
        if not stat.S_ISDIR(status.st_mode):
            found[(status.st_dev, status.st_ino)] = status.st_size
            continue
        with contextlib.suppress(OSError):  # it may not be this user's to read
            pending += (f"{place}/{name}" for name in os.listdir(place))
    return found


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _files(directory: str) -> Iterator[tuple[str, StoredFile]]:
    """The regular files of a directory by name; only they are ever removed by themselves."""
    for name in _names(directory):
        path = f"{directory}/{name}"
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            continue
        if stat.S_ISREG(status.st_mode):
            used = max(status.st_mtime, status.st_atime)
            inode = (status.st_dev, status.st_ino)
            yield name, StoredFile(path, inode, status.st_size, used)


def _look_around(stock: Stock) -> None:
    """Note what publications left, and every directory that cleaning may leave empty."""
    layout = stock.layout
    for environment in filter(is_digest_name, _names(layout.artifacts)):
        above = f"{layout.artifacts}/{environment}"
        for key in filter(is_digest_name, _names(above)):
            directory = f"{above}/{key}"
            for name in _names(directory):
                if name.startswith(STAGING_PREFIX):
                    stock.staging.append(f"{directory}/{name}")
            stock.directories += (f"{directory}/{State.READY.value}", directory)
        stock.directories.append(above)
    stock.directories += (f"{layout.cas}/{name}" for name in _names(layout.cas) if len(name) == 2)
