"""grpc:// and grpcs:// — the Remote Execution API, version 2: what Bazel's own remote caches speak.

Blobs that fit are sent and read many at a time (BatchUpdateBlobs, BatchReadBlobs), larger ones one
by one as streams of which one piece is in memory. Digests are SHA-256, which resource names
therefore leave out. Where the server takes zstd and the package zstandard is installed, blobs of a
kilobyte or more are compressed on the way, in both directions.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from pypto_store.digest import Digest
from pypto_store.remote import reapi_protocol
from pypto_store.remote.batches import batches
from pypto_store.remote.blob_store import (
    ENTRY_LIMIT,
    BlobDigest,
    BlobStream,
    RemoteFault,
    RemoteProtocolError,
    RemoteRefused,
    Source,
    check_entry_size,
    read_at_most,
    source_of,
)
from pypto_store.remote.reapi_coding import WORTHWHILE, ZSTD, Identity, installed_zstd
from pypto_store.remote.reapi_server import NOT_FOUND, OK, PERMISSION_DENIED, ReapiServer
from pypto_store.remote.reapi_streams import ReadStream, write_stream

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pypto_store.remote.reapi_coding import Coding
    from pypto_store.remote_config import RemoteConfig

_AS_IT_IS = Identity()
_FRAMING = 128  # bytes of one blob in a batch beside its own, at most
_ASKED_AT_ONCE = 10_000  # digests of one FindMissingBlobs: less than a megabyte


class ReapiEngine:
    """The engine of grpc:// and grpcs://.

    RemoteUnavailable without the extra pypto[remote]; ValueError for files of encryption that
    cannot be used.
    """

    def __init__(self, config: RemoteConfig) -> None:
        server = ReapiServer(config)
        self.blobs = _ReapiBlobs(server)
        self.entries = _ReapiEntries(server)
        self._server = server

    def close(self) -> None:
        """Close the connection."""
        self._server.close()


class _ReapiBlobs:
    def __init__(self, server: ReapiServer) -> None:
        self._server = server

    def get(self, digest: BlobDigest) -> BlobStream | None:
        stream = ReadStream(self._server, digest, self._coding(digest))
        return stream if stream.resume() else None

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        found: dict[BlobDigest, bytes] = {}
        for batch in self._batches(dict.fromkeys(digests)):
            if len(batch) > 1 or self._fits(batch[0]):
                found |= self._read_batch(batch)
            elif (data := self._read_whole(batch[0])) is not None:
                found[batch[0]] = data
        return found

    def put(self, digest: BlobDigest, source: Source) -> None:
        coding = self._coding(digest)
        try:
            write_stream(self._server, digest, source, coding)
        except RemoteProtocolError as fault:
            if type(fault) is RemoteProtocolError:
                self._raise_refusal()
            raise

    def _raise_refusal(self) -> None:
        """RemoteRefused where nothing may be stored; asked after a stream that failed otherwise.

        A proxy may refuse a stream before all of it has arrived, and grpcio may then see no more
        than that the stream was reset. A request in one piece gets the answer.
        """
        try:
            self._update_batch({})
        except RemoteRefused:
            raise
        except RemoteFault:
            return

    def put_many(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        for batch in self._batches(blobs):
            if len(batch) > 1 or self._fits(batch[0]):
                self._update_batch({digest: blobs[digest] for digest in batch})
            else:
                self.put(batch[0], source_of(blobs[batch[0]]))

    def find_missing(self, digests: Collection[BlobDigest]) -> frozenset[BlobDigest]:
        self._server.capabilities()
        method, operation = reapi_protocol.FIND_MISSING, "find missing blobs"
        asked = list(dict.fromkeys(digests))
        missing: set[BlobDigest] = set()
        for start in range(0, len(asked), _ASKED_AT_ONCE):
            request = self._server.message(method.request, instance_name=self._server.instance)
            for digest in asked[start : start + _ASKED_AT_ONCE]:
                _write_digest(request.blob_digests.add(), digest)
            answer = self._server.call(method, request, operation)
            missing.update(
                self._read_digest(digest, operation) for digest in answer.missing_blob_digests
            )
        return frozenset(missing)

    def _coding(self, digest: BlobDigest) -> Coding:
        """How the blob goes as a stream."""
        return self._codings(self._server.capabilities().compressors, digest.size)[-1]

    def _codings(self, offered: frozenset[int], size: int) -> list[Coding]:
        """Those that may be used for `size` bytes, the best one last."""
        codings: list[Coding] = [_AS_IT_IS]
        if size >= WORTHWHILE and ZSTD in offered and (zstd := installed_zstd()) is not None:
            codings.append(zstd)
        return codings

    def _fits(self, digest: BlobDigest) -> bool:
        return digest.size + _FRAMING <= self._server.capabilities().batch_limit

    def _batches(self, digests: Collection[BlobDigest]) -> Iterator[list[BlobDigest]]:
        """The digests in lists that fit into a message; alone in a list is what does not."""
        return batches(digests, self._server.capabilities().batch_limit, framing=_FRAMING)

    def _read_whole(self, digest: BlobDigest) -> bytes | None:
        """A large blob; of one that is too long, one byte too many."""
        stream = self.get(digest)
        if stream is None:
            return None
        with closing(stream):
            return read_at_most(stream, digest.size + 1)

    def _read_batch(self, digests: list[BlobDigest]) -> dict[BlobDigest, bytes]:
        method, operation = reapi_protocol.BATCH_READ, f"get {len(digests)} blobs"
        request = self._server.message(method.request, instance_name=self._server.instance)
        for digest in digests:
            _write_digest(request.digests.add(), digest)
        size = sum(digest.size for digest in digests)
        offered = self._server.capabilities().compressors
        codings = self._codings(offered, max(digest.size for digest in digests))
        request.acceptable_compressors.extend(
            coding.number for coding in codings if coding is not _AS_IT_IS
        )
        answer = self._server.call(method, request, operation, size)
        found: dict[BlobDigest, bytes] = {}
        awaited = set(digests)
        for response in answer.responses:
            digest = self._read_digest(response.digest, operation)
            if digest not in awaited:
                raise self._server.nonsense(operation, f"blob {digest} was not asked for, or twice")
            awaited.remove(digest)
            code = response.status.code
            if code == OK:
                found[digest] = self._unpacked(digest, response, codings)
            elif code != NOT_FOUND:
                raise self._server.fault(code, response.status.message, f"get blob {digest}")
        return found

    def _unpacked(self, digest: BlobDigest, response: Any, codings: list[Coding]) -> bytes:
        """The blob of an answer; of one that is too long, one byte too many."""
        operation = f"get blob {digest}"
        for coding in codings:
            if coding.number == response.compressor:
                try:
                    return coding.decode(response.data, digest.size + 1)
                except coding.undecodable as error:
                    raise self._server.corrupt(operation, str(error)) from error
        raise self._server.nonsense(operation, f"it is compressed ({response.compressor})")

    def _update_batch(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        method, operation = reapi_protocol.BATCH_UPDATE, f"put {len(blobs)} blobs"
        request = self._server.message(method.request, instance_name=self._server.instance)
        offered = self._server.capabilities().update_compressors
        for digest, data in blobs.items():
            coding = self._codings(offered, digest.size)[-1]
            packed = coding.encode(data)
            if len(packed) < len(data):
                item = request.requests.add(data=packed, compressor=coding.number)
            else:
                item = request.requests.add(data=data)
            _write_digest(item.digest, digest)
        answer = self._server.call(method, request, operation, sum(map(len, blobs.values())))
        stored = set()
        for response in answer.responses:
            digest = self._read_digest(response.digest, operation)
            if code := response.status.code:
                raise self._server.fault(code, response.status.message, f"put blob {digest}")
            stored.add(digest)
        if left := blobs.keys() - stored:
            raise self._server.nonsense(operation, f"it says nothing of {min(left)}")

    def _read_digest(self, message: Any, operation: str) -> BlobDigest:
        try:
            return BlobDigest(Digest(message.hash), message.size_bytes)
        except ValueError as error:
            raise self._server.nonsense(operation, str(error)) from error


class _ReapiEntries:
    def __init__(self, server: ReapiServer) -> None:
        self._server = server

    def get(self, name: BlobDigest) -> bytes | None:
        self._server.capabilities()
        method, operation = reapi_protocol.GET_ENTRY, f"get entry {name}"
        request = self._server.message(method.request, instance_name=self._server.instance)
        _write_digest(request.action_digest, name)
        entry: bytes | None = self._server.find(method, request, operation)
        if entry is not None and len(entry) > ENTRY_LIMIT:
            raise self._server.nonsense(operation, f"it has more than {ENTRY_LIMIT} bytes")
        return entry

    def put(self, name: BlobDigest, entry: bytes) -> None:
        check_entry_size(entry)
        operation = f"put entry {name}"
        if not self._server.capabilities().takes_entries:
            raise self._server.fault(PERMISSION_DENIED, "it says it stores no entries", operation)
        method = reapi_protocol.UPDATE_ENTRY
        request = self._server.message(method.request, instance_name=self._server.instance)
        _write_digest(request.action_digest, name)
        try:
            request.action_result.MergeFromString(entry)
        except self._server.protocol.undecodable as error:
            raise ValueError(f"an entry must be an ActionResult: {error}") from error
        self._server.call(method, request, operation, len(entry))


def _write_digest(message: Any, digest: BlobDigest) -> None:
    message.hash = digest.sha256.hex
    message.size_bytes = digest.size
