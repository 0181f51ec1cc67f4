"""HTTP exchanges that end in time: kept connections, one deadline for each exchange.

Every wait of an exchange (connecting, encryption, sending, the answer's head, each piece of its
body) is held to what is left of its time, so that a server which sends a byte now and then does not
hold anybody up. Only looking up a name is left to the system's own limits.

What goes wrong leaves as the exception that the standard library raises for it (OSError,
http.client.HTTPException, UnicodeError from a name that cannot be one); `http_cache` makes faults
of these.
"""

from __future__ import annotations

import http.client
import io
import os
import select
import socket
import ssl
import time
from collections import deque
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pypto_store.remote.blob_store import CHUNK, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_Result = TypeVar("_Result")

_KEPT = 8  # idle connections
_DRAINED = 1 << 16  # bytes of an answer that nobody wants, read so that the connection can be kept


class SourceFailed(Exception):
    """`error` was raised by the source of a body, not by the connection."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class HttpConnections:
    """Connections to one server, for any number of threads.

    context: how connections are encrypted; None for not at all.
    """

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        self._address = (host, port)
        self._context = context
        self._idle: deque[_Connection] = deque()
        self._process = os.getpid()
        self._closed = False

    def exchange(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]],
        *,
        seconds: float,
        body: Source | None = None,
    ) -> HttpAnswer:
        """Send a request and wait for the head of its answer, which the caller closes.

        A request may reach the server twice: when a kept connection turns out to be gone before it
        answered, everything is done once more on a new one, in the same time.
        """
        end = time.monotonic() + seconds
        kept = self._take()
        if kept is not None:
            try:
                return self._ask(kept, method, target, headers, body, end)
            except ConnectionError:
                pass  # it was given up by the server while it was idle, as servers do
        connection = _Connection(*self._address, self._context)
        return self._ask(connection, method, target, headers, body, end)

    def _ask(
        self,
        connection: _Connection,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]],
        body: Source | None,
        end: float,
    ) -> HttpAnswer:
        connection.end = end
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders()
            if body is not None:
                _send(connection, body)
            return HttpAnswer(connection.getresponse(), connection, self._keep)
        except BaseException:
            connection.close()
            raise

    def _take(self) -> _Connection | None:
        """An idle connection on which nothing has arrived; None if there is none."""
        if self._process != os.getpid():
            # They belong to the parent too: two processes would read each other's answers.
            self._process = os.getpid()
            self._close_idle()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.is_quiet():
                return connection
            connection.close()

    def _keep(self, connection: _Connection) -> None:
        if self._closed or len(self._idle) >= _KEPT or self._process != os.getpid():
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle; what is in use is closed when its answer is."""
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


def _send(connection: _Connection, body: Source) -> None:
    """Send a body. A server that answers before it has everything is listened to instead."""
    with closing(_from_source(body)) as stream:
        while piece := _from_source(lambda: stream.read(CHUNK)):
            try:
                connection.send(piece)
            except (BrokenPipeError, ConnectionResetError):
                return


def _from_source(step: Callable[[], _Result]) -> _Result:
    """What a step gives; SourceFailed for an error that would look like one of the connection's."""
    try:
        return step()
    except (OSError, UnicodeError) as error:
        raise SourceFailed(error) from error


class HttpAnswer:
    """The answer to a request: its head, and its body as a stream."""

    def __init__(
        self,
        response: http.client.HTTPResponse,
        connection: _Connection,
        keep: Callable[[_Connection], None],
    ) -> None:
        self._response = response
        self._connection = connection
        self._keep = keep
        self._closed = False
        self.status = response.status
        self.length = response.length  # bytes of the body; None when it has another end

    @property
    def reason(self) -> str:
        """The words beside the status, as they came."""
        return self._response.reason

    @property
    def ends_visibly(self) -> bool:
        """Whether a body that was cut off can be told from one that was not."""
        return self.length is not None or self._response.chunked

    def header(self, name: str) -> str | None:
        """The value of a header; None without it."""
        return self._response.getheader(name)

    def read(self, size: int, /) -> bytes:
        """At most `size` further bytes of the body; IncompleteRead if it was cut off."""
        if self._closed or self._response.isclosed():
            return b""
        piece = self._response.read(size)
        if not piece and self._response.length:
            raise http.client.IncompleteRead(b"", self._response.length)
        return piece

    def close(self) -> None:
        """Give the connection back, or up if the body was not read to its end."""
        if self._closed:
            return
        try:
            self.read(_DRAINED)
        except (OSError, http.client.HTTPException):
            self._connection.close()
        self._closed = True
        if self._response.isclosed() and self._connection.sock is not None:
            self._keep(self._connection)
        else:
            self._connection.close()
            self._response.close()


class _Connection(http.client.HTTPConnection):
    """A connection on which no wait goes beyond `end`, a time of time.monotonic()."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        super().__init__(host, port)
        self.default_port = http.client.HTTPS_PORT if context else http.client.HTTP_PORT
        self._context = context
        self.sock: Any = None
        self.end = 0.0

    def left(self) -> float:
        """Seconds that are left; TimeoutError without any."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is up")
        return left

    def connect(self) -> None:
        """Connect to the first address that can be connected to."""
        error: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM
        ):
            plain = socket.socket(family, kind, protocol)
            try:
                plain.settimeout(self.left())
                plain.connect(address)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.sock = _TimedSocket(self._encrypted(plain), self.left)
            except BaseException as failure:
                plain.close()
                if not isinstance(failure, OSError):
                    raise
                error = failure
            else:
                return
        assert error is not None  # getaddrinfo raises where there is no address
        raise error

    def _encrypted(self, plain: socket.socket) -> socket.socket:
        if self._context is None:
            return plain
        plain.settimeout(self.left())
        return self._context.wrap_socket(plain, server_hostname=self.host)

    def is_quiet(self) -> bool:
        """Whether nothing has arrived on it, neither bytes that nobody asked for nor its end."""
        poll = select.poll()
        poll.register(self.sock.fileno(), select.POLLIN)
        return not poll.poll(0)


class _TimedSocket:
    """What http.client uses of a socket, held to the connection's time."""

    def __init__(self, inner: socket.socket, left: Callable[[], float]) -> None:
        self._inner = inner
        self._left = left

    def fileno(self) -> int:
        return self._inner.fileno()

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._inner.settimeout(self._left())
            rest = rest[self._inner.send(rest) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_TimedReader(self._inner, self._left))

    def close(self) -> None:
        self._inner.close()


class _TimedReader(io.RawIOBase):
    """The reading half of a socket; it keeps the socket open for as long as it is open itself."""

    def __init__(self, inner: socket.socket, left: Callable[[], float]) -> None:
        super().__init__()
        self._inner = inner
        self._left = left
        self._file = inner.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._inner.settimeout(self._left())
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()
