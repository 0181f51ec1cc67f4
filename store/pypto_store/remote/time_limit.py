"""An end for the whole of a request, which is many exchanges with a remote.

Every exchange ends in time by itself (RemoteConfig.timeout, and more for large blobs). A server
that uses up the time of each would still hold a request up for as many timeouts as an entry has
blobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto_store.remote.blob_store import SLOWEST, RemoteUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pypto_store.remote.blob_store import (
        BlobDigest,
        BlobStore,
        BlobStream,
        Engine,
        EntryIndex,
        Source,
    )

_SECOND = 1_000_000_000  # nanoseconds


class TookTooLong(RemoteUnavailable):
    """Every answer came in time, but all of them together did not. `seconds`: what they took."""

    def __init__(self, *, url: str, operation: str, seconds: float) -> None:
        super().__init__(
            url=url,
            operation=operation,
            reason=f"the whole request has taken {seconds:.3g} s, and there is more to ask for",
            remedy="see whether the server is overloaded, or raise RemoteConfig.timeout",
        )
        self.seconds = seconds


class TimeLimit:
    """`seconds` from now on, and more for the bytes that are moved. clock: nanoseconds."""

    def __init__(self, url: str, clock: Callable[[], int], seconds: float) -> None:
        self._url = url
        self._clock = clock
        self._begun = clock()
        self._left = seconds * _SECOND

    def check(self, operation: str, size: int = 0) -> None:
        """TookTooLong when the time is up; else there is more of it, for `size` bytes."""
        taken = self._clock() - self._begun
        if taken > self._left:
            raise TookTooLong(url=self._url, operation=operation, seconds=taken / _SECOND)
        self._left += size * _SECOND / SLOWEST


class TimeLimitedEngine:
    """Another engine, for one request.

    No exchange begins, and no piece of a blob is read, when the time is up: the request ends with
    the exchange that is under way then.
    """

    def __init__(self, inner: Engine, limit: TimeLimit) -> None:
        self.blobs = _TimeLimitedBlobs(inner.blobs, limit)
        self.entries = _TimeLimitedEntries(inner.entries, limit)
        self._inner = inner

    def close(self) -> None:
        """Close the other engine."""
        self._inner.close()


class _TimeLimitedBlobs:
    def __init__(self, inner: BlobStore, limit: TimeLimit) -> None:
        self._inner = inner
        self._limit = limit

    def get(self, digest: BlobDigest) -> BlobStream | None:
        operation = f"get blob {digest}"
        self._limit.check(operation, digest.size)
        stream = self._inner.get(digest)
        return stream and _TimeLimitedStream(stream, self._limit, operation)

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        size = sum(digest.size for digest in digests)
        self._limit.check(f"get {len(digests)} blobs", size)
        return self._inner.get_many(digests)

    def put(self, digest: BlobDigest, source: Source) -> None:
        self._limit.check(f"put blob {digest}", digest.size)
        self._inner.put(digest, source)

    def put_many(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        self._limit.check(f"put {len(blobs)} blobs", sum(map(len, blobs.values())))
        self._inner.put_many(blobs)

    def find_missing(self, digests: Collection[BlobDigest]) -> frozenset[BlobDigest]:
        self._limit.check(f"find {len(digests)} blobs")
        return self._inner.find_missing(digests)


class _TimeLimitedEntries:
    def __init__(self, inner: EntryIndex, limit: TimeLimit) -> None:
        self._inner = inner
        self._limit = limit

    def get(self, name: BlobDigest) -> bytes | None:
        self._limit.check(f"get entry {name}")
        return self._inner.get(name)

    def put(self, name: BlobDigest, entry: bytes) -> None:
        self._limit.check(f"put entry {name}", len(entry))
        self._inner.put(name, entry)


class _TimeLimitedStream:
    def __init__(self, inner: BlobStream, limit: TimeLimit, operation: str) -> None:
        self._inner = inner
        self._limit = limit
        self._operation = operation

    def read(self, size: int, /) -> bytes:
        self._limit.check(self._operation)
        return self._inner.read(size)

    def close(self) -> None:
        self._inner.close()
