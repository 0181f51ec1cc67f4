"""An engine that sees nothing of what its remote has, so that everything is sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from pypto_store.remote.blob_store import (
        BlobDigest,
        BlobStore,
        BlobStream,
        Engine,
        EntryIndex,
    )


class AfreshEngine:
    """Another engine that stores, and for which its remote is empty.

    For sending what was just found to be damaged there: a remote that has lost bytes of a blob
    still says that it has it. Closing this one leaves the other open.
    """

    def __init__(self, inner: Engine) -> None:
        self.blobs: BlobStore = _AbsentBlobs(inner.blobs)
        self.entries: EntryIndex = _AbsentEntries(inner.entries)

    def close(self) -> None:
        """Nothing is held open here."""


class _AbsentBlobs:
    def __init__(self, inner: BlobStore) -> None:
        self.put = inner.put
        self.put_many = inner.put_many

    def get(self, digest: BlobDigest) -> BlobStream | None:
        return None

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        return {}

    def find_missing(self, digests: Collection[BlobDigest]) -> frozenset[BlobDigest]:
        return frozenset(digests)


class _AbsentEntries:
    def __init__(self, inner: EntryIndex) -> None:
        self.put = inner.put

    def get(self, name: BlobDigest) -> bytes | None:
        return None
