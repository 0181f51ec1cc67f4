"""Directories that are made once: under a lock, in place, complete when their marker is there.

In place, because what is made here (virtual environments, patched programs) holds its own absolute
path and cannot be renamed into position. The marker is written last, so an interrupted step leaves
a directory that the next run removes and makes again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bootstrap.failure import SetupError
from bootstrap.progress import Progress

MARKER = ".complete"


@contextmanager
def locked(path: Path, progress: Progress) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; says so when another process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note(f"waiting for another bazelw that sets up {path.stem}")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def is_complete(directory: Path) -> bool:
    """Whether a step that makes ``directory`` has finished."""
    return (directory / MARKER).is_file()


def make_once(
    directory: Path, lock: Path, progress: Progress, make: Callable[[Path], None]
) -> Path:
    """Let ``make`` fill ``directory`` unless an earlier run has finished doing so."""
    if is_complete(directory):
        return directory
    with locked(lock, progress):
        if is_complete(directory):
            return directory
        remove_tree(directory)
        directory.mkdir(parents=True)
        make(directory)
        with (directory / MARKER).open("w") as stream:
            os.fsync(stream.fileno())
    return directory


def remove_tree(directory: Path) -> None:
    """Remove a tree, directories without write permission included."""
    for parent, _, _ in os.walk(directory):
        with suppress(OSError):
            Path(parent).chmod(stat.S_IRWXU)
    if directory.exists():
        shutil.rmtree(directory)


def write_atomically(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` so that a reader sees the old or the new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    staged.write_text(text, encoding="utf-8")
    staged.replace(path)


def require_space(directory: Path, needed: int, what: str) -> None:
    """Refuse a step that would fill the disk half way through."""
    existing = directory
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise SetupError(
            f"{what} needs {needed / 1e9:.1f} GB below {directory}; {free / 1e9:.1f} GB are free",
            "free some space or point BAZELW_CACHE at a larger disk",
        )
