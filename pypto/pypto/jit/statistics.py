"""What became of this process's requests, as counters that stay exact under threads and forks."""

from __future__ import annotations

import enum
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheStats:
    """A snapshot of the counters of this process since it started.

    Counters are not mutually exclusive: a disabled diagnostic request counts as disabled and as
    forced. `lookup_ns` is time spent deciding and restoring, `build_ns` time spent building, both
    in nanoseconds without any execution of a kernel.

    What a remote answered is counted by `remote_hits`, `remote_misses` and `remote_errors`; a
    request that it answers is a miss of the root all the same. `remote_fetch_ns` is how long
    requests waited for it, whatever it said, and `remote_upload_ns` how long uploads took, most of
    them in the background. Bytes are those of payloads that came, and of all that was sent.
    """

    requests: int = 0
    object_hits: int = 0
    ready_hits: int = 0
    generated_hits: int = 0
    misses: int = 0
    disabled_requests: int = 0
    forced_rebuilds: int = 0
    bypasses: int = 0
    last_bypass_reason: str | None = None
    invalid_entries: int = 0
    storage_errors: int = 0
    generation_builds: int = 0
    binary_builds: int = 0
    lookup_ns: int = 0
    build_ns: int = 0
    remote_hits: int = 0
    remote_misses: int = 0
    remote_errors: int = 0
    last_remote_error: str | None = None
    remote_uploads: int = 0
    remote_download_bytes: int = 0
    remote_upload_bytes: int = 0
    remote_fetch_ns: int = 0
    remote_upload_ns: int = 0


class Counter(enum.IntEnum):
    """The counters, by position; each name in lower case is a field of `CacheStats`."""

    REQUESTS = 0
    OBJECT_HITS = 1
    READY_HITS = 2
    GENERATED_HITS = 3
    MISSES = 4
    DISABLED_REQUESTS = 5
    FORCED_REBUILDS = 6
    INVALID_ENTRIES = 7
    STORAGE_ERRORS = 8
    GENERATION_BUILDS = 9
    BINARY_BUILDS = 10
    LOOKUP_NS = 11
    BUILD_NS = 12
    REMOTE_HITS = 13
    REMOTE_MISSES = 14
    REMOTE_ERRORS = 15
    REMOTE_UPLOADS = 16
    REMOTE_DOWNLOAD_BYTES = 17
    REMOTE_UPLOAD_BYTES = 18
    REMOTE_FETCH_NS = 19
    REMOTE_UPLOAD_NS = 20

    @property
    def field(self) -> str:
        """The field of `CacheStats` that shows it."""
        return self.name.lower()


# Plain numbers, because an enumeration's members take longer to look up than a live call has.
_REQUESTS = int(Counter.REQUESTS)
_OBJECT_HITS = int(Counter.OBJECT_HITS)
_DISABLED_REQUESTS = int(Counter.DISABLED_REQUESTS)
_LOOKUP_NS = int(Counter.LOOKUP_NS)


class Statistics:
    """The counters themselves. A forked child starts with its parent's values."""

    __slots__ = ("_bypasses", "_counts", "_lock", "_reason", "_remote_error")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * len(Counter)
        self._bypasses = 0
        self._reason: str | None = None
        self._remote_error: str | None = None
        # No fork may happen while another thread is half way through an update: the child would
        # inherit a lock that nobody releases.
        os.register_at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._lock.release,
        )

    def add(self, counter: Counter, amount: int = 1) -> None:
        """Raise one counter."""
        with self._lock:
            self._counts[counter] += amount

    def add_all(self, amounts: Mapping[Counter, int]) -> None:
        """Raise several counters at one moment."""
        with self._lock:
            for counter, amount in amounts.items():
                self._counts[counter] += amount

    def live_call(self, disabled: bool, spent_ns: int) -> None:
        """Count a request that a live object answered, all of it at once."""
        counts = self._counts
        with self._lock:
            counts[_REQUESTS] += 1
            counts[_OBJECT_HITS] += 1
            counts[_LOOKUP_NS] += spent_ns
            if disabled:
                counts[_DISABLED_REQUESTS] += 1

    def bypass(self, reason: str) -> None:
        """Count a bypass and keep its reason as the latest."""
        with self._lock:
            self._bypasses += 1
            self._reason = reason

    def remote_fault(self, reason: str) -> None:
        """Count a request to a remote that failed, and keep its reason as the latest."""
        with self._lock:
            self._counts[Counter.REMOTE_ERRORS] += 1
            self._remote_error = reason

    def snapshot(self) -> CacheStats:
        """All counters at one moment."""
        with self._lock:
            counts = {counter.field: self._counts[counter] for counter in Counter}
            return CacheStats(
                **counts,
                bypasses=self._bypasses,
                last_bypass_reason=self._reason,
                last_remote_error=self._remote_error,
            )
