"""Engines around others that watch, lose, lie and fail: what entries have to stand up to."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pypto_store.remote.blob_store import (
    BlobDigest,
    BlobStore,
    BlobStream,
    Engine,
    EntryIndex,
    RemoteUnavailable,
    Source,
    read_at_most,
)
from pypto_store.remote.verifying import VerifyingBlobs


@dataclass(frozen=True)
class EngineOf:
    """An engine of two parts."""

    blobs: BlobStore
    entries: EntryIndex

    def close(self) -> None:
        """Nothing is held open."""


class RecordingEngine:
    """Another engine, and what it was asked: (operation, digests) in the order of the calls."""

    def __init__(self, inner: Engine) -> None:
        self.calls: list[tuple[str, tuple[BlobDigest, ...]]] = []
        self.blobs: BlobStore = _RecordingBlobs(inner.blobs, self.calls)
        self.entries: EntryIndex = _RecordingEntries(inner.entries, self.calls)
        self._inner = inner

    def close(self) -> None:
        self._inner.close()

    def operations(self) -> list[str]:
        """The names of the calls."""
        return [operation for operation, _ in self.calls]

    def asked(self, *operations: str) -> list[BlobDigest]:
        """The digests of the calls of these names, all of them and in their order."""
        return [digest for name, digests in self.calls if name in operations for digest in digests]

    @property
    def read(self) -> list[BlobDigest]:
        """The blobs that were asked for."""
        return self.asked("get", "get_many")

    @property
    def written(self) -> list[BlobDigest]:
        """The blobs that were sent."""
        return self.asked("put", "put_many")


class _RecordingBlobs:
    def __init__(self, inner: BlobStore, calls: list[tuple[str, tuple[BlobDigest, ...]]]) -> None:
        self._inner = inner
        self._calls = calls

    def get(self, digest: BlobDigest) -> BlobStream | None:
        self._calls.append(("get", (digest,)))
        return self._inner.get(digest)

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        self._calls.append(("get_many", tuple(digests)))
        return self._inner.get_many(digests)

    def put(self, digest: BlobDigest, source: Source) -> None:
        self._calls.append(("put", (digest,)))
        self._inner.put(digest, source)

    def put_many(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        self._calls.append(("put_many", tuple(blobs)))
        self._inner.put_many(blobs)

    def find_missing(self, digests: Collection[BlobDigest]) -> frozenset[BlobDigest]:
        self._calls.append(("find_missing", tuple(digests)))
        return self._inner.find_missing(digests)


class _RecordingEntries:
    def __init__(self, inner: EntryIndex, calls: list[tuple[str, tuple[BlobDigest, ...]]]) -> None:
        self._inner = inner
        self._calls = calls

    def get(self, name: BlobDigest) -> bytes | None:
        self._calls.append(("get_entry", (name,)))
        return self._inner.get(name)

    def put(self, name: BlobDigest, entry: bytes) -> None:
        self._calls.append(("put_entry", (name,)))
        self._inner.put(name, entry)


class LyingBlobs:
    """Another blob store that gives other streams for some blobs; None: it has lost the blob.

    That they are there it says of all of them. Use `lying` for an engine that verifies them.
    """

    def __init__(
        self, inner: BlobStore, lies: Mapping[BlobDigest, Callable[[], BlobStream] | None]
    ) -> None:
        self._inner = inner
        self._lies = lies
        self.put = inner.put
        self.put_many = inner.put_many
        self.find_missing = inner.find_missing

    def get(self, digest: BlobDigest) -> BlobStream | None:
        if digest in self._lies:
            lie = self._lies[digest]
            return lie and lie()
        return self._inner.get(digest)

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        found = self._inner.get_many([digest for digest in digests if digest not in self._lies])
        for digest in digests:
            if lie := self._lies.get(digest):
                found[digest] = read_at_most(lie(), digest.size + 1)
        return found


def lying(engine: Engine, lies: Mapping[BlobDigest, Callable[[], BlobStream] | None]) -> Engine:
    """An engine whose remote lies about some blobs, with the verification of every engine."""
    return EngineOf(VerifyingBlobs(LyingBlobs(engine.blobs, lies), "lying:"), engine.entries)


def losing(engine: Engine, *lost: BlobDigest) -> Engine:
    """An engine whose remote says that it has these blobs, and drops them before they are read."""
    return lying(engine, dict.fromkeys(lost))


class Endless(io.RawIOBase):
    """A stream that begins with `data` and never ends; `given` bytes of it were read."""

    def __init__(self, data: bytes = b"") -> None:
        super().__init__()
        self._data = data
        self.given = 0

    def read(self, size: int = -1, /) -> bytes:
        assert size > 0, "somebody reads this to its end"
        piece = self._data[self.given : self.given + size]
        piece += bytes(size - len(piece))
        self.given += size
        return piece


class Breaking(io.BytesIO):
    """A stream whose connection breaks after `data`."""

    def read(self, size: int | None = -1, /) -> bytes:
        if data := super().read(size):
            return data
        raise unavailable("read")


def unavailable(operation: str) -> RemoteUnavailable:
    """What an engine says of a server that went away."""
    return RemoteUnavailable(
        url="test:", operation=operation, reason="it went away", remedy="have it come back"
    )


class FailingEngine:
    """Another engine whose remote goes away at the call number `at` (1 is the first) of a name."""

    def __init__(self, inner: Engine, operation: str, at: int = 1) -> None:
        self._inner = inner
        self._operation = operation
        self._left = at
        self.blobs: BlobStore = _Guarded(inner.blobs, "", self._reach)
        self.entries: EntryIndex = _Guarded(inner.entries, "_entry", self._reach)

    def close(self) -> None:
        self._inner.close()

    def _reach(self, operation: str) -> None:
        if operation == self._operation:
            self._left -= 1
            if self._left <= 0:
                raise unavailable(operation)


class _Guarded:
    """Calls of another object, each told before it is made."""

    def __init__(self, inner: object, suffix: str, reach: Callable[[str], None]) -> None:
        self._inner = inner
        self._suffix = suffix
        self._reach = reach

    def __getattr__(self, name: str):
        method = getattr(self._inner, name)

        def call(*arguments: object) -> object:
            self._reach(f"{name}{self._suffix}")
            return method(*arguments)

        return call
