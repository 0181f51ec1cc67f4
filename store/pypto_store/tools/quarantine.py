"""Putting damaged things aside: moved, never deleted, each with a note.

    <root>/quarantine/<time>-<random>/<number>.json   what it was, where, and what is wrong with it
    <root>/quarantine/<time>-<random>/<number>        the thing itself

The note is written first, so that nothing is ever aside without one; a note without a thing says
that the run was interrupted before it was moved. Nothing of ours reads the place again.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

from pypto_store import crash_points
from pypto_store.entry import write_all
from pypto_store.layout import (
    FILE_MODE,
    Layout,
    group_bits,
    make_directories,
    make_directory,
    make_file,
)
from pypto_store.tools.inspection import Finding

SCHEMA = 1
_WRITE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW


class Quarantine:
    """The quarantine of one run, made when it is first needed. For the store's sole user.

    now: seconds since the epoch.
    """

    def __init__(self, layout: Layout, now: float) -> None:
        self._layout = layout
        self._group = group_bits(layout.root)
        self._now = datetime.fromtimestamp(now, tz=UTC)
        self._directory: str | None = None
        self._count = 0

    def take(self, finding: Finding) -> str:
        """Move what was found aside; gives where it is now. OSError if it cannot be moved."""
        if self._directory is None:
            make_directories(self._layout.quarantine, self._group)
            name = f"{self._now:%Y%m%dT%H%M%SZ}-{os.urandom(4).hex()}"
            directory = f"{self._layout.quarantine}/{name}"
            make_directory(directory, self._group)
            self._directory = directory
        self._count += 1
        place = f"{self._directory}/{self._count}"
        self._note(f"{place}.json", finding)
        crash_points.reach("fsck.noted")
        os.rename(finding.path, place)
        crash_points.reach("fsck.moved")
        return place

    def _note(self, path: str, finding: Finding) -> None:
        note = {
            "schema": SCHEMA,
            "found": self._now.isoformat(timespec="seconds"),
            "what": finding.what,
            "path": finding.path,
            "reason": finding.reason,
        }
        descriptor = make_file(path, _WRITE, FILE_MODE, self._group & ~0o020)
        try:
            write_all(descriptor, json.dumps(note, indent=2, sort_keys=True).encode() + b"\n")
        finally:
            os.close(descriptor)
