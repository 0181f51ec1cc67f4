"""Cache roots as actions hand them on: what of a root is shipped, and copying it."""

from __future__ import annotations

import shutil
from pathlib import Path

from pypto_store.layout import MARKER_NAME
from pypto_toolchains.recall import decode

# Locks are for writers, and blobs only save space where entries are linked to them.
_SHIPPED = ("artifacts", "evidence", "facts", "tools")


def ship(root: Path, out: Path) -> None:
    """Copy to `out` what serves readers of a root and is the same wherever it was made.

    That leaves out identities that were recalled: they name the directories of the process that
    worked them out, which no other process has. What a compiler said when it was asked is kept,
    or every start of a program would ask again.
    """
    copy_file(root / MARKER_NAME, out / MARKER_NAME)
    for name in _SHIPPED:
        for path in sorted((root / name).rglob("*")):
            if path.is_file() and not (name == "tools" and decode(path.read_bytes())):
                copy_file(path, out / path.relative_to(root))


def copy_tree(source: Path, out: Path) -> None:
    """Copy every file below `source`, links followed, into directories that can be written to."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            copy_file(path, out / path.relative_to(source))


def copy_file(source: Path, place: Path) -> None:
    """Copy one file and make the directories on the way; only its execute bits are kept."""
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)
    place.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)
