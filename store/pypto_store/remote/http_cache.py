"""http:// and https:// — Bazel's HTTP cache protocol, which WebDAV servers and cache servers speak.

    GET, HEAD, PUT <path>/cas/<sha256>     a blob
    GET, PUT       <path>/ac/<sha256>      an entry, by the SHA-256 of its action

200 is yes, 404 and 410 are absent, 401 and 403 a refusal; a redirect is an error, because the
client would take its credentials to a place that nobody configured. Servers may be as simple as
nginx: they check nothing, and a PUT replaces what was there.
"""

from __future__ import annotations

import http.client
import ssl
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from pypto_store.outcomes import reason_of
from pypto_store.remote.blob_store import (
    ENTRY_LIMIT,
    BlobDigest,
    BlobStream,
    RemoteFault,
    RemoteProtocolError,
    RemoteRefused,
    RemoteUnavailable,
    Source,
    check_entry_size,
    read_at_most,
    source_of,
)
from pypto_store.remote.http_connections import HttpAnswer, HttpConnections, SourceFailed
from pypto_store.remote.one_by_one import OneByOneBlobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pypto_store.remote_config import RemoteConfig, TlsConfig

SLOWEST = 1 << 20  # bytes per second; whoever moves less gets no more time for it

_ABSENT = frozenset({404, 410})
_STORED = frozenset({200, 201, 202, 204})
# 405 and 501 are what servers say that only read; 413 one that takes no blob of that size.
_REFUSED = frozenset({401, 403, 405, 407, 413, 501})
_BUSY = frozenset({408, 429})
_SHOWN = 120  # characters of what a server says that are repeated in a message


class HttpCache:
    """The engine of http:// and https://.

    ValueError for files of encryption that cannot be used.
    """

    def __init__(self, config: RemoteConfig) -> None:
        server = _Server(config)
        self.blobs = _HttpBlobs(server)
        self.entries = _HttpEntries(server)
        self._server = server

    def close(self) -> None:
        """Close the idle connections."""
        self._server.connections.close()


class _HttpBlobs(OneByOneBlobs):
    def __init__(self, server: _Server) -> None:
        self._server = server

    def get(self, digest: BlobDigest) -> BlobStream | None:
        return self._server.get(f"cas/{digest.sha256}", digest.size, f"get blob {digest}")

    def put(self, digest: BlobDigest, source: Source) -> None:
        self._server.put(f"cas/{digest.sha256}", digest.size, source, f"put blob {digest}")

    def is_missing(self, digest: BlobDigest) -> bool:
        return not self._server.has(f"cas/{digest.sha256}", digest.size, f"find blob {digest}")


class _HttpEntries:
    def __init__(self, server: _Server) -> None:
        self._server = server

    def get(self, name: BlobDigest) -> bytes | None:
        operation = f"get entry {name}"
        stream = self._server.get(f"ac/{name.sha256}", 0, operation)
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
        self._server.put(f"ac/{name.sha256}", len(entry), source_of(entry), f"put entry {name}")


