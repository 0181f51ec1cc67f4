"""Uploads in the background: one thread for as long as there is something to do, then none.

At the end of the process what waits is still done, within a bound: when the main thread ends, and
once more when everything else has ended (threads that are no daemons may publish until then). No
thread can be started any more by then, at least by CPython 3.12; the one that is running goes on.

The child of a fork has its own thread and begins with nothing: what waits is its parent's. A
process that is killed, or ends by os._exit, does nothing further.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WAITING = 256  # jobs; each is an entry's manifest in memory, with its files of up to 4 KiB
_CANCELLED = 1.0  # seconds for the job that is under way to notice that it was cancelled


class Uploads:
    """Jobs that are run one after another by another thread. Safe for threads and across fork.

    Jobs raise nothing. patience: seconds that the end of the process waits for them.
    abandon: called when that was not enough, to end the job that is under way; may call `close`.
    """

    def __init__(
        self, *, patience: float, abandon: Callable[[], object], waiting: int = WAITING
    ) -> None:
        self._patience = patience
        self._abandon = abandon
        self._limit = waiting
        self._closed = False
        self._abandoned = False
        self._begin_empty()
        _all_uploads.add(self)

    def _begin_empty(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._jobs: deque[Callable[[], None]] = deque()
        self._running = False

    def submit(self, job: Callable[[], None]) -> bool:
        """Have `job` run; False when too many wait, or when there is no thread to be had."""
        with self._changed:
            if self._closed or len(self._jobs) >= self._limit:
                return False
            self._jobs.append(job)
            if not self._running:
                thread = threading.Thread(target=self._run, name="pypto-upload", daemon=True)
                self._running = True
                try:
                    thread.start()
                except RuntimeError:  # the interpreter is shutting down, or there are too many
                    self._running = False
                    self._jobs.pop()
                    return False
                except BaseException:  # an interrupt; nobody else would run what comes later
                    self._running = thread.is_alive()
                    raise
            return True

    def _run(self) -> None:
        changed = self._changed
        while True:
            with changed:
                if not self._jobs:
                    self._running = False
                    changed.notify_all()
                    return
                job = self._jobs.popleft()
            try:
                job()
            except BaseException:
                with changed:
                    self._running = False
                    changed.notify_all()
                raise
            # What it refers to may go now, not when the next one comes.
            del job

    def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until every job has been run; whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, timeout)

    def close(self) -> int:
        """Take no more jobs and forget those that wait; how many they were."""
        with self._changed:
            self._closed = True
            dropped = len(self._jobs)
            self._jobs.clear()
        return dropped

    def finish(self, end: float) -> None:
        """Run what waits until `end` (of time.monotonic) at most, and then nothing any more."""
        if self._abandoned:
            return
        try:
            left = min(self._patience, max(0.0, end - time.monotonic()))
            if self.flush(left):
                return
        except KeyboardInterrupt:
            pass  # whoever interrupts the end wants it now
        self._abandoned = True
        with suppress(KeyboardInterrupt):
            self._abandon()
            self.close()
            self.flush(_CANCELLED)


_all_uploads: weakref.WeakSet[Uploads] = weakref.WeakSet()


def _begin_empty_in_child() -> None:
    for uploads in _all_uploads:
        uploads._begin_empty()


def _finish_all() -> None:
    pending = list(_all_uploads)
    end = time.monotonic() + max((uploads._patience for uploads in pending), default=0.0)
    for uploads in pending:
        uploads.finish(end)


os.register_at_fork(after_in_child=_begin_empty_in_child)
# The first is what multiprocessing has run at the end of its children, which run no atexit; it is
# private, so that it may be gone some day, and refuses who is imported during the end.
with suppress(AttributeError, RuntimeError):
    threading._register_atexit(_finish_all)  # type: ignore[attr-defined]
atexit.register(_finish_all)
