"""A remote that is two dictionaries in this process: for tests, which may reach into them."""

from __future__ import annotations

import io
from contextlib import closing

from pypto_store.remote.blob_store import (
    CHUNK,
    BlobDigest,
    BlobStream,
    Engine,
    Source,
    check_entry_size,
)
from pypto_store.remote.one_by_one import OneByOneBlobs
from pypto_store.remote.verifying import VerifyingBlobs


class MemoryRemote:
    """What is stored: `held` by digest, `entries` by name. It lasts as long as this object."""

    def __init__(self) -> None:
        self.held: dict[BlobDigest, bytes] = {}
        self.entries: dict[BlobDigest, bytes] = {}

    def open(self) -> Engine:
        """A new engine, verifying as one of `open_engine` is."""
        return _MemoryEngine(self)

    def copy(self) -> MemoryRemote:
        """Another remote that has the same now."""
        other = MemoryRemote()
        other.held.update(self.held)
        other.entries.update(self.entries)
        return other


class _MemoryEngine:
    def __init__(self, remote: MemoryRemote) -> None:
        self.blobs = VerifyingBlobs(_MemoryBlobs(remote.held), "memory:")
        self.entries = _MemoryEntries(remote.entries)

    def close(self) -> None:
        """Nothing is held open."""


class _MemoryBlobs(OneByOneBlobs):
    def __init__(self, held: dict[BlobDigest, bytes]) -> None:
        self._held = held

    def get(self, digest: BlobDigest) -> BlobStream | None:
        data = self._held.get(digest)
        return None if data is None else io.BytesIO(data)

    def put(self, digest: BlobDigest, source: Source) -> None:
        with closing(source()) as stream:
            self._held[digest] = b"".join(iter(lambda: stream.read(CHUNK), b""))

    def is_missing(self, digest: BlobDigest) -> bool:
        return digest not in self._held


class _MemoryEntries:
    def __init__(self, entries: dict[BlobDigest, bytes]) -> None:
        self._entries = entries
        self.get = entries.get

    def put(self, name: BlobDigest, entry: bytes) -> None:
        check_entry_size(entry)
        self._entries[name] = entry
