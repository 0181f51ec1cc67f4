"""Advisory locks between processes (flock), safe across fork.

A lock belongs to an open file description, which a forked child shares. So a lock is released by
an explicit unlock, never by closing alone (a child may still hold the description), and a child
closes at birth every descriptor it inherited (or it would keep the lock of a parent that died).
Lock files are never unlinked: two processes could otherwise lock two files of one name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import threading
import time
from typing import TYPE_CHECKING

from pypto_store import crash_points
from pypto_store.layout import FILE_MODE, group_bits, make_directories, make_file

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds after which a waiter says who holds the lock. A few are a usual build; after a minute it
# is told as a warning, and again every ten minutes.
_FIRST_NOTICE = 3.0
_NEXT_NOTICE = 60.0
_NOTICE_INTERVAL = 600.0


class LockUnavailable(Exception):
    """A lock could not be had; says which file, why, and what to do."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot lock {path}: {reason}")
        self.path = path
        self.reason = reason


# Descriptors of lock files open in this process. The gate is held while one is opened or closed
# and across a fork, so that the child sees all of them.
_open_descriptors: set[int] = set()
_gate = threading.Lock()


def _close_inherited() -> None:
    for descriptor in _open_descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _open_descriptors.clear()
    _gate.release()


os.register_at_fork(
    before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_close_inherited
)


def _open(path: str, *, create: bool) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with _gate:
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            if not create:
                raise
            descriptor = _make(path, flags, group_bits(os.path.dirname(path)))
        _open_descriptors.add(descriptor)
    return descriptor


def _make(path: str, flags: int, group: int) -> int:
    """Create the lock file, or open the one that somebody has created meanwhile."""
    if not group:
        return os.open(path, flags | os.O_CREAT, FILE_MODE)
    # Under another name first, so that no other user meets it before the group may open it.
    made = f"{path}.{os.urandom(8).hex()}"
    descriptor = make_file(made, flags, FILE_MODE, group)
    try:
        os.link(made, path)
    except OSError:
        # Somebody was faster; or there are no links here, and the next user may have to wait.
        os.close(descriptor)
        return os.open(path, flags | os.O_CREAT, FILE_MODE | group & 0o060)
    finally:
        os.unlink(made)
    return descriptor


