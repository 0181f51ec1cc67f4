"""A small server of Bazel's HTTP cache protocol on loopback, as simple-minded as such are."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

_PLACE = re.compile(r"(?:/[\w.-]+)*/((?:ac|cas)/[0-9a-f]{64})")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or a body waits for the client to acknowledge its head
    server: HttpCacheServer

    def _place(self) -> str | None:
        match = _PLACE.fullmatch(self.path)
        self.server.requests.append((self.command, self.path, dict(self.headers)))
        return match and match[1]

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        body = self.server.files.get(self._place())
        self._answer(404 if body is None else 200, body or b"")

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        place, size = self._place(), int(self.headers["Content-Length"])
        body = self.rfile.read(size)
        if len(body) == size and place is not None:
            self.server.files[place] = body
            self._answer(201)

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class HttpCacheServer(ThreadingHTTPServer):
    """Serves from construction to `stop()`. `files` has what is stored by `cas/<sha256>`."""

    daemon_threads = True
    block_on_close = False
    # Of more than these that arrive at once, the system drops some, and the client waits a second.
    request_queue_size = 128

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        if context is not None:
            # The handshake is done by a connection's own thread, when it reads.
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self.files: dict[str | None, bytes] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.connections = 0
        self.lock = threading.Lock()
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def handle_error(self, *_: object) -> None:
        """Clients of these tests go away in the middle; that is no news."""

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
