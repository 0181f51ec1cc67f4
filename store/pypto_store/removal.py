"""Removing trees that anybody may have made, of any depth."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(directory: str) -> None:
    """Remove a directory and everything below it; what cannot be removed stays."""
    # Told to ignore errors, `shutil.rmtree` still raises for a status that it cannot read.
    with contextlib.suppress(OSError):
        try:
            shutil.rmtree(directory, ignore_errors=True)
        except RecursionError:
            _remove_level_by_level(directory)


def remove_whole_tree(directory: str) -> None:
    """Remove a directory and everything below it; OSError where that is not possible."""
    try:
        shutil.rmtree(directory)
    except RecursionError:
        _remove_level_by_level(directory)


def _remove_level_by_level(directory: str) -> None:
    """Remove a tree deeper than what can be recursed into, or has descriptors or paths enough.

    Directories are moved up to right below the top one, so that it is never more than two deep.
    """
    top = os.open(directory, _DIRECTORY)
    try:
        while names := os.listdir(top):
            for name in names:
                _remove_level(top, name)
    finally:
        os.close(top)
    os.rmdir(directory)


def _remove_level(top: int, name: str) -> None:
    if not _is_directory(top, name):
        os.unlink(name, dir_fd=top)
        return
    below = os.open(name, _DIRECTORY, dir_fd=top)
    try:
        for child in os.listdir(below):
            if _is_directory(below, child):
                os.rename(child, os.urandom(12).hex(), src_dir_fd=below, dst_dir_fd=top)
            else:
                os.unlink(child, dir_fd=below)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=top)


def _is_directory(above: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
