"""Blobs that are what their digests say, from a remote that is believed nothing.

`VerifyingBlobs` goes around the blobs of an engine. The last piece of one is not handed on before
the SHA-256 and the size of all of it were seen to be right, and never more than the size and one
byte are read: who reads to the end has the blob, and who was given a fault has less than it. In the
other direction the last piece of a source that turned into something else is not sent either, so
that no remote gets a blob under a name that is not its own.

The empty blob is there without being asked for: remotes are free not to store it.
"""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

from pypto_store.remote.blob_store import (
    BlobDigest,
    BlobStore,
    BlobStream,
    CorruptBlob,
    Source,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

_EMPTY = BlobDigest.of(b"")


class SourceChanged(ValueError):
    """What was to be stored is not what its digest says; it was changed, or named wrongly."""

    def __init__(self, digest: BlobDigest, reason: str) -> None:
        super().__init__(f"the source of blob {digest} is another one now: {reason}")
        self.digest = digest
        self.reason = reason


class VerifyingBlobs:
    """A blob store that hands on no wrong byte unnoticed: CorruptBlob, and SourceChanged on put.

    url: the remote, for faults; without credentials.
    """

    def __init__(self, inner: BlobStore, url: str) -> None:
        self._inner = inner
        self._url = url

    def get(self, digest: BlobDigest) -> BlobStream | None:
        """A stream that verifies; None when the blob is not there."""
        if digest == _EMPTY:
            return io.BytesIO()
        stream = self._inner.get(digest)
        return stream and _VerifyingStream(
            stream, digest, lambda reason: self._corrupt(digest, reason)
        )

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        """Those of the blobs that are there, each verified."""
        wanted = dict.fromkeys(digests)
        asked = [digest for digest in wanted if digest != _EMPTY]
        found = self._inner.get_many(asked) if asked else {}
        for digest, data in found.items():
            if digest not in wanted:
                raise self._corrupt(digest, "it was not asked for")
            if reason := _difference(digest, data):
                raise self._corrupt(digest, reason)
        return {**found, _EMPTY: b""} if _EMPTY in wanted else found

    def put(self, digest: BlobDigest, source: Source) -> None:
        """Store a blob whose source is verified while it is sent."""
        self._inner.put(
            digest,
            lambda: _VerifyingStream(source(), digest, lambda why: SourceChanged(digest, why)),
        )

    def put_many(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        """Store blobs after all of them were verified."""
        for digest, data in blobs.items():
            if reason := _difference(digest, data):
                raise SourceChanged(digest, reason)
        if blobs:
            self._inner.put_many(blobs)

    def find_missing(self, digests: Collection[BlobDigest]) -> frozenset[BlobDigest]:
        """Those of the blobs that are not there, as far as the remote's word is good."""
        asked = {digest for digest in digests if digest != _EMPTY}
        return self._inner.find_missing(asked) & asked if asked else frozenset()

    def _corrupt(self, digest: BlobDigest, reason: str) -> CorruptBlob:
        return CorruptBlob(
            url=self._url,
            operation=f"get blob {digest}",
            reason=reason,
            remedy="the blob is not used; have it removed there if this lasts",
        )


def _difference(digest: BlobDigest, data: bytes) -> str | None:
    """Why `data` is not the blob, or None if it is."""
    if len(data) != digest.size:
        return f"it has {len(data)} bytes"
    arrived = hashlib.sha256(data).hexdigest()
    return None if arrived == digest.sha256.hex else f"its SHA-256 is {arrived}"


class _VerifyingStream:
    """Hands on what another stream gives, the last piece after everything was verified."""

    def __init__(
        self, inner: BlobStream, digest: BlobDigest, fault: Callable[[str], Exception]
    ) -> None:
        self._inner = inner
        self._digest = digest
        self._fault = fault
        self._hash = hashlib.sha256()
        self._left = digest.size
        self._verified = False
        self._failure: Exception | None = None

    def read(self, size: int, /) -> bytes:
        """At most `size` further bytes; raises when what came is not the blob."""
        if self._failure is not None:
            raise self._failure
        if self._verified:
            return b""
        piece = self._inner.read(min(size, self._left)) if self._left else b""
        self._hash.update(piece)
        self._left -= len(piece)
        if reason := self._difference_after(piece):
            self._failure = self._fault(reason)
            raise self._failure
        self._verified = not self._left
        return piece

    def _difference_after(self, piece: bytes) -> str | None:
        """Why this cannot be the blob any more, when `piece` was the last that came."""
        if self._left:
            return None if piece else f"it ended {self._left} bytes early"
        if self._inner.read(1):
            return f"it goes on after {self._digest.size} bytes"
        arrived = self._hash.hexdigest()
        return None if arrived == self._digest.sha256.hex else f"its SHA-256 is {arrived}"

    def close(self) -> None:
        """Close the other stream."""
        self._inner.close()
