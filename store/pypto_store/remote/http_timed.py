"""Connections on which no wait goes beyond the time that is set for it.

Connecting, encryption, sending and each piece that is read are held to it; only looking up a name
is left to the system's own limits.
"""

from __future__ import annotations

import http.client
import io
import select
import socket
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable


class TimedConnection(http.client.HTTPConnection):
    """A connection on which no wait goes beyond `end`, a time of time.monotonic()."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        super().__init__(host, port)
        self.default_port = http.client.HTTPS_PORT if context else http.client.HTTP_PORT
        self._context = context
        self.sock: Any = None
        self.end = 0.0
        self.connecting_took = 0.0  # seconds, encryption included
        self._asked = False

    def left(self) -> float:
        """Seconds that are left; TimeoutError without any."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is up")
        return left

    def putrequest(self, *arguments: Any, **options: Any) -> None:
        """Begin a request, as http.client has it."""
        self._asked = True
        super().putrequest(*arguments, **options)

    def connect(self) -> None:
        """Connect to the first address that can be connected to."""
        error: OSError | None = None
        begin = time.monotonic()
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
                self.connecting_took = time.monotonic() - begin
                return
        assert error is not None  # getaddrinfo raises where there is no address
        raise error

    def _encrypted(self, plain: socket.socket) -> socket.socket:
        if self._context is None:
            return plain
        plain.settimeout(self.left())
        return self._context.wrap_socket(plain, server_hostname=self.host)

    def is_quiet(self) -> bool:
        """Whether nothing has arrived on it, neither bytes that nobody asked for nor its end.

        Before anything was asked, what arrives is a part of encryption: tickets for another time.
        """
        if not self._asked:
            return True
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
