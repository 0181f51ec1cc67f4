"""An engine that stores nothing, whatever its remote would allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto_store.remote.blob_store import (
    BlobDigest,
    BlobStore,
    Engine,
    EntryIndex,
    RemoteRefused,
    Source,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class ReadOnlyEngine:
    """Another engine without its writing half: every put is RemoteRefused and sends nothing.

    url: the remote, for faults; without credentials.
    """

    def __init__(self, inner: Engine, url: str) -> None:
        self.blobs = _ReadOnlyBlobs(inner.blobs, url)
        self.entries = _ReadOnlyEntries(inner.entries, url)
        self._inner = inner

    def close(self) -> None:
        """Close the other engine."""
        self._inner.close()


class _ReadOnlyBlobs:
    def __init__(self, inner: BlobStore, url: str) -> None:
        self._url = url
        self.get = inner.get
        self.get_many = inner.get_many
        self.find_missing = inner.find_missing

    def put(self, digest: BlobDigest, source: Source) -> None:
        raise _refusal(self._url, f"put blob {digest}")

    def put_many(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        if blobs:
            raise _refusal(self._url, f"put {len(blobs)} blobs")


class _ReadOnlyEntries:
    def __init__(self, inner: EntryIndex, url: str) -> None:
        self._url = url
        self.get = inner.get

    def put(self, name: BlobDigest, entry: bytes) -> None:
        raise _refusal(self._url, f"put entry {name}")


def _refusal(url: str, operation: str) -> RemoteRefused:
    return RemoteRefused(
        url=url,
        operation=operation,
        reason="this remote is configured to be read only",
        remedy="set RemoteConfig.readonly to False to store there",
    )
