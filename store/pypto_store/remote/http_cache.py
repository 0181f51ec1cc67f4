"""http:// and https:// — Bazel's HTTP cache protocol, which WebDAV servers and cache servers speak.

    GET, HEAD, PUT <path>/cas/<sha256>     a blob
    GET, PUT       <path>/ac/<sha256>      an entry, by the SHA-256 of its action

200 is yes, 404 and 410 are absent, 401 and 403 a refusal; a redirect is an error, because the
client would take its credentials to a place that nobody configured. Servers may be as simple as
nginx: they check nothing, and a PUT replaces what was there.

What is asked for many blobs is asked on several connections before the first answer is waited for.
"""

from __future__ import annotations

from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING

from pypto_store.remote.blob_store import (
    ENTRY_LIMIT,
    BlobDigest,
    BlobStream,
    Source,
    check_entry_size,
    read_at_most,
    source_of,
)
from pypto_store.remote.http_connections import KEPT, HttpAnswer
from pypto_store.remote.http_server import HttpRequest, HttpServer, first_answered

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping

    from pypto_store.remote_config import RemoteConfig

_ABSENT = frozenset({404, 410})
_STORED = frozenset({200, 201, 202, 204})


class HttpCache:
    """The engine of http:// and https://.

    ValueError for files of encryption that cannot be used.
    """

    def __init__(self, config: RemoteConfig) -> None:
        server = HttpServer(config)
        self.blobs = _HttpBlobs(server)
        self.entries = _HttpEntries(server)
        self._server = server

    def close(self) -> None:
        """Close the idle connections."""
        self._server.connections.close()


class _HttpBlobs:
    def __init__(self, server: HttpServer) -> None:
        self._server = server

    def get(self, digest: BlobDigest) -> BlobStream | None:
        return _body(self._server, self._get(digest, self._server.deadline(digest.size)))

    def get_many(self, digests: Collection[BlobDigest]) -> dict[BlobDigest, bytes]:
        found = {}
        with closing(self._together(self._get, digests, moved=True)) as requests:
            for digest, request in requests:
                stream = _body(self._server, request)
                if stream is not None:
                    with closing(stream):
                        found[digest] = read_at_most(stream, digest.size + 1)
        return found

    def put(self, digest: BlobDigest, source: Source) -> None:
        _expect_stored(self._server, self._put(digest, source, self._server.deadline(digest.size)))

    def put_many(self, blobs: Mapping[BlobDigest, bytes]) -> None:
        def begin(digest: BlobDigest, end: float) -> HttpRequest:
            return self._put(digest, source_of(blobs[digest]), end)

        with closing(self._together(begin, blobs, moved=True)) as requests:
            for _, request in requests:
                _expect_stored(self._server, request)

    def find_missing(self, digests: Collection[BlobDigest]) -> frozenset[BlobDigest]:
        with closing(self._together(self._head, digests, moved=False)) as requests:
            return frozenset(
                digest
                for digest, request in requests
                if not _is_there(self._server, request, digest.size)
            )

    def _get(self, digest: BlobDigest, end: float) -> HttpRequest:
        place = f"cas/{digest.sha256}"
        return self._server.ask("GET", place, f"get blob {digest}", end=end)

    def _head(self, digest: BlobDigest, end: float) -> HttpRequest:
        place = f"cas/{digest.sha256}"
        return self._server.ask("HEAD", place, f"find blob {digest}", end=end)

    def _put(self, digest: BlobDigest, source: Source, end: float) -> HttpRequest:
        place, operation = f"cas/{digest.sha256}", f"put blob {digest}"
        return self._server.ask("PUT", place, operation, end=end, body=(digest.size, source))

    def _together(
        self,
        begin: Callable[[BlobDigest, float], HttpRequest],
        digests: Collection[BlobDigest],
        *,
        moved: bool,
    ) -> Generator[tuple[BlobDigest, HttpRequest], None, None]:
        """A request for each digest, as they are answered; some of the others are under way then.

        All of them have one deadline. Closing ends them. moved: the blobs go over the connections.
        """
        left = deque(dict.fromkeys(digests))
        end = self._server.deadline(sum(digest.size for digest in left) if moved else 0)
        self._server.connections.prepare(len(left), end)
        under_way: list[tuple[BlobDigest, HttpRequest]] = []
        try:
            while left or under_way:
                while left and len(under_way) < KEPT:
                    digest = left.popleft()
                    under_way.append((digest, begin(digest, end)))
                yield under_way.pop(first_answered([request for _, request in under_way], end))
        finally:
            for _, request in under_way:
                request.close()


class _HttpEntries:
    def __init__(self, server: HttpServer) -> None:
        self._server = server

    def get(self, name: BlobDigest) -> bytes | None:
        operation = f"get entry {name}"
        end = self._server.deadline(0)
        request = self._server.ask("GET", f"ac/{name.sha256}", operation, end=end)
        stream = _body(self._server, request)
        if stream is None:
            return None
        with closing(stream):
            if not stream.ends_visibly:
                self._server.nonsense(operation, "it has neither a length nor chunks")
            entry = read_at_most(stream, ENTRY_LIMIT + 1)
        if len(entry) > ENTRY_LIMIT:
            self._server.nonsense(operation, f"it has more than {ENTRY_LIMIT} bytes")
        return entry

    def put(self, name: BlobDigest, entry: bytes) -> None:
        check_entry_size(entry)
        place, size = f"ac/{name.sha256}", len(entry)
        request = self._server.ask(
            "PUT",
            place,
            f"put entry {name}",
            end=self._server.deadline(size),
            body=(size, source_of(entry)),
        )
        _expect_stored(self._server, request)


def _body(server: HttpServer, request: HttpRequest) -> _BodyStream | None:
    """The body that is there, or None."""
    answer = request.answer()
    if answer.status == 200:
        if (answer.header("Content-Encoding") or "identity").lower() != "identity":
            answer.close()
            server.nonsense(request.operation, "it is encoded in a way that was not asked for")
        return _BodyStream(answer, server, request.operation)
    answer.close()
    if answer.status not in _ABSENT:
        server.reject(answer, request.operation)
    return None


def _is_there(server: HttpServer, request: HttpRequest, size: int) -> bool:
    """Whether something is there that may have `size` bytes."""
    with closing(request.answer()) as answer:
        if answer.status == 200:
            stated = answer.header("Content-Length")
            return stated is None or stated == str(size)
    if answer.status not in _ABSENT:
        server.reject(answer, request.operation)
    return False


def _expect_stored(server: HttpServer, request: HttpRequest) -> None:
    """A fault unless the body was stored."""
    with closing(request.answer()) as answer:
        pass
    if answer.status not in _STORED:
        server.reject(answer, request.operation)


class _BodyStream:
    """The body of an answer whose errors are faults of the remote."""

    def __init__(self, answer: HttpAnswer, server: HttpServer, operation: str) -> None:
        self._answer = answer
        self._server = server
        self._operation = operation
        self.ends_visibly = answer.ends_visibly

    def read(self, size: int, /) -> bytes:
        with self._server.faults(self._operation):
            return self._answer.read(size)

    def close(self) -> None:
        self._answer.close()
