"""What a client asks of a cache server: requests and bytes, counted around its engine."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypto_store.remote.blob_store import (
        BlobDigest,
        BlobStore,
        BlobStream,
        Engine,
        EntryIndex,
        Source,
    )


@dataclass(slots=True)
class Traffic:
    """What one client asked for, received and sent; bytes."""

    requests: int = 0
    down: int = 0
    up: int = 0


class CountedEngine:
    """Another engine, whose requests and bytes are counted. batched: many blobs are one request."""

    def __init__(self, inner: Engine, traffic: Traffic, *, batched: bool) -> None:
        counter = _Counter(traffic, batched=batched)
        self.blobs: BlobStore = _CountedBlobs(inner.blobs, counter)
        self.entries: EntryIndex = _CountedEntries(inner.entries, counter)
        self._inner = inner
        if batched:
            counter.count(1, 0, 0)  # what the server can do is asked once

    def close(self) -> None:
        """Close the other engine."""
        self._inner.close()


class _Counter:
    def __init__(self, traffic: Traffic, *, batched: bool) -> None:
        self._traffic = traffic
        self._batched = batched
        self._lock = threading.Lock()  # uploads have a thread of their own

    def count(self, blobs: int, down: int, up: int) -> None:
        with self._lock:
            self._traffic.requests += min(blobs, 1) if self._batched else blobs
            self._traffic.down += down
            self._traffic.up += up


class _CountedBlobs:
    def __init__(self, inner: BlobStore, counter: _Counter) -> None:
        self._inner = inner
        self._counter = counter

    def get(self, digest: BlobDigest) -> BlobStream | None:
        stream = self._inner.get(digest)
        self._counter.count(1, digest.size if stream is not None else 0, 0)
        return stream

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        found = self._inner.get_many(digests)
        self._counter.count(len(digests), sum(map(len, found.values())), 0)
        return found

    def put(self, digest: BlobDigest, source: Source) -> None:
        self._inner.put(digest, source)
        self._counter.count(1, 0, digest.size)

    def put_many(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        self._inner.put_many(blobs)
        self._counter.count(len(blobs), 0, sum(map(len, blobs.values())))

    def find_missing(self, digests: Collection[BlobDigest]) -> frozenset[BlobDigest]:
        missing = self._inner.find_missing(digests)
        self._counter.count(len(digests), 0, 0)
        return missing


class _CountedEntries:
    def __init__(self, inner: EntryIndex, counter: _Counter) -> None:
        self._inner = inner
        self._counter = counter

    def get(self, name: BlobDigest) -> bytes | None:
        entry = self._inner.get(name)
        self._counter.count(1, len(entry or b""), 0)
        return entry

    def put(self, name: BlobDigest, entry: bytes) -> None:
        self._inner.put(name, entry)
        self._counter.count(1, 0, len(entry))
