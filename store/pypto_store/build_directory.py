"""The private directory that a builder fills, and those that killed processes left half filled.

    <parent>/<key>-<random>                  filled by one builder; tools may stage beside it,
    <parent>/.<key>-<random>.*               under names that begin like this
    <parent>/.<key>-<random>.<host>.building locked by the builder's process from before the others
                                             exist until they are published, given up or handed over

Whoever makes a directory first removes those of its parent whose lock file is there, was made on
this running kernel, and is free: their process died while it built. Another host's lock may look
free on a network file system that locks for each host alone. A directory without a lock file
belongs to a caller, living or not, and is never removed. Where the file system cannot lock there
are no lock files, and nothing is cleaned up.
"""

from __future__ import annotations

import contextlib
import os
import re

from pypto_store.layout import DIRECTORY_MODE, make_directories
from pypto_store.locks import FileLock, LockUnavailable, acquire, try_acquire_existing
from pypto_store.removal import remove_tree

_SUFFIX = ".building"
_LOCK_NAME = re.compile(r"\.([0-9a-f]{16}-[0-9a-f]{16})\.([0-9a-f]{8})\.building")
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
# Seconds. Only somebody who looks for left-overs can be in the way, and leaves at once.
_PATIENCE = 5.0


class BuildDirectory:
    """One directory with mode 0700, from when it is made until it is kept or discarded."""

    __slots__ = ("_lock", "_made_parents", "path")

    def __init__(self, parent: str, name: str) -> None:
        """Make `<parent>/<name>-<random>`, and the parent if need be; OSError if that fails.

        parent: absolute. name: 16 hexadecimal digits.
        """
        name = f"{name}-{os.urandom(8).hex()}"
        self.path = f"{parent}/{name}"
        self._made_parents: list[str] = []
        self._lock: FileLock | None = None
        try:
            host = _host()
            self._make(parent, host, f"{parent}/.{name}.{host}{_SUFFIX}")
        except BaseException:
            self.discard()
            raise

    def _make(self, parent: str, host: str, lock: str) -> None:
        while True:
            self._made_parents += make_directories(parent)
            _sweep(parent, host)
            if self._lock is None and host:
                self._lock = _lock(lock)
            # Another build may just have removed the parent that it had made.
            with contextlib.suppress(FileNotFoundError):
                os.mkdir(self.path, DIRECTORY_MODE)
                return

    def keep(self) -> str:
        """Hand the directory over to the caller; gives its path."""
        self._drop_lock()
        return self.path

    def discard(self) -> None:
        """Remove it, and the parents made for it unless others use them now."""
        remove_tree(self.path)
        self._drop_lock()
        with contextlib.suppress(OSError):
            for parent in reversed(self._made_parents):
                os.rmdir(parent)

    def _drop_lock(self) -> None:
        # A child that the builder forked does not own it, and leaves it to its parent.
        if self._lock is not None and self._lock.owned():
            # While it is locked: who finds it locked leaves it, who finds it free must not.
            with contextlib.suppress(OSError):
                os.unlink(self._lock.path)
            self._lock.release()


def _host() -> str:
    """Which running kernel this is, in 8 digits; empty where that cannot be read."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read(8)
    except (OSError, ValueError):
        return ""


def _lock(path: str) -> FileLock | None:
    try:
        return acquire(path, shared=False, timeout=_PATIENCE)
    except LockUnavailable:
        # Before the directory is there: a free lock file would give it up to whoever comes next.
        with contextlib.suppress(OSError):
            os.unlink(path)
        return None


def _sweep(parent: str, host: str) -> None:
    """Remove the directories that killed processes were filling. Trouble is for the next one."""
    with contextlib.suppress(OSError):
        with os.scandir(parent) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            if (found := _LOCK_NAME.fullmatch(name)) and found[2] == host:
                _sweep_one(parent, found[1], name, names)


def _sweep_one(parent: str, name: str, lock_name: str, present: list[str]) -> None:
    try:
        lock = try_acquire_existing(f"{parent}/{lock_name}")
    except LockUnavailable:
        return
    if lock is None:
        return
    with lock:
        for other in present:
            if other == name or other.startswith(f".{name}."):
                if other.endswith(_SUFFIX):
                    continue
                remove_tree(f"{parent}/{other}")
        # Last, and while it is locked: until then the next one can go on from here.
        os.unlink(lock.path)
