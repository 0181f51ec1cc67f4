"""Requests for many blobs, at remotes that know only requests for one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING

from pypto_store.remote.blob_store import (
    BlobDigest,
    BlobStream,
    Source,
    read_at_most,
    source_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class OneByOneBlobs(ABC):
    """A blob store that needs to be given `get`, `put` and `is_missing` for one blob."""

    @abstractmethod
    def get(self, digest: BlobDigest) -> BlobStream | None:
        """As in BlobStore."""

    @abstractmethod
    def put(self, digest: BlobDigest, source: Source) -> None:
        """As in BlobStore."""

    @abstractmethod
    def is_missing(self, digest: BlobDigest) -> bool:
        """Whether the blob is not there, or is seen at once to be another one."""

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        """Those of the blobs that are there; of one that is too long, one byte too many."""
        found = {}
        for digest in digests:
            stream = self.get(digest)
            if stream is not None:
                with closing(stream):
                    found[digest] = read_at_most(stream, digest.size + 1)
        return found

    def put_many(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        """Store one blob after another."""
        for digest, data in blobs.items():
            self.put(digest, source_of(data))

    def find_missing(self, digests: Collection[BlobDigest]) -> frozenset[BlobDigest]:
        """Those of the blobs that are not there."""
        return frozenset(digest for digest in digests if self.is_missing(digest))
