"""http:// and many blobs: several connections at once, few of them, and none left behind."""

from __future__ import annotations

import os
import signal
import ssl
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from http_cache_server import HttpCacheServer
from pypto_store import RemoteConfig, TlsConfig
from pypto_store.remote import http_connections
from pypto_store.remote.blob_store import BlobDigest, RemoteFault, RemoteRefused, RemoteUnavailable
from pypto_store.remote.engines import open_engine
from pypto_store.remote.http_connections import KEPT, HttpConnections
from scripted_server import Conversation, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pypto_store.remote.blob_store import Engine

PKI = Path(__file__).parents[1] / "pki"
BLOBS = {BlobDigest.of(data): data for data in (b"%d" % number * 50 for number in range(10, 30))}
PATIENCE = 60.0  # seconds; nothing here takes them


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Conversation], None]], tuple[ScriptedServer, Engine]]]:
    """Starts a server with a script for each connection, and gives it and an engine for it."""
    opened: list[ScriptedServer | Engine] = []

    def start(script: Callable[[Conversation], None]) -> tuple[ScriptedServer, Engine]:
        server = ScriptedServer(script)
        engine = open_engine(RemoteConfig(server.url, timeout=PATIENCE))
        opened.extend((server, engine))
        return server, engine

    yield start
    for thing in reversed(opened):
        thing.stop() if isinstance(thing, ScriptedServer) else thing.close()


@pytest.fixture
def server() -> Iterator[HttpCacheServer]:
    server = HttpCacheServer()
    yield server
    server.stop()


def steps(engine: Engine) -> dict[str, Callable[[], object]]:
    """Everything that is asked for many blobs."""
    return {
        "get": lambda: engine.blobs.get_many(BLOBS),
        "find": lambda: engine.blobs.find_missing(BLOBS),
        "put": lambda: engine.blobs.put_many(BLOBS),
    }


