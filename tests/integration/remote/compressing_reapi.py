"""A whole REAPI server in this process, which keeps blobs in memory and speaks zstd."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
import zstandard
from pypto_store.remote.reapi_protocol import (
    BATCH_READ,
    BATCH_UPDATE,
    FIND_MISSING,
    GET_ENTRY,
    READ,
    UPDATE_ENTRY,
    WRITE,
)
from scripted_reapi import ScriptedReapi, message

ZSTD = 1
PIECE = 1 << 17  # bytes of one answer of a stream; uneven to what clients read


class CompressingReapi(ScriptedReapi):
    """Serves `blobs` and `entries` (by hash), compressed where it is asked for.

    `ways` says of each blob that went over the wire which way it went: "get batch", "put stream"
    and so on, with " zstd" where it was compressed. It has no instances.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blobs: dict[str, bytes] = {}
        self.entries: dict[str, bytes] = {}
        self.ways: list[str] = []
        cache = self.capabilities.cache_capabilities
        cache.max_batch_total_size_bytes = 0
        cache.supported_compressors.append(ZSTD)
        cache.supported_batch_update_compressors.append(ZSTD)
        self.answer(FIND_MISSING, self._find_missing)
        self.answer(BATCH_READ, self._read_batch)
        self.answer(BATCH_UPDATE, self._update_batch)
        self.answer(READ, self._read)
        self.answer(WRITE, self._write)
        self.answer(GET_ENTRY, self._get_entry)
        self.answer(UPDATE_ENTRY, self._update_entry)

    def _find_missing(self, asked: Any, context: Any) -> Any:
        missing = [digest for digest in asked.blob_digests if digest.hash not in self.blobs]
        return message(FIND_MISSING.response or "", missing_blob_digests=missing)

    def _read_batch(self, asked: Any, context: Any) -> Any:
        answer = message(BATCH_READ.response or "")
        for digest in asked.digests:
            data = self.blobs.get(digest.hash)
            response = answer.responses.add(digest=digest)
            if data is None:
                response.status.code = grpc.StatusCode.NOT_FOUND.value[0]
            elif ZSTD in asked.acceptable_compressors:
                response.compressor, response.data = ZSTD, packed(data)
                self.ways.append("get batch zstd")
            else:
                response.data = data
                self.ways.append("get batch")
        return answer

    def _update_batch(self, asked: Any, context: Any) -> Any:
        answer = message(BATCH_UPDATE.response or "")
        for item in asked.requests:
            zipped = item.compressor == ZSTD
            data = unpacked(item.data) if zipped else item.data
            self._store(item.digest.hash, data, "put batch", zipped=zipped)
            answer.responses.add(digest=item.digest)
        return answer

    def _read(self, asked: Any, context: Any) -> Iterator[Any]:
        *kind, name, _ = asked.resource_name.split("/")
        data = self.blobs.get(name)
        if data is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such blob")
            return
        rest = data[asked.read_offset :]
        zipped = kind == ["compressed-blobs", "zstd"]
        assert zipped or kind == ["blobs"]
        self.ways.append("get stream zstd" if zipped else "get stream")
        yield from pieces(packed(rest) if zipped else rest)

    def _write(self, requests: Iterable[Any], context: Any) -> Any:
        name, data, whole = "", b"", False
        for request in requests:
            name = name or request.resource_name
            assert request.write_offset == len(data)
            data += request.data
            whole = request.finish_write
        if not whole:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the stream was cut off")
        uploads, _, *kind, hash_, _ = name.split("/")
        zipped = kind == ["compressed-blobs", "zstd"]
        assert uploads == "uploads" and (zipped or kind == ["blobs"])
        self._store(hash_, unpacked(data) if zipped else data, "put stream", zipped=zipped)
        return message(WRITE.response or "", committed_size=len(data))

    def _get_entry(self, asked: Any, context: Any) -> Any:
        entry = self.entries.get(asked.action_digest.hash)
        if entry is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such entry")
        return entry

    def _update_entry(self, asked: Any, context: Any) -> Any:
        self.entries[asked.action_digest.hash] = asked.action_result.SerializeToString()
        return asked.action_result

    def _store(self, name: str, data: bytes, way: str, *, zipped: bool) -> None:
        assert hashlib.sha256(data).hexdigest() == name, "the client sent another blob"
        self.blobs[name] = data
        self.ways.append(f"{way} zstd" if zipped else way)


def packed(data: bytes) -> bytes:
    """One frame that does not say how large its content is."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


def unpacked(data: bytes) -> bytes:
    """What one frame contains."""
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def pieces(data: bytes) -> Iterator[Any]:
    """The answers of a stream."""
    for start in range(0, len(data), PIECE):
        yield message(READ.response or "", data=data[start : start + PIECE])