class _Server:
    """One server's answers, with everything but the expected ones made a fault of the remote."""

    def __init__(self, config: RemoteConfig) -> None:
        parts = urlsplit(config.url)
        assert parts.hostname is not None  # RemoteConfig has seen to it
        encrypted = parts.scheme == "https"
        context = _context(config.tls) if encrypted else None
        self.connections = HttpConnections(
            parts.hostname, parts.port or (443 if encrypted else 80), context
        )
        self._prefix = parts.path.rstrip("/")
        self._url = config.shown_url
        self._timeout = config.timeout
        self._headers = [("Accept-Encoding", "identity"), *config.headers]
        if config.basic_authorization is not None:
            self._headers.append(("Authorization", config.basic_authorization))

    def get(self, place: str, size: int, operation: str) -> _BodyStream | None:
        """The body that is there, or None. `size`: what it will have, for the time it may take."""
        answer = self._ask("GET", place, size, operation)
        if answer.status == 200:
            if (answer.header("Content-Encoding") or "identity").lower() != "identity":
                answer.close()
                self.nonsense(operation, "it is encoded in a way that was not asked for")
            return _BodyStream(answer, self, operation)
        answer.close()
        if answer.status not in _ABSENT:
            self._reject(answer, operation)
        return None

    def has(self, place: str, size: int, operation: str) -> bool:
        """Whether something is there that may have `size` bytes."""
        with closing(self._ask("HEAD", place, 0, operation)) as answer:
            if answer.status == 200:
                stated = answer.header("Content-Length")
                return stated is None or stated == str(size)
        if answer.status not in _ABSENT:
            self._reject(answer, operation)
        return False

    def put(self, place: str, size: int, source: Source, operation: str) -> None:
        """Store a body of `size` bytes."""
        with closing(self._ask("PUT", place, size, operation, source)) as answer:
            pass
        if answer.status not in _STORED:
            self._reject(answer, operation)

    def _ask(
        self, method: str, place: str, size: int, operation: str, source: Source | None = None
    ) -> HttpAnswer:
        headers = self._headers
        if source is not None:
            headers = [*headers, ("Content-Length", str(size))]
        try:
            with self.faults(operation):
                return self.connections.exchange(
                    method,
                    f"{self._prefix}/{place}",
                    headers,
                    seconds=self._timeout + size / SLOWEST,
                    body=source,
                )
        except SourceFailed as failure:
            raise failure.error from None

    def _reject(self, answer: HttpAnswer, operation: str) -> NoReturn:
        """Raise the fault for a status that is not among the expected ones."""
        said = f"it answered {answer.status} {_shown(answer.reason)}"
        if answer.status in _REFUSED:
            remedy = "check the credentials in RemoteConfig, or have permission given"
            raise self._fault(RemoteRefused, operation, said, remedy)
        if answer.status >= 500 or answer.status in _BUSY:
            raise self._fault(RemoteUnavailable, operation, said, "see the server's log")
        if 300 <= answer.status < 400:
            said += f", to {_shown(answer.header('Location') or '')}; redirects are not followed"
        self.nonsense(operation, said)

    def nonsense(self, operation: str, reason: str) -> NoReturn:
        """Raise the fault for an answer that Bazel's HTTP cache protocol does not have."""
        remedy = "see that RemoteConfig.url is where the cache is, its path included"
        raise self._fault(RemoteProtocolError, operation, reason, remedy)

    def _fault(
        self, kind: type[RemoteFault], operation: str, reason: str, remedy: str
    ) -> RemoteFault:
        return kind(url=self._url, operation=operation, reason=reason, remedy=remedy)

    @contextmanager
    def faults(self, operation: str) -> Iterator[None]:
        """Make an exception of the transport a fault of the remote."""
        try:
            yield
        except TimeoutError as error:
            remedy = "see whether the server is overloaded, or raise RemoteConfig.timeout"
            reason = f"it did not end in time (timeout {self._timeout:g} s)"
            raise self._fault(RemoteUnavailable, operation, reason, remedy) from error
        except ssl.SSLError as error:
            reason = f"encryption failed: {_shown(_reason_of_encryption(error))}"
            remedy = "check the server's certificate and RemoteConfig.tls"
            raise self._fault(RemoteProtocolError, operation, reason, remedy) from error
        except (http.client.RemoteDisconnected, http.client.IncompleteRead, OSError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            remedy = "see that the server runs and can be reached"
            raise self._fault(RemoteUnavailable, operation, _shown(reason), remedy) from error
        except UnicodeError as error:
            remedy = "check the name of the host in RemoteConfig.url"
            reason = f"no host can have that name ({error})"
            raise self._fault(RemoteUnavailable, operation, reason, remedy) from error
        except http.client.HTTPException as error:
            said = _shown(f"{type(error).__name__} {error}")
            remedy = "see that an HTTP server is at RemoteConfig.url"
            reason = f"its answer is no HTTP: {said}"
            raise self._fault(RemoteProtocolError, operation, reason, remedy) from error


class _BodyStream:
    """The body of an answer whose errors are faults of the remote."""

    def __init__(self, answer: HttpAnswer, server: _Server, operation: str) -> None:
        self._answer = answer
        self._server = server
        self._operation = operation
        self.ends_visibly = answer.ends_visibly

    def read(self, size: int, /) -> bytes:
        with self._server.faults(self._operation):
            return self._answer.read(size)

    def close(self) -> None:
        self._answer.close()


def _context(tls: TlsConfig | None) -> ssl.SSLContext:
    """How connections are encrypted: the server is always checked, by name and by authority."""
    try:
        context = ssl.create_default_context(cafile=None if tls is None else tls.ca)
        if tls is not None and tls.certificate is not None:
            context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise ValueError(f"RemoteConfig.tls cannot be used: {error} ({tls})") from error
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; give one that is not")


def _reason_of_encryption(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return error.reason or str(error)


def _shown(text: str) -> str:
    """What a server said, in one line of printable characters."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}..."
