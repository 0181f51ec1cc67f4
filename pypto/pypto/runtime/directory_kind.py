"""What kind of build an output directory is, read from its marker files alone.

A compile writes the markers of its own kind and drops those of every other, so that a directory
that is used again stands for the build that ran last, or for none. Artifacts are never deleted.
"""

from __future__ import annotations

import enum
from pathlib import Path

# Where the programs of a build with several are, each a build of its own.
CHILDREN = "next_levels"

SINGLE_MARKERS = ("kernel_config.py", "kernel_config.json", "compiled_meta.json")
DISTRIBUTED_MARKERS = ("orchestration/host_orch.py", "distributed_meta.json")
MARKERS = (*SINGLE_MARKERS, *DISTRIBUTED_MARKERS)


class DirectoryKind(enum.Enum):
    """One chip, several chips, or neither: then it is no build, or only its children are."""

    SINGLE = "single"
    DISTRIBUTED = "distributed"
    NONE = "none"


def kind_of(directory: Path) -> DirectoryKind:
    """The kind of the build that ran last in ``directory``."""
    if any((directory / name).exists() for name in ("kernel_config.py", "kernel_config.json")):
        return DirectoryKind.SINGLE
    if (directory / DISTRIBUTED_MARKERS[0]).exists():
        return DirectoryKind.DISTRIBUTED
    return DirectoryKind.NONE


def children_of(directory: Path) -> tuple[str, ...]:
    """The builds below a directory that can be loaded, by name; for messages."""
    try:
        found = sorted(path for path in (directory / CHILDREN).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(path.name for path in found if kind_of(path) is DirectoryKind.SINGLE)


def where_to_look(directory: Path) -> str:
    """What to do with a directory that is no build: its children, or compiling it again."""
    children = children_of(directory)
    if children:
        names = ", ".join(f"{CHILDREN}/{name}" for name in children)
        return f"it holds several programs; use one of {names}"
    return "is this a directory that ir.compile() wrote?"
