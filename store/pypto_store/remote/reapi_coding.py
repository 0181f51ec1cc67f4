"""How the bytes of a blob are written on their way: as they are, or as frames of zstd.

A server says which it knows; it is asked for the rest of a stream by where it is in the blob, not
in the frames. What arrives is unpacked no further than it may be, and the digest of the blob is
checked by others: a frame may be anything, but only the right one has the right content.
"""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from pypto_store.remote.blob_store import BlobDigest, BlobStream, read_at_most

if TYPE_CHECKING:
    from types import ModuleType

IDENTITY, ZSTD = 0, 1  # Compressor.Value
WORTHWHILE = 1024  # bytes; what is smaller is not compressed

_LEVEL = 3
# Bytes of history that a frame may have this process keep. RFC 8878 wants 8 MiB to be understood.
_WINDOW_LIMIT = 32 << 20


class Coding(Protocol):
    """One way to write blobs; used by any number of threads."""

    number: int
    # What a stream may raise whose bytes are written in no such way.
    undecodable: tuple[type[Exception], ...]

    def name(self, digest: BlobDigest) -> str:
        """What the blob is called in names of resources."""
        ...

    def encode(self, data: bytes) -> bytes:
        """A whole blob, as it is sent."""
        ...

    def decode(self, data: bytes, size: int) -> bytes:
        """The blob that was sent as `data`, or its first `size` bytes if it is longer."""
        ...

    def encoder(self, stream: BlobStream) -> BlobStream:
        """What is sent for a blob; closing it is left to who opened the other stream."""
        ...

    def decoder(self, stream: BlobStream) -> BlobStream:
        """The blob that another stream carries; never more than is asked for at a time."""
        ...

    def took_all(self, digest: BlobDigest, sent: int, committed: int) -> bool:
        """Whether a server has the blob which says that it took `committed` of `sent` bytes."""
        ...


class Identity:
    """Blobs as they are."""

    number = IDENTITY
    undecodable: tuple[type[Exception], ...] = ()

    def name(self, digest: BlobDigest) -> str:
        """Its digest."""
        return f"blobs/{digest}"

    def encode(self, data: bytes) -> bytes:
        """The same."""
        return data

    def decode(self, data: bytes, size: int) -> bytes:
        """The same."""
        return data[:size]

    def encoder(self, stream: BlobStream) -> BlobStream:
        """The same."""
        return stream

    def decoder(self, stream: BlobStream) -> BlobStream:
        """The same."""
        return stream

    def took_all(self, digest: BlobDigest, sent: int, committed: int) -> bool:
        """All of it, or a server that has it already says so without listening to the end."""
        return committed == digest.size


class Zstd:
    """Blobs as frames of zstd, by the package zstandard."""

    number = ZSTD

    def __init__(self, zstandard: ModuleType) -> None:
        self._zstandard: Any = zstandard
        self.undecodable: tuple[type[Exception], ...] = (zstandard.ZstdError,)

    def name(self, digest: BlobDigest) -> str:
        """Its digest, which is that of the content."""
        return f"compressed-blobs/zstd/{digest}"

    def encode(self, data: bytes) -> bytes:
        """One frame."""
        packed: bytes = self._compressor().compress(data)
        return packed

    def decode(self, data: bytes, size: int) -> bytes:
        """Unpacked as a stream: the size that a frame claims to have is not believed."""
        return read_at_most(self.decoder(io.BytesIO(data)), size)

    def encoder(self, stream: BlobStream) -> BlobStream:
        """One frame."""
        reader: BlobStream = self._compressor().stream_reader(stream, closefd=False)
        return reader

    def decoder(self, stream: BlobStream) -> BlobStream:
        """Any number of frames."""
        reader: BlobStream = self._zstandard.ZstdDecompressor(
            max_window_size=_WINDOW_LIMIT
        ).stream_reader(stream, read_across_frames=True, closefd=False)
        return reader

    def took_all(self, digest: BlobDigest, sent: int, committed: int) -> bool:
        """All that was sent, or as much as the blob has; -1 says that it was there already."""
        return committed in (sent, digest.size, -1)

    def _compressor(self) -> Any:
        # One for each blob: they are not for several threads.
        return self._zstandard.ZstdCompressor(level=_LEVEL)


@cache
def installed_zstd() -> Zstd | None:
    """The coding by zstd; None where its package is not installed, or too old to be used."""
    try:
        import zstandard
    except ImportError:
        return None
    return Zstd(zstandard)
