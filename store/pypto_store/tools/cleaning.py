"""What goes and what stays, and then making it so: planned whole before anything is touched.

Removing is done in an order that leaves a sound store wherever it is interrupted, and the next run
takes it up: slots leave by one rename each, into the trash; only then is the trash emptied, and
what no slot names any more is removed.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from enum import Enum

from pypto_store import crash_points
from pypto_store.layout import Layout, group_bits, make_directories
from pypto_store.removal import remove_whole_tree
from pypto_store.tools.answer import Advance, Progress
from pypto_store.tools.stock import Need, Stock, StoredFile, StoredKey


class Reason(Enum):
    """Why a key is dropped: it was not used for too long, or others were used later."""

    AGE = "age"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a store may hold. max_size in bytes, max_age in seconds, None for no such limit.

    keep: keys that stay whatever the limits say.
    """

    max_size: int | None
    max_age: float | None
    keep: frozenset[str]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A key that goes. frees: bytes that nobody kept at that point needs beside it."""

    key: StoredKey
    reason: Reason
    frees: int


@dataclass(slots=True)
class Plan:
    """What goes. over: bytes that what has to stay exceeds the limit by, 0 if it does not."""

    stock: Stock
    dropped: list[Dropped] = field(default_factory=list)
    blobs: list[StoredFile] = field(default_factory=list)
    evidence: list[StoredFile] = field(default_factory=list)
    records: list[StoredFile] = field(default_factory=list)
    before: int = 0
    after: int = 0
    over: int = 0

    @property
    def leftovers(self) -> int:
        """How many things of interrupted runs and writers go."""
        return len(self.stock.staging) + len(self.stock.trash) + len(self.stock.half_written)


def plan(stock: Stock, limits: Limits, now: float) -> Plan:
    """Decide, oldest use first. now: seconds since the epoch."""
    made = Plan(stock, before=stock.size())
    need = Need(stock.keys)
    oldest = sorted(stock.keys, key=lambda key: (key.used, key.key))
    gone: set[tuple[str, ...]] = set()  # by their slots: a misplaced copy is a key of its own

    def drop(key: StoredKey, reason: Reason) -> None:
        gone.add(key.slots)
        made.dropped.append(Dropped(key, reason, need.drop(key)))

    def old(file: StoredFile | StoredKey) -> bool:
        return limits.max_age is not None and now - file.used > limits.max_age

    for key in oldest:
        if old(key) and key.key not in limits.keep:
            drop(key, Reason.AGE)
    records = [file for file in stock.records if not old(file)]
    beside = sum(file.size for file in records)
    for key in oldest:
        if limits.max_size is None or need.size + beside <= limits.max_size:
            break
        if key.slots not in gone and key.key not in limits.keep:
            drop(key, Reason.SIZE)
    kept = [key for key in stock.keys if key.slots not in gone]
    blobs = {name for key in kept for name in key.blobs}
    components = {name for key in kept for name in key.components}
    made.blobs = [
        file
        for name, file in stock.blobs.items()
        if name not in blobs and not need.holds(file.inode)
    ]
    made.evidence = [file for name, file in stock.evidence.items() if name not in components]
    # No key names such a record; when it is missing, the next process finds out again.
    made.records = [file for file in stock.records if not kept or old(file)]
    made.after = need.size + (beside if kept else 0)
    if limits.max_size is not None:
        made.over = max(0, made.after - limits.max_size)
    return made


def carry_out(layout: Layout, decided: Plan, progress: Progress) -> None:
    """Remove what was decided; for the store's sole user. OSError where that is not possible."""
    stock = decided.stock
    for path in stock.trash:
        _remove(path)
    crash_points.reach("gc.emptied")
    slots = sum(len(dropped.key.slots) for dropped in decided.dropped)
    total = slots + len(stock.staging) + len(decided.blobs) + len(decided.evidence)
    with progress.of("removing", total) as advance:
        trash = _Trash(layout)
        for path in stock.staging:
            trash.take(path)
        for dropped in decided.dropped:
            for slot in dropped.key.slots:
                trash.take(slot)
            crash_points.reach("gc.key")
        trash.empty(advance)
        _unlink(decided.blobs, "gc.blob", advance)
        _unlink(decided.evidence, "gc.record", advance)
        _unlink([*decided.records, *stock.half_written], "gc.record", lambda _: None)
    for directory in (*stock.directories, layout.trash):
        _remove_directory(directory)
    crash_points.reach("gc.done")


class _Trash:
    """Where dropped slots wait; whatever is in it is no entry of anything."""

    def __init__(self, layout: Layout) -> None:
        self._directory = layout.trash
        self._group = group_bits(layout.root)
        self._taken: list[str] = []

    def take(self, path: str) -> None:
        """Move a slot, or what was to become one, out of every reader's sight."""
        make_directories(self._directory, self._group)
        place = f"{self._directory}/{os.urandom(12).hex()}"
        os.rename(path, place)
        self._taken.append(place)
        crash_points.reach("gc.trashed")

    def empty(self, advance: Advance) -> None:
        """Remove what was moved: what takes longest of all."""
        for path in self._taken:
            _remove(path)
            crash_points.reach("gc.removed")
            advance(1)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        remove_whole_tree(path)
    else:
        os.unlink(path)


def _remove_directory(directory: str) -> None:
    """Remove a directory unless something is in it."""
    with contextlib.suppress(OSError):
        os.rmdir(directory)


def _unlink(files: list[StoredFile], point: str, advance: Advance) -> None:
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file.path)
        crash_points.reach(point)
        advance(1)
