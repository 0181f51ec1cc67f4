"""The bundle that a command reads, and where its contents lie meanwhile."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from pypto_store.bundle.unpacking import Contents, unpack
from pypto_store.removal import remove_tree
from pypto_store.tools.answer import CommandError, Surroundings
from pypto_store.tools.quantities import size

STREAM = "-"
_STANDARD_INPUT = 0
_LIMIT = 16 * 1024**3


def add_arguments(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """What a bundle may take, and where."""
    parser.add_argument(
        "--max-size",
        metavar="SIZE",
        type=size,
        default=_LIMIT,
        help="refuse entries of more than this together, as 500M or 40G (default: 16G)",
    )
    add_scratch(parser)


def add_scratch(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Where a command may keep what it has not put anywhere yet."""
    parser.add_argument(
        "--scratch",
        metavar="DIRECTORY",
        help="where contents lie before they have their place (default: $TMPDIR or /tmp)",
    )


@contextmanager
def scratch_directory(given: str | None, surroundings: Surroundings, prefix: str) -> Iterator[str]:
    """A directory of our own outside the store, removed afterwards."""
    parent = surroundings.temporary
    if given is not None:
        parent = os.path.join(surroundings.cwd, given)
    if surroundings.root:
        root = os.path.realpath(surroundings.root)
        if f"{os.path.realpath(parent)}/".startswith(f"{root}/"):
            raise CommandError(f"{parent} lies in the store itself; name another with --scratch")
    directory = tempfile.mkdtemp(prefix=prefix, dir=parent)
    try:
        yield directory
    finally:
        remove_tree(directory)


def read_bundle(given: str, limit: int, surroundings: Surroundings, scratch: str) -> Contents:
    """The whole bundle, verified, with its contents below `scratch`; BundleError."""
    directory = f"{scratch}/contents"
    os.mkdir(directory, 0o700)
    told = "reading the bundle"
    with (
        _source(given, surroundings.cwd) as (source, packed),
        surroundings.progress.of_bytes(told, packed) as advance,
    ):
        return unpack(source, directory, limit, advance)


@contextmanager
def _source(given: str, cwd: str) -> Iterator[tuple[BinaryIO, int]]:
    """The bundle and its size in bytes, 0 where that is not known."""
    if given == STREAM:
        with open(_STANDARD_INPUT, "rb", closefd=False) as stream:
            yield stream, 0
        return
    with open(os.path.join(cwd, given), "rb") as file:
        yield file, os.fstat(file.fileno()).st_size
