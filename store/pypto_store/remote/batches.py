"""Blobs in lists that fit into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pypto_store.remote.blob_store import BlobDigest

SMALL_BLOB = 1 << 20  # bytes; larger ones go one by one, as streams
_BATCH_BYTES = 4_000_000  # of the blobs of one batch: what one message of REAPI takes


def batches(
    digests: Iterable[BlobDigest], limit: int = _BATCH_BYTES, *, framing: int = 0
) -> Iterator[list[BlobDigest]]:
    """The digests in their order, in lists whose blobs have at most `limit` bytes together.

    framing: bytes that each blob takes beside its own. What exceeds the limit by itself is alone.
    """
    batch: list[BlobDigest] = []
    size = 0
    for digest in digests:
        if batch and size + digest.size + framing > limit:
            yield batch
            batch, size = [], 0
        batch.append(digest)
        size += digest.size + framing
    if batch:
        yield batch
