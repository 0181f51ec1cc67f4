"""The file that a command makes beside its answer: complete under its name, or not there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from pypto_store import crash_points
from pypto_store.tools.answer import CommandError, Surroundings

STREAM = "-"
STANDARD_OUTPUT = 1


def output_place(given: str, surroundings: Surroundings) -> str:
    """Where a command may write: an absolute path, or STREAM for standard output.

    CommandError for a place inside the store, which holds nothing but its own, and for a directory.
    """
    if given == STREAM:
        return given
    place = os.path.join(surroundings.cwd, given)
    if surroundings.root:
        root = os.path.realpath(surroundings.root)
        if os.path.realpath(place).startswith(f"{root}/"):
            raise CommandError(f"{place} lies in the store itself; write it somewhere else")
    if os.path.isdir(place):
        raise CommandError(f"{place} is a directory; name a file")
    return place


@contextmanager
def written(place: str) -> Iterator[BinaryIO]:
    """A stream to `place`. A file gets its name when it is complete and on disk.

    A pipe or a device is written to as it is. OSError as writing raises it; then a file that was
    there before is still there, and nothing else.
    """
    if place == STREAM:
        with open(STANDARD_OUTPUT, "wb", closefd=False) as stream:
            yield stream
        return
    if _is_special(place):
        with open(place, "wb") as stream:
            yield stream
        return
    # Behind a link, so that the link stays one.
    target = os.path.realpath(place)
    parent, name = os.path.split(target)
    temporary = os.path.join(parent, f".{name}.{os.urandom(8).hex()}.partial")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        crash_points.reach("output.complete")
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    crash_points.reach("output.named")


def _is_special(place: str) -> bool:
    """Whether something is there that a rename would take away from others, as /dev/null."""
    try:
        return not stat.S_ISREG(os.stat(place).st_mode)
    except FileNotFoundError:
        return False
