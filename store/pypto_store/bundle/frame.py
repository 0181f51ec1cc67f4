"""One zstd frame, written in deterministic form and read within bounds."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import IO, TYPE_CHECKING, BinaryIO, Protocol, cast

from pypto_store.bundle.faults import BundleError, CodecMissing

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from zstandard import ZstdCompressionWriter

Advance = Callable[[int], None]

_LEVEL = 9
_WINDOW_LIMIT = 32 * 1024 * 1024  # bytes of history that a frame may ask a reader to keep
# Bytes of input at a time. Four of them can unpack to 128 KiB, so this bounds what is in memory.
_BITE = 512
_READ = 256 * 1024


def codec() -> ModuleType:
    """The compression library; CodecMissing where it is not installed."""
    try:
        import zstandard
    except ImportError:
        raise CodecMissing from None
    return zstandard


class Sink(Protocol):
    """Where a bundle can be written."""

    def write(self, data: bytes, /) -> int:
        """Write all of `data`; gives its size."""


def frame_writer(sink: Sink) -> AbstractContextManager[ZstdCompressionWriter]:
    """A writer into one frame on `sink`, which ends with the context and leaves `sink` open."""
    compressor = codec().ZstdCompressor(
        level=_LEVEL, write_checksum=True, write_content_size=False, threads=0
    )
    writer: AbstractContextManager[ZstdCompressionWriter]
    writer = compressor.stream_writer(cast("IO[bytes]", sink), closefd=False)
    return writer


class FrameReader:
    """The content of the one frame that `source` is, in pieces of bounded size."""

    def __init__(self, source: BinaryIO, advance: Advance) -> None:
        zstandard = codec()
        self._fault: type[Exception] = zstandard.ZstdError
        self._decoder = zstandard.ZstdDecompressor(max_window_size=_WINDOW_LIMIT).decompressobj()
        self._source = source
        self._advance = advance
        self._packed = memoryview(b"")
        self._ready = memoryview(b"")

    def piece(self, limit: int) -> memoryview:
        """Between 1 and `limit` bytes; BundleError where the content ends or is damaged."""
        while not self._ready:
            self._ready = memoryview(self._unpack_some())
        found, self._ready = self._ready[:limit], self._ready[limit:]
        return found

    def exactly(self, size: int) -> bytes:
        """The next `size` bytes."""
        parts = bytearray()
        while len(parts) < size:
            parts += self.piece(size - len(parts))
        return bytes(parts)

    def finish(self) -> None:
        """Make sure that the content, its checksum and the source end here."""
        while not self._ready and not self._decoder.eof:
            self._ready = memoryview(self._unpack_some())
        if self._ready or self._packed or self._decoder.unused_data or self._source.read(1):
            raise BundleError("something follows the end of the bundle")

    def _unpack_some(self) -> bytes:
        if self._decoder.eof:
            raise BundleError("the bundle ends before its content is complete")
        if not self._packed:
            packed = self._source.read(_READ)
            if not packed:
                raise BundleError("the bundle is cut off; copy it again")
            self._advance(len(packed))
            self._packed = memoryview(packed)
        bite, self._packed = self._packed[:_BITE], self._packed[_BITE:]
        try:
            unpacked: bytes = self._decoder.decompress(bite)
        except self._fault as error:
            raise BundleError(f"not a bundle, or a damaged one: {error}") from None
        return unpacked
