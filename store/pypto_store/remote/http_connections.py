"""HTTP exchanges that end in time: kept connections, one deadline for each exchange.

Every wait of an exchange (connecting, encryption, sending, the answer's head, each piece of its
body) is held to what is left of its time, so that a server which sends a byte now and then does not
hold anybody up. Only looking up a name is left to the system's own limits.

An exchange has two halves, sending and waiting: who wants many things sends several requests, each
on a connection of its own, before waiting for the first answer. That hides what one round trip
takes without a thread; on a near server threads cost more than the exchanges themselves.

What goes wrong leaves as the exception that the standard library raises for it (OSError,
http.client.HTTPException, UnicodeError from a name that cannot be one); `http_server` makes faults
of these.
"""

from __future__ import annotations

import http.client
import os
import threading
from collections import deque
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeVar

from pypto_store.remote.blob_store import CHUNK, Source
from pypto_store.remote.http_timed import TimedConnection

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable

_Result = TypeVar("_Result")

KEPT = 8  # idle connections; and exchanges that one request for many blobs has under way
_LONG = 0.002  # seconds; where connecting takes longer, it is worth a thread
_DRAINED = 1 << 16  # bytes of an answer that nobody wants, read so that the connection can be kept


class SourceFailed(Exception):
    """`error` was raised by the source of a body, not by the connection."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class HttpConnections:
    """Connections to one server, for any number of threads.

    context: how connections are encrypted; None for not at all.
    long: seconds; where connecting took as long, several connections are made in threads.
    """

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext | None, *, long: float = _LONG
    ) -> None:
        self._address = (host, port)
        self._context = context
        self._long = long
        self._idle: deque[TimedConnection] = deque()
        self._process = os.getpid()
        self._closed = False
        self.connecting_took = 0.0  # seconds, the last time

    def begin(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]],
        *,
        end: float,
        body: Source | None = None,
    ) -> HttpExchange:
        """Send a request with its body. Either its answer is waited for, or it is closed.

        end: when it has taken too long, a time of time.monotonic().
        """
        return HttpExchange(self, (method, target, headers, body), end)

    def prepare(self, count: int, end: float) -> None:
        """Have up to `count` connections idle, if making one after another would take long.

        What goes wrong here goes wrong again for whoever asks something, and is his to report.
        """
        self._leave_those_of_a_parent()
        missing = min(count, KEPT) - len(self._idle)
        if missing < 2 or self.connecting_took < self._long:
            return
        threads = [
            threading.Thread(target=self._connect_ahead, args=(end,), daemon=True)
            for _ in range(missing)
        ]
        with suppress(RuntimeError):  # none can be started while the interpreter ends
            for thread in threads:
                thread.start()
        for thread in threads:
            if thread.ident is not None:
                thread.join()

    def _connect_ahead(self, end: float) -> None:
        connection = self.new(end)
        try:
            connection.connect()
        except (OSError, UnicodeError):
            connection.close()
        else:
            self.keep(connection)

    def new(self, end: float) -> TimedConnection:
        """A connection that is made when something is asked on it."""
        connection = TimedConnection(*self._address, self._context)
        connection.end = end
        return connection

    def take(self) -> TimedConnection | None:
        """An idle connection on which nothing has arrived; None if there is none."""
        self._leave_those_of_a_parent()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.is_quiet():
                return connection
            connection.close()

    def keep(self, connection: TimedConnection) -> None:
        """Have a connection idle; nothing is under way on it."""
        if self._closed or len(self._idle) >= KEPT or self._process != os.getpid():
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle; what is in use is closed when its answer is."""
        self._closed = True
        self._close_idle()

    def _leave_those_of_a_parent(self) -> None:
        if self._process != os.getpid():
            # They are the parent's too: two processes would read each other's answers.
            self._process = os.getpid()
            self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


class HttpExchange:
    """A request that was sent and whose answer nobody has waited for.

    It may reach the server twice: when a kept connection turns out to be gone before it answered,
    everything is done once more on a new one, in the same time.
    """

    def __init__(
        self,
        connections: HttpConnections,
        request: tuple[str, str, Iterable[tuple[str, str]], Source | None],
        end: float,
    ) -> None:
        self._connections = connections
        self._request = request
        self._end = end
        kept = connections.take()
        self._replaceable = kept is not None
        if kept is None:
            self._send_on_a_new_one()
            return
        kept.end = end
        self._connection = kept
        try:
            self._send()
        except ConnectionError:
            # It was given up by the server while it was idle, as servers do.
            self._send_on_a_new_one()

    def answer(self) -> HttpAnswer:
        """Wait for the head of the answer, which the caller closes."""
        if self._replaceable:
            try:
                return self._answer()
            except ConnectionError:
                self._send_on_a_new_one()
        return self._answer()

    def fileno(self) -> int:
        """What becomes readable when an answer comes, or none will."""
        number: int = self._connection.sock.fileno()
        return number

    def close(self) -> None:
        """Give the exchange up, in place of waiting for its answer."""
        self._connection.close()

    def _send_on_a_new_one(self) -> None:
        self._replaceable = False
        self._connection = self._connections.new(self._end)
        self._send()
        self._connections.connecting_took = self._connection.connecting_took

    def _send(self) -> None:
        method, target, headers, body = self._request
        connection = self._connection
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders()
            if body is not None:
                _send(connection, body)
        except BaseException:
            connection.close()
            raise

    def _answer(self) -> HttpAnswer:
        connection = self._connection
        try:
            return HttpAnswer(connection.getresponse(), connection, self._connections.keep)
        except BaseException:
            connection.close()
            raise


def _send(connection: TimedConnection, body: Source) -> None:
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
        connection: TimedConnection,
        keep: Callable[[TimedConnection], None],
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
