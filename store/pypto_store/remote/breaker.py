"""Not asking a remote that does not answer: what was found out once is not paid for every time.

A Breaker has two circuits, because a remote that is full or only lets itself be read is as good as
any to read from. A closed circuit lets everything through. It opens

    after 3 faults in a row of one kind of operation that speak of the server: RemoteUnavailable,
        and RemoteProtocolError, which is some other server than the one that was meant
    at once, when a request took too long as a whole (it was 3 timeouts by then)
    at once, when the remote refuses something: reading for the usual time, because credentials
        are renewed; writing for good, because nobody wants a refusal for every upload

and then answers everything by NotAsked, without a word to the remote. After a while one operation
is let through as a trial: if it succeeds the circuit is closed. The while is 30 s, or ten times
what the last fault took where that is more (10 minutes at most), so that a remote which swallows
requests until their timeout takes a tenth of anybody's time and not most of it.

Faults are counted by kind of operation, since a remote that has entries but hangs on blobs, or
takes small blobs but no large ones, would otherwise begin at one with every entry. A blob or an
entry that is wrong (CorruptBlob) is no reason not to ask for another.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pypto_store.remote.blob_store import (
    CorruptBlob,
    RemoteFault,
    RemoteRefused,
    RemoteUnavailable,
)
from pypto_store.remote.time_limit import TookTooLong

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pypto_store.remote.blob_store import (
        BlobDigest,
        BlobStore,
        BlobStream,
        Engine,
        EntryIndex,
        Source,
    )

FAULTS = 3  # in a row
PAUSE = 30.0  # seconds
LONGEST_PAUSE = 600.0  # seconds
_PATIENCE = 10  # times what the last fault took
_SECOND = 1_000_000_000  # nanoseconds


class NotAsked(RemoteUnavailable):
    """The remote was not asked, because of what happened before, which `reason` repeats."""


class Circuit:
    """Whether one direction of a remote is used. For any number of threads.

    url: the remote, for faults; without credentials. clock: nanoseconds that only grow.
    final: a refusal is for good.
    """

    def __init__(self, url: str, clock: Callable[[], int], *, final: bool) -> None:
        self.clock = clock
        self._url = url
        self._final = final
        self._faults: dict[str, int] = {}  # in a row, by kind of operation
        self._open = False
        self._until = 0
        self._cause = ""
        self._trying = False
        self._refused = False
        self._lock = threading.Lock()

    @property
    def refused(self) -> bool:
        """Whether it is open for good."""
        return self._refused

    def forked(self) -> None:
        """Go on in the child of a fork: what was locked and tried, was by other threads."""
        self._lock = threading.Lock()
        self._trying = False

    @contextmanager
    def passing(self, kind: str, operation: str, *, whole: bool = True) -> Iterator[None]:
        """Run an operation of a kind; NotAsked when it is not to be run now.

        whole: when it ends well it is over; else `heard` tells what becomes of the rest.
        """
        trial = self._admit(operation)
        begun = self.clock()
        try:
            yield
        except RemoteFault as fault:
            self.heard(kind, fault, self.clock() - begun, trial=trial)
            raise
        else:
            if whole:
                self.heard(kind)
            if trial:
                self._open = False
        finally:
            if trial:
                self._trying = False

    def heard(
        self, kind: str, fault: RemoteFault | None = None, took: int = 0, *, trial: bool = False
    ) -> None:
        """An operation of a kind ended, well or with a fault after `took` nanoseconds."""
        with self._lock:
            if fault is None or isinstance(fault, CorruptBlob):
                self._faults[kind] = 0
                self._open = self._open and not trial
                return
            if isinstance(fault, TookTooLong):
                took = int(fault.seconds * _SECOND)
            self._faults[kind] = self._faults.get(kind, 0) + 1
            at_once = trial or isinstance(fault, (TookTooLong, RemoteRefused))
            if at_once or self._faults[kind] >= FAULTS:
                pause = min(max(PAUSE * _SECOND, took * _PATIENCE), LONGEST_PAUSE * _SECOND)
                self._until = self.clock() + int(pause)
                self._cause = f"{fault.operation}: {fault.reason}"
                self._refused = self._refused or (self._final and isinstance(fault, RemoteRefused))
                self._open = True

    def _admit(self, operation: str) -> bool:
        """Whether the operation is a trial; NotAsked when there is to be none."""
        with self._lock:
            if not self._open:
                return False
            left = self._until - self.clock()
            if left <= 0 and not self._trying and not self._refused:
                self._trying = True
                return True
            when = f"for {left / _SECOND:.0f} s" if left > 0 else "before a trial has ended"
            raise NotAsked(
                url=self._url,
                operation=operation,
                reason=f"not asked {'again' if self._refused else when}, after {self._cause}",
                remedy="see to what happened there; until then everything is built here",
            )


class Breaker:
    """What a process knows of whether a remote answers; arguments as of a Circuit."""

    def __init__(self, url: str, clock: Callable[[], int]) -> None:
        self.reads = Circuit(url, clock, final=False)
        self.writes = Circuit(url, clock, final=True)

    def forked(self) -> None:
        """Go on in the child of a fork."""
        self.reads.forked()
        self.writes.forked()


class BreakingEngine:
    """Another engine that is only asked while its breaker lets it."""

    def __init__(self, inner: Engine, breaker: Breaker) -> None:
        self.blobs = _BreakingBlobs(inner.blobs, breaker)
        self.entries = _BreakingEntries(inner.entries, breaker)
        self._inner = inner

    def close(self) -> None:
        """Close the other engine."""
        self._inner.close()


class _BreakingBlobs:
    """`find_missing` is a step of writing: who may only read may be refused it."""

    def __init__(self, inner: BlobStore, breaker: Breaker) -> None:
        self._inner = inner
        self._reads = breaker.reads
        self._writes = breaker.writes

    def get(self, digest: BlobDigest) -> BlobStream | None:
        begun = self._reads.clock()
        with self._reads.passing("get blob", f"get blob {digest}", whole=False):
            stream = self._inner.get(digest)
        if stream is None:
            self._reads.heard("get blob")
            return None
        return _WatchedStream(stream, digest.size, self._reads, begun)

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        with self._reads.passing("get blobs", f"get {len(digests)} blobs"):
            return self._inner.get_many(digests)

    def put(self, digest: BlobDigest, source: Source) -> None:
        with self._writes.passing("put blob", f"put blob {digest}"):
            self._inner.put(digest, source)

    def put_many(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        with self._writes.passing("put blobs", f"put {len(blobs)} blobs"):
            self._inner.put_many(blobs)

    def find_missing(self, digests: Collection[BlobDigest]) -> frozenset[BlobDigest]:
        with self._writes.passing("find blobs", f"find {len(digests)} blobs"):
            return self._inner.find_missing(digests)


class _BreakingEntries:
    def __init__(self, inner: EntryIndex, breaker: Breaker) -> None:
        self._inner = inner
        self._reads = breaker.reads
        self._writes = breaker.writes

    def get(self, name: BlobDigest) -> bytes | None:
        with self._reads.passing("get entry", f"get entry {name}"):
            return self._inner.get(name)

    def put(self, name: BlobDigest, entry: bytes) -> None:
        with self._writes.passing("put entry", f"put entry {name}"):
            self._inner.put(name, entry)


class _WatchedStream:
    """A blob that is being read; its circuit hears whether all of it came."""

    def __init__(self, inner: BlobStream, size: int, circuit: Circuit, begun: int) -> None:
        self._inner = inner
        self._left = size
        self._circuit = circuit
        self._begun = begun

    def read(self, size: int, /) -> bytes:
        try:
            piece = self._inner.read(size)
        except RemoteFault as fault:
            self._circuit.heard("get blob", fault, self._circuit.clock() - self._begun)
            raise
        before, self._left = self._left, self._left - len(piece)
        if before > 0 >= self._left:
            self._circuit.heard("get blob")
        return piece

    def close(self) -> None:
        self._inner.close()
