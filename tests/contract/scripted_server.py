"""A server on loopback that says, byte for byte, what a test has it say."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Conversation:
    """One connection of a client."""

    def __init__(self, connection: socket.socket, stopping: threading.Event) -> None:
        self._connection = connection
        self._stopping = stopping
        self._arrived = b""

    def hear(self) -> bytes:
        """The head of the next request; empty when the client has gone."""
        while b"\r\n\r\n" not in self._arrived:
            piece = self._connection.recv(1 << 16)
            if not piece:
                return b""
            self._arrived += piece
        head, _, self._arrived = self._arrived.partition(b"\r\n\r\n")
        return head + b"\r\n"

    def hear_whole(self) -> bytes:
        """The head of the next request, after its body was read."""
        head = self.hear()
        match = _LENGTH.search(b"\r\n" + head)
        size = int(match[1]) if match else 0
        while len(self._arrived) < size:
            piece = self._connection.recv(1 << 16)
            if not piece:
                return head
            self._arrived += piece
        self._arrived = self._arrived[size:]
        return head

    def say(self, data: bytes) -> None:
        self._connection.sendall(data)

    def drip(self, data: bytes, seconds: float = 0.02) -> None:
        """Say it byte by byte, with a while between any two."""
        for byte in data:
            self.say(bytes((byte,)))
            if self._stopping.wait(seconds):
                return

    def be_silent(self) -> None:
        """Neither say anything nor hang up, until the test is over."""
        self._stopping.wait(120)

    def reset(self) -> None:
        """End the connection as a crash does."""
        linger_not_at_all = b"\1\0\0\0\0\0\0\0"
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not_at_all)
        self._connection.close()


class ScriptedServer:
    """Runs `script` with every connection, each in a thread, until `stop()`."""

    def __init__(self, script: Callable[[Conversation], None]) -> None:
        self._script = script
        self._stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._stopping.is_set():
                connection.close()
                return
            self.connections += 1
            thread = threading.Thread(target=self._run, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _run(self, connection: socket.socket) -> None:
        connection.settimeout(120)
        # The client goes away whenever it likes: that is what most of these tests are about.
        with connection, suppress(OSError):
            self._script(Conversation(connection, self._stopping))

    def stop(self) -> None:
        self._stopping.set()
        with socket.create_connection(self._listener.getsockname()):
            self._threads[0].join()
        self._listener.close()
        for thread in self._threads[1:]:
            thread.join()
