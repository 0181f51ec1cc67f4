"""A server of HTTP: requests with credentials, and everything that goes wrong made a fault."""

from __future__ import annotations

import http.client
import select
import ssl
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from pypto_store.outcomes import reason_of
from pypto_store.remote.blob_store import (
    SLOWEST,
    RemoteFault,
    RemoteProtocolError,
    RemoteRefused,
    RemoteUnavailable,
    Source,
)
from pypto_store.remote.credentials import credentials_of
from pypto_store.remote.http_connections import (
    HttpAnswer,
    HttpConnections,
    HttpExchange,
    SourceFailed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pypto_store.remote_config import RemoteConfig, TlsConfig

_REFUSED = frozenset({401, 403, 405, 407, 501})  # 405 and 501 by servers that only read
_TOO_LARGE = 413
_BUSY = frozenset({408, 429})
_NO_CREDENTIALS = 401
_SHOWN = 120  # characters of what a server says that are repeated in a message


class HttpServer:
    """One server, used by any number of threads; ValueError for files that cannot be used."""

    def __init__(self, config: RemoteConfig) -> None:
        parts = urlsplit(config.url)
        assert parts.hostname is not None  # RemoteConfig has seen to it
        encrypted = parts.scheme == "https"
        context = _context(config.tls) if encrypted else None
        self.connections = HttpConnections(
            parts.hostname, parts.port or (443 if encrypted else 80), context
        )
        self.credentials = credentials_of(config)
        self._prefix = parts.path.rstrip("/")
        self._url = config.shown_url
        self._timeout = config.timeout

    def deadline(self, size: int) -> float:
        """When moving `size` bytes, begun now, has taken too long: a time of time.monotonic()."""
        return time.monotonic() + self._timeout + size / SLOWEST

    def ask(
        self,
        method: str,
        place: str,
        operation: str,
        *,
        end: float,
        body: tuple[int, Source] | None = None,
    ) -> HttpRequest:
        """Send a request, with a body of that size; its answer is to be taken, or it is closed."""
        return HttpRequest(self, (method, f"{self._prefix}/{place}", operation), end, body)

    def reject(self, answer: HttpAnswer, operation: str) -> NoReturn:
        """Raise the fault for a status that is not among the expected ones."""
        said = f"it answered {answer.status} {_shown(answer.reason)}"
        if answer.status in _REFUSED:
            remedy = "check the credentials in RemoteConfig, or have permission given"
            raise self._fault(RemoteRefused, operation, said, remedy)
        if answer.status == _TOO_LARGE:
            remedy = "have the server take larger bodies, or leave this on its machine"
            raise self._fault(RemoteProtocolError, operation, said, remedy)
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


class HttpRequest:
    """A request that was sent. Where credentials are not accepted it is sent again with others."""

    def __init__(
        self,
        server: HttpServer,
        what: tuple[str, str, str],
        end: float,
        body: tuple[int, Source] | None,
    ) -> None:
        self._server = server
        self._method, self._target, self.operation = what
        self._end = end
        self._body = body
        self._send()

    def answer(self) -> HttpAnswer:
        """Wait for the head of the answer, which the caller closes."""
        answer = self._wait()
        if answer.status == _NO_CREDENTIALS and self._server.credentials.renew(self._credentials):
            answer.close()
            self._send()
            answer = self._wait()
        return answer

    def fileno(self) -> int:
        """What becomes readable when an answer comes, or none will."""
        return self._exchange.fileno()

    def close(self) -> None:
        """Give the request up, in place of taking its answer."""
        self._exchange.close()

    def _send(self) -> None:
        self._credentials = self._server.credentials.headers()
        headers = [("Accept-Encoding", "identity"), *self._credentials]
        source = None
        if self._body is not None:
            size, source = self._body
            headers.append(("Content-Length", str(size)))
        try:
            with self._server.faults(self.operation):
                self._exchange: HttpExchange = self._server.connections.begin(
                    self._method, self._target, headers, end=self._end, body=source
                )
        except SourceFailed as failure:
            raise failure.error from None

    def _wait(self) -> HttpAnswer:
        try:
            with self._server.faults(self.operation):
                return self._exchange.answer()
        except SourceFailed as failure:
            raise failure.error from None


def first_answered(requests: Sequence[HttpRequest], end: float) -> int:
    """The place of a request that was answered; 0 where nothing has come until `end`.

    One that does not end holds up no other, and a refusal of one is seen at once.
    """
    if len(requests) > 1:
        poll = select.poll()
        for request in requests:
            poll.register(request.fileno(), select.POLLIN)
        answered = {number for number, _ in poll.poll(1000 * max(end - time.monotonic(), 0))}
        for place, request in enumerate(requests):
            if request.fileno() in answered:
                return place
    return 0


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
