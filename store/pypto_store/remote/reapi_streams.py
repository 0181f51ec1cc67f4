"""Streams of REAPI: one blob that is read, and one that is written.

Resource names begin with the instance's name, where it has one:

    blobs/<sha256>/<size>                                           to read
    compressed-blobs/zstd/<sha256>/<size>
    uploads/<uuid>/blobs/<sha256>/<size>                            to write
    uploads/<uuid>/compressed-blobs/zstd/<sha256>/<size>
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pypto_store.remote import reapi_protocol
from pypto_store.remote.blob_store import CHUNK, BlobDigest, BlobStream, RemoteFault, Source
from pypto_store.remote.reapi_server import ReapiServer, StreamBroken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pypto_store.remote.reapi_coding import Coding

_RESUMPTIONS = 3  # of one stream that broke


class ReadStream:
    """A blob that is being read; where the connection breaks, the rest is asked for."""

    def __init__(self, server: ReapiServer, digest: BlobDigest, coding: Coding) -> None:
        self._server = server
        self._digest = digest
        self._coding = coding
        self._operation = f"get blob {digest}"
        self._deadline = server.deadline(digest.size)
        self._resumptions = _RESUMPTIONS
        self._call: Any = None
        self._decoder: BlobStream
        self._received = 0  # bytes of the blob

    def resume(self) -> bool:
        """Ask for what has not arrived; False when the blob is not there."""
        request = self._server.message(
            reapi_protocol.READ.request,
            resource_name=_resource(self._server, self._coding.name(self._digest)),
            read_offset=self._received,
        )
        begun = self._server.receive(reapi_protocol.READ, request, self._operation, self._deadline)
        if begun is None:
            return False
        self._call, answers = begun
        self._decoder = self._coding.decoder(_Answers(answers))
        return True

    def read(self, size: int, /) -> bytes:
        while True:
            try:
                piece = self._decoder.read(size)
            except StreamBroken as broken:
                if self._received >= self._digest.size:
                    return b""
                self._resumptions -= 1
                if self._resumptions < 0 or not self.resume():
                    raise broken.fault from broken
            except self._coding.undecodable as error:
                raise self._server.corrupt(self._operation, str(error)) from error
            else:
                self._received += len(piece)
                return piece

    def close(self) -> None:
        if self._call is not None:
            self._call.cancel()


class _Answers:
    """What the answers of a ByteStream.Read carry."""

    def __init__(self, answers: Iterator[Any]) -> None:
        self._answers = answers
        self._piece = memoryview(b"")

    def read(self, size: int, /) -> bytes:
        while not self._piece:
            answer = next(self._answers, None)
            if answer is None:
                return b""
            self._piece = memoryview(answer.data)
        piece, self._piece = bytes(self._piece[:size]), self._piece[size:]
        return piece

    def close(self) -> None:
        """Nothing is held."""


def write_stream(server: ReapiServer, digest: BlobDigest, source: Source, coding: Coding) -> None:
    """Store a blob as a stream, whose source is opened afresh for every attempt."""
    import uuid  # which readers do without: it takes longer to import than a fetch

    operation = f"put blob {digest}"
    pieces: _Pieces | None = None

    def requests(cancel: Callable[[], None]) -> _Pieces:
        nonlocal pieces
        if pieces is not None:
            pieces.close()
        # Under a name that it has heard a server may wait for the rest of that attempt.
        name = _resource(server, f"uploads/{uuid.uuid4()}/{coding.name(digest)}")
        pieces = _Pieces(server, name, source(), coding, cancel)
        return pieces

    try:
        answer = server.send(reapi_protocol.WRITE, requests, operation, digest.size)
    except RemoteFault:
        if pieces is not None and pieces.failure is not None:
            raise pieces.failure from None
        raise
    finally:
        if pieces is not None:
            pieces.close()
    sent = 0 if pieces is None else pieces.sent
    if not coding.took_all(digest, sent, answer.committed_size):
        raise server.nonsense(operation, f"it took {answer.committed_size} bytes")


class _Pieces:
    """The requests of one ByteStream.Write, made while they are sent, in a thread of grpcio's.

    failure: what the source raised, which ended the call. sent: bytes.
    """

    def __init__(
        self,
        server: ReapiServer,
        name: str,
        stream: BlobStream,
        coding: Coding,
        cancel: Callable[[], None],
    ) -> None:
        self._server = server
        self._name = name
        self._stream = stream
        self._encoder = coding.encoder(stream)
        self._cancel = cancel
        self._next: bytes | None = None  # so that the last piece is known to be the last
        self._finished = False
        # The thread may still be reading when the server has said that it has the blob already.
        self._lock = threading.Lock()
        self.sent = 0
        self.failure: BaseException | None = None

    def __iter__(self) -> _Pieces:
        return self

    def __next__(self) -> Any:
        with self._lock:
            if self._finished:
                raise StopIteration
            try:
                data = self._encoder.read(CHUNK) if self._next is None else self._next
                self._next = self._encoder.read(CHUNK) if data else b""
            except BaseException as failure:  # noqa: BLE001 - raised in the thread that called put
                self._finished = True
                self.failure = failure
                self._cancel()
                raise StopIteration from None
            request = self._server.message(
                reapi_protocol.WRITE.request,
                resource_name="" if self.sent else self._name,
                write_offset=self.sent,
                data=data,
            )
            self.sent += len(data)
            # Also an empty piece ends it: a source that is too short is for the server to refuse.
            self._finished = not self._next
            request.finish_write = self._finished
            return request

    def close(self) -> None:
        with self._lock:
            self._finished = True
            self._stream.close()


def _resource(server: ReapiServer, name: str) -> str:
    return f"{server.instance}/{name}" if server.instance else name