def test_some_are_asked_before_the_first_is_answered_and_no_more_than_a_few(serve):
    everybody = threading.Barrier(KEPT)

    def script(talk: Conversation) -> None:
        while talk.hear_whole():
            # Broken, and the test red, unless so many requests are under way at once.
            everybody.wait(PATIENCE)
            talk.say(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    server, engine = serve(script)
    some = list(BLOBS)[: 2 * KEPT]
    assert engine.blobs.get_many(some) == {}
    assert engine.blobs.find_missing(some) == set(some)
    assert server.connections == KEPT


def test_what_is_there_comes_and_what_is_not_does_not(server):
    some = dict(list(BLOBS.items())[::2])
    with closing(open_engine(RemoteConfig(server.url))) as engine:
        engine.blobs.put_many(some)
        assert engine.blobs.get_many([*BLOBS, *BLOBS]) == some
        assert engine.blobs.find_missing(BLOBS) == BLOBS.keys() - some.keys()
    assert server.connections == KEPT
    assert len(server.requests) == len(some) + 2 * len(BLOBS)


def test_one_blob_has_one_connection_and_a_near_server_no_thread(server, monkeypatch):
    threads: list[object] = []
    monkeypatch.setitem(HttpConnections.__init__.__kwdefaults__, "long", PATIENCE)
    monkeypatch.setattr(HttpConnections, "_connect_ahead", lambda *_: threads.append(1))
    digest, data = next(iter(BLOBS.items()))
    with closing(open_engine(RemoteConfig(server.url))) as engine:
        engine.blobs.put_many({digest: data})
        assert engine.blobs.get_many([digest]) == {digest: data}
        assert engine.blobs.find_missing([digest]) == frozenset()
        assert server.connections == 1
        engine.blobs.put_many(BLOBS)
        assert server.connections == KEPT
    assert threads == []


@pytest.mark.parametrize("step", ["get", "find", "put"])
def test_a_fault_of_one_ends_the_others_at_once(serve, step):
    first = threading.Lock()
    given_up = threading.Semaphore(0)

    def script(talk: Conversation) -> None:
        if first.acquire(blocking=False):
            talk.hear_whole()
            talk.say(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        elif talk.hear_whole():
            # Silent until the client hangs up.
            assert talk.hear_whole() == b""
            given_up.release()

    _, engine = serve(script)
    with pytest.raises(RemoteRefused, match="403"):
        steps(engine)[step]()
    for _ in range(KEPT - 1):
        assert given_up.acquire(timeout=PATIENCE)


@pytest.mark.parametrize("step", ["get", "find", "put"])
def test_servers_that_are_down_are_one_fault(serve, step):
    def script(talk: Conversation) -> None:
        talk.hear_whole()

    _, engine = serve(script)
    with pytest.raises(RemoteUnavailable, match="closed connection"):
        steps(engine)[step]()


def test_connections_that_are_gone_are_replaced_in_the_middle(serve):
    def script(talk: Conversation) -> None:
        talk.hear_whole()
        # It does not say that it will hang up.
        talk.say(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    server, engine = serve(script)
    for _ in range(2):
        assert engine.blobs.find_missing(BLOBS) == BLOBS.keys()
    assert server.connections >= 2 * len(BLOBS)


def test_connections_that_go_without_an_answer_are_replaced_too(serve):
    def script(talk: Conversation) -> None:
        talk.hear_whole()
        talk.say(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        # What is asked next is heard, and not answered.
        talk.hear_whole()

    server, engine = serve(script)
    some = list(BLOBS)[:KEPT]
    for _ in range(3):
        assert engine.blobs.find_missing(some) == set(some)
    assert server.connections == 3 * KEPT


@pytest.mark.parametrize("encrypted", [False, True])
def test_connections_to_a_far_server_are_made_at_the_same_time(encrypted):
    context = None
    if encrypted:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(PKI / "server.pem")
    server = HttpCacheServer(context)
    try:
        client = ssl.create_default_context(cafile=PKI / "ca.pem") if encrypted else None
        connections = HttpConnections("127.0.0.1", server.server_port, client, long=0.0)
        end = time.monotonic() + PATIENCE
        connections.prepare(100, end)
        exchanges = [connections.begin("GET", "/", [("A", "b")], end=end) for _ in range(KEPT)]
        for exchange in exchanges:
            with closing(exchange.answer()) as answer:
                assert answer.status == 404
        connections.prepare(100, end)
        connections.close()
        assert server.connections == KEPT == len(server.requests)
    finally:
        server.stop()


def test_while_the_interpreter_ends_it_goes_without_threads(server, monkeypatch):
    class Thread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setitem(HttpConnections.__init__.__kwdefaults__, "long", 0.0)
    # The server's threads are started in this process too, and can be.
    monkeypatch.setattr(http_connections, "threading", SimpleNamespace(Thread=Thread))
    with closing(open_engine(RemoteConfig(server.url))) as engine:
        engine.blobs.put_many(BLOBS)
        assert engine.blobs.get_many(BLOBS) == BLOBS


def test_parent_and_child_share_none_of_them(server, monkeypatch):
    monkeypatch.setitem(HttpConnections.__init__.__kwdefaults__, "long", 0.0)
    with closing(open_engine(RemoteConfig(server.url))) as engine:
        engine.blobs.put_many(BLOBS)
        child = os.fork()
        if child == 0:
            signal.alarm(int(PATIENCE))
            os._exit(0 if engine.blobs.get_many(BLOBS) == BLOBS else 1)
        assert engine.blobs.get_many(BLOBS) == BLOBS
        assert os.waitpid(child, 0)[1] == 0
        assert engine.blobs.get_many(BLOBS) == BLOBS
    assert server.connections == 2 * KEPT


def test_a_far_server_that_is_gone_is_a_fault_of_the_request(server, monkeypatch):
    monkeypatch.setitem(HttpConnections.__init__.__kwdefaults__, "long", 0.0)
    server.stop()
    with closing(open_engine(RemoteConfig(server.url))) as engine:
        for step in steps(engine).values():
            with pytest.raises(RemoteFault, match="refused"):
                step()


def test_encrypted_blobs_come_over_several_connections():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PKI / "server.pem")
    server = HttpCacheServer(context)
    config = RemoteConfig(server.url, tls=TlsConfig(ca=PKI / "ca.pem"))
    try:
        with closing(open_engine(config)) as engine:
            engine.blobs.put_many(BLOBS)
            assert engine.blobs.get_many(BLOBS) == BLOBS
            assert engine.blobs.find_missing(BLOBS) == frozenset()
        assert server.connections == KEPT
    finally:
        server.stop()
