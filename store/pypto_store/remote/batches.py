"""Blobs in lists that fit into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pypto_store.remote.blob_store import BlobDigest

SMALL_BLOB = 1 << 20  # bytes; larger ones go one by one, as streams
_BATCH_BYTES = 4_000_000  # of the blobs of one batch: what one message of REAPI takes


def batches(digests: Iterable[BlobDigest]) -> Iterator[list[BlobDigest]]:
    """The digests in their order, in lists whose blobs have at most 4,000,000 bytes together."""
    batch: list[BlobDigest] = []
    size = 0
    for digest in digests:
        if batch and size + digest.size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(digest)
        size += digest.size
    if batch:
        yield batch