def _close(descriptor: int) -> None:
    with _gate:
        if descriptor in _open_descriptors:  # not so in a child, which has closed it already
            _open_descriptors.discard(descriptor)
            # Closed even if it says that it failed, and nothing was ever written to it.
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _unlock(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    _close(descriptor)


class FileLock:
    """A lock held by this process until `release`."""

    __slots__ = ("_descriptor", "_pid", "path")

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._pid = os.getpid()
        self.path = path

    def owned(self) -> bool:
        """Whether the calling process holds it; a child forked meanwhile does not."""
        return self._descriptor >= 0 and self._pid == os.getpid()

    def named(self) -> bool:
        """Whether the file it locks is still the one that others find at its path."""
        return _is_named(self._descriptor, self.path)

    def release(self) -> None:
        """Let others have it. Harmless when repeated, and in a child."""
        if self.owned():
            descriptor, self._descriptor = self._descriptor, -1
            _unlock(descriptor)

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _is_named(descriptor: int, path: str) -> bool:
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (there.st_ino, there.st_dev) == (mine.st_ino, mine.st_dev)


def acquire(path: str, *, shared: bool, timeout: float) -> FileLock:
    """Lock the file at `path`, waiting up to `timeout` seconds for whoever holds it.

    LockUnavailable when it stays taken, or when the file system cannot lock or be written.
    """
    deadline = time.monotonic() + timeout
    lock = _take(path, shared, deadline)
    assert lock is not None
    return lock


def try_acquire(path: str, *, shared: bool) -> FileLock | None:
    """Lock the file at `path` if nobody is in the way, or return None.

    LockUnavailable when the file system cannot lock or be written.
    """
    return _take(path, shared, None)


def try_acquire_existing(path: str) -> FileLock | None:
    """Lock the file at `path` alone; None if there is none, or if somebody has locked it.

    Unlike the others it makes no file. LockUnavailable when the file system cannot lock or be
    written.
    """
    try:
        descriptor = _open(path, create=False)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock = FileLock(descriptor, path)
        except BaseException:
            _close(descriptor)
            raise
        if lock.named():
            return lock
        lock.release()
    except (FileNotFoundError, BlockingIOError):
        pass
    except OSError as error:
        raise LockUnavailable(path, error.strerror or str(error)) from error
    return None


def _take(path: str, shared: bool, deadline: float | None) -> FileLock | None:
    """The lock; None only without a deadline, which means not to wait."""
    operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        while True:
            descriptor = _open_making_parent(path)
            try:
                fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
            except BlockingIOError:
                if deadline is None:
                    _close(descriptor)
                    return None
                _wait(descriptor, operation, path, deadline)
            except BaseException:
                _close(descriptor)
                raise
            try:
                # Someone may have removed the file while we waited (against the rules, or with
                # the whole root): a lock on a file without a name excludes nobody.
                if _is_named(descriptor, path):
                    return FileLock(descriptor, path)
            except BaseException:
                _unlock(descriptor)
                raise
            _unlock(descriptor)
    except OSError as error:
        raise LockUnavailable(path, error.strerror or str(error)) from error


def _open_making_parent(path: str) -> int:
    try:
        return _open(path, create=True)
    except FileNotFoundError:
        parent = os.path.dirname(path)
        make_directories(parent, group_bits(os.path.dirname(parent)))
        return _open(path, create=True)


def _wait(descriptor: int, operation: int, path: str, deadline: float) -> None:
    """Wait for a taken lock; afterwards the descriptor is locked, or closed and an error raised.

    flock has no timeout, and polling would delay every waiter. So a thread waits in flock; if
    the caller gives up first (timeout, Ctrl-C) the thread owns the descriptor and lets go of the
    lock as soon as it gets it.
    """
    waiter = _Waiter(descriptor, operation)
    begin = time.monotonic()
    holder = ""
    try:
        waiter.start()
        for notice in _notices():
            if waiter.finished.wait(max(0.0, min(begin + notice, deadline) - time.monotonic())):
                break
            from pypto_store.lock_holder import describe_holder, report_wait

            if time.monotonic() >= deadline:
                holder = describe_holder(descriptor)[0]
                break
            report_wait(path, descriptor, notice, urgent=notice > _FIRST_NOTICE)
    except BaseException:
        # The lock may have come at the very moment of the interruption, and is nobody's then.
        if waiter.settle() is None:
            _unlock(descriptor)
        raise
    outcome = waiter.settle()
    if isinstance(outcome, OSError):
        raise outcome
    if outcome is not None:
        waited = round(deadline - begin, 2)
        raise LockUnavailable(path, f"{outcome} after {waited:g} s; held by {holder}")


def _notices() -> Iterator[float]:
    """Seconds of waiting after which to say who is waited for."""
    yield _FIRST_NOTICE
    yield from itertools.count(_NEXT_NOTICE, _NOTICE_INTERVAL)


class _Waiter:
    """One blocked flock call and the thread that sits in it."""

    def __init__(self, descriptor: int, operation: int) -> None:
        self.finished = threading.Event()
        self._descriptor = descriptor
        self._operation = operation
        self._mutex = threading.Lock()
        self._abandoned = False
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="pypto-store-lock", daemon=True)

    def start(self) -> None:
        """Begin to wait."""
        try:
            self._thread.start()
        except RuntimeError as error:  # no more threads
            self._error = OSError(errno.EAGAIN, str(error))
            self.finished.set()

    def _run(self) -> None:
        try:
            fcntl.flock(self._descriptor, self._operation)
        except OSError as error:
            self._error = error
        with self._mutex:
            self.finished.set()
            if self._abandoned:
                _unlock(self._descriptor)

    def settle(self) -> OSError | str | None:
        """Take over the locked descriptor (None), or say why there is none."""
        with self._mutex:
            if not self.finished.is_set():
                self._abandoned = True
                return "timed out"
        if self._error is not None:
            _close(self._descriptor)
        return self._error


class WriterLease:
    """The shared lock on a whole store that a process keeps while it may write there.

    Taken once and kept for the life of the process, so that offline cleaning, which wants the
    exclusive lock, sees every possible writer. A forked child takes its own.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._lock: FileLock | None = None
        self._pid = os.getpid()

    def hold(self, path: str, timeout: float) -> None:
        """Make sure this process holds the lock at `path`; LockUnavailable if it cannot."""
        if self._pid != os.getpid():
            # The mutex may have been held by a thread that does not exist in this child.
            self._mutex, self._lock, self._pid = threading.Lock(), None, os.getpid()
        with self._mutex:
            if self._lock is not None:
                if self._lock.path == path and self._lock.named():
                    return
                self._lock.release()
                self._lock = None
            self._lock = acquire(path, shared=True, timeout=timeout)
        crash_points.reach("build.leased")

    def drop(self) -> None:
        """Let it go (for tests and for tools that are done writing)."""
        with self._mutex:
            if self._lock is not None:
                self._lock.release()
                self._lock = None
