"""Where private output goes: beside the user's work, and never inside a cache."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pypto.runtime.host import BUILD_DIRECTORY_VARIABLE, build_parent

TEMPORARY_VARIABLE = "TMPDIR"


def private_parent(environ: Mapping[str, str], cwd: str, root: str | None) -> str:
    """The directory below which private builds and run-time output go; it may not exist.

    That is `build_output` of the working directory, or what the environment names. If it lies in
    the cache, it is a directory with an unpredictable name outside; whoever makes it uses mode
    0700. No directory is probed.
    """
    parent = str(build_parent(environ, cwd))
    if root is None or not _lies_in(parent, root):
        return parent
    return os.path.join(temporary_parent(environ, root), f"pypto-{secrets.token_hex(16)}")


def temporary_parent(environ: Mapping[str, str], root: str | None) -> str:
    """The directory below which temporary files go: TMPDIR unless it is relative or in the cache.

    It is not probed.
    """
    named = environ.get(TEMPORARY_VARIABLE, "")
    if os.path.isabs(named) and (root is None or not _lies_in(named, root)):
        return named
    return "/tmp"  # noqa: S108 - only the parent of directories with random names


@contextmanager
def writing_below(parent: str) -> Iterator[None]:
    """Say what to do where private output cannot be written; `parent` is where it goes."""
    try:
        yield
    except OSError as error:
        place = error.filename
        if (
            isinstance(place, str)
            and place
            and (place.startswith(parent) or parent.startswith(place))
        ):
            told = f"{error.strerror}; {BUILD_DIRECTORY_VARIABLE} names another place for it"
            raise OSError(error.errno, told, place) from error
        raise


def _lies_in(path: str, root: str) -> bool:
    real, top = os.path.realpath(path), os.path.realpath(root)
    return real == top or real.startswith(top.rstrip("/") + "/")


def fresh_directory(parent: str, name: str) -> str:
    """A path below `parent` that is nobody's: `name` and an opaque suffix. It is not made."""
    return os.path.join(parent, f"{name}_{secrets.token_hex(8)}")
