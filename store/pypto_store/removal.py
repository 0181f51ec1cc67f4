"""Removing what nobody needs any more, as far as it lets itself be removed."""

from __future__ import annotations

import contextlib
import shutil


def remove_tree(directory: str) -> None:
    """Remove a directory and everything below it; what cannot be removed stays.

    Told to ignore errors, `shutil.rmtree` still raises for a status that it cannot read, and for
    a tree deeper than the interpreter's recursion.
    """
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(directory, ignore_errors=True)
