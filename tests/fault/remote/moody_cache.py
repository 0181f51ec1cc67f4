"""An HTTP cache that is well, and in other moods."""

from __future__ import annotations

import http_cache_server
from http_cache_server import HttpCacheServer


class MoodyCache(HttpCacheServer):
    """`mood(method, place)` is asked about each request, `place` being "ac" or "cas".

    `heard` has the method and the path of each, also of those that are not served.

    None: it is served. A number: the status it gets. Anything else is called with the handler, in
    place of an answer.
    """

    def __init__(self, context=None):
        super().__init__(context)
        self.heard = []
        self.mood = lambda method, place: None
        self.RequestHandlerClass = _MoodyHandler


class _MoodyHandler(http_cache_server._Handler):
    def _served(self, serve):
        parts = self.path.split("/")
        self.server.heard.append((self.command, self.path))
        mood = self.server.mood(self.command, parts[-2] if len(parts) > 1 else "")
        if mood is None:
            serve()
            return
        if self.command == "PUT":
            self.rfile.read(int(self.headers["Content-Length"]))
        if isinstance(mood, int):
            self._answer(mood)
        else:
            mood(self)

    def do_GET(self):
        self._served(super().do_GET)

    def do_HEAD(self):
        self._served(super().do_GET)

    def do_PUT(self):
        self._served(super().do_PUT)


def hang_up(handler):
    """End the connection without an answer."""
    handler.close_connection = True
