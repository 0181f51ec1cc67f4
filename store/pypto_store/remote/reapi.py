"""grpc:// and grpcs:// — the Remote Execution API, version 2: what Bazel's own remote caches speak.

Blobs that fit are sent and read many at a time (BatchUpdateBlobs, BatchReadBlobs), larger ones one
by one as streams of which one piece is in memory. Digests are SHA-256, which resource names
therefore leave out. Everything is sent as it is, also where a server offers to compress.

Resource names begin with the instance's name, where it has one:

    blobs/<sha256>/<size>                            to read
    uploads/<uuid>/blobs/<sha256>/<size>             to write
"""

from __future__ import annotations

import threading
import uuid
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pypto_store.digest import Digest
from pypto_store.remote import reapi_protocol
from pypto_store.remote.blob_store import (
    CHUNK,
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
from pypto_store.remote.reapi_server import NOT_FOUND, OK, ReapiServer, StreamBroken

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pypto_store.remote_config import RemoteConfig

_FRAMING = 128  # bytes of one blob in a batch beside its own, at most
_ASKED_AT_ONCE = 10_000  # digests of one FindMissingBlobs: less than a megabyte
_RESUMPTIONS = 3  # of one stream that broke


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
        self._server.capabilities()
        stream = _ReadStream(self._server, digest)
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
        self._server.capabilities()
        operation = f"put blob {digest}"
        name = _resource(
            self._server, f"uploads/{uuid.uuid4()}/blobs/{digest.sha256}/{digest.size}"
        )
        pieces: _Pieces | None = None

        def requests(cancel: Callable[[], None]) -> _Pieces:
            nonlocal pieces
            if pieces is not None:
                pieces.close()
            pieces = _Pieces(self._server, name, digest.size, source(), cancel)
            return pieces

        try:
            answer = self._server.send(reapi_protocol.WRITE, requests, operation, digest.size)
        except RemoteFault as fault:
            if pieces is not None and pieces.failure is not None:
                raise pieces.failure from None
            if type(fault) is RemoteProtocolError:
                self._raise_refusal()
            raise
        finally:
            if pieces is not None:
                pieces.close()
        if answer.committed_size != digest.size:
            raise self._server.nonsense(operation, f"it took {answer.committed_size} bytes")

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

    def _fits(self, digest: BlobDigest) -> bool:
        return digest.size + _FRAMING <= self._server.capabilities().batch_limit

    def _batches(self, digests: Collection[BlobDigest]) -> Iterator[list[BlobDigest]]:
        """The digests in lists that fit into a message; alone in a list is what does not."""
        limit = self._server.capabilities().batch_limit
        batch: list[BlobDigest] = []
        size = 0
        for digest in digests:
            if batch and size + digest.size + _FRAMING > limit:
                yield batch
                batch, size = [], 0
            batch.append(digest)
            size += digest.size + _FRAMING
        if batch:
            yield batch

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
        answer = self._server.call(method, request, operation, size)
        found = {}
        for response in answer.responses:
            digest = self._read_digest(response.digest, operation)
            code = response.status.code
            if code == OK:
                if response.compressor:
                    raise self._server.nonsense(operation, f"blob {digest} is compressed")
                found[digest] = response.data
            elif code != NOT_FOUND:
                raise self._server.fault(code, response.status.message, f"get blob {digest}")
        return found

    def _update_batch(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        method, operation = reapi_protocol.BATCH_UPDATE, f"put {len(blobs)} blobs"
        request = self._server.message(method.request, instance_name=self._server.instance)
        for digest, data in blobs.items():
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
        self._server.capabilities()
        method = reapi_protocol.UPDATE_ENTRY
        request = self._server.message(method.request, instance_name=self._server.instance)
        _write_digest(request.action_digest, name)
        try:
            request.action_result.MergeFromString(entry)
        except self._server.protocol.undecodable as error:
            raise ValueError(f"an entry must be an ActionResult: {error}") from error
        self._server.call(method, request, f"put entry {name}", len(entry))


class _ReadStream:
    """A blob that is being read; where the connection breaks, the rest is asked for."""

    def __init__(self, server: ReapiServer, digest: BlobDigest) -> None:
        self._server = server
        self._digest = digest
        self._operation = f"get blob {digest}"
        self._deadline = server.deadline(digest.size)
        self._resumptions = _RESUMPTIONS
        self._call: Any = None
        self._answers: Iterator[Any] = iter(())
        self._received = 0
        self._piece = memoryview(b"")

    def resume(self) -> bool:
        """Ask for what has not arrived; False when the blob is not there."""
        request = self._server.message(
            reapi_protocol.READ.request,
            resource_name=_resource(
                self._server, f"blobs/{self._digest.sha256}/{self._digest.size}"
            ),
            read_offset=self._received,
        )
        begun = self._server.receive(reapi_protocol.READ, request, self._operation, self._deadline)
        if begun is None:
            return False
        self._call, self._answers = begun
        return True

    def read(self, size: int, /) -> bytes:
        while not self._piece:
            try:
                answer = next(self._answers, None)
            except StreamBroken as broken:
                if self._received >= self._digest.size:
                    return b""
                self._resumptions -= 1
                if self._resumptions < 0 or not self.resume():
                    raise broken.fault from broken
                continue
            if answer is None:
                return b""
            self._piece = memoryview(answer.data)
            self._received += len(answer.data)
        piece, self._piece = bytes(self._piece[:size]), self._piece[size:]
        return piece

    def close(self) -> None:
        if self._call is not None:
            self._call.cancel()


class _Pieces:
    """The requests of one ByteStream.Write, made while they are sent, in a thread of grpcio's.

    failure: what the source raised, which ended the call.
    """

    def __init__(
        self,
        server: ReapiServer,
        name: str,
        size: int,
        stream: BlobStream,
        cancel: Callable[[], None],
    ) -> None:
        self._server = server
        self._name = name
        self._size = size
        self._stream = stream
        self._cancel = cancel
        self._offset = 0
        self._finished = False
        # The thread may still be reading when the server has said that it has the blob already.
        self._lock = threading.Lock()
        self.failure: BaseException | None = None

    def __iter__(self) -> _Pieces:
        return self

    def __next__(self) -> Any:
        with self._lock:
            if self._finished:
                raise StopIteration
            try:
                data = self._stream.read(CHUNK)
            except BaseException as failure:  # noqa: BLE001 - raised in the thread that called put
                self._finished = True
                self.failure = failure
                self._cancel()
                raise StopIteration from None
            request = self._server.message(
                reapi_protocol.WRITE.request,
                resource_name="" if self._offset else self._name,
                write_offset=self._offset,
                data=data,
            )
            self._offset += len(data)
            # Also an empty piece ends it: a source that is too short is for the server to refuse.
            self._finished = not data or self._offset >= self._size
            request.finish_write = self._finished
            return request

    def close(self) -> None:
        with self._lock:
            self._finished = True
            self._stream.close()


def _resource(server: ReapiServer, name: str) -> str:
    return f"{server.instance}/{name}" if server.instance else name


def _write_digest(message: Any, digest: BlobDigest) -> None:
    message.hash = digest.sha256.hex
    message.size_bytes = digest.size
