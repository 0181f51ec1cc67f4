"""Servers that are down, slow, hostile or something else, and the one fault that each is."""

from __future__ import annotations

import os
import socket
import threading
import time
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from http_cache_server import HttpCacheServer
from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import (
    ENTRY_LIMIT,
    BlobDigest,
    CorruptBlob,
    RemoteFault,
    RemoteProtocolError,
    RemoteRefused,
    RemoteUnavailable,
    source_of,
)
from pypto_store.remote.engines import open_engine
from pypto_store.remote.testing import LARGE, fetch, put
from scripted_server import Conversation, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pypto_store.remote.blob_store import Engine

DATA = b"0123456789"
BLOB = BlobDigest.of(DATA)
ENDLESS = b"x" * (1 << 16)
LONG = 60.0  # seconds; a fault that is not one of time must not take them
SHORT = 0.4


@pytest.fixture
def serve() -> Iterator[Callable[..., Engine]]:
    """Starts a server with a script and gives an engine for it."""
    opened: list[ScriptedServer | Engine] = []

    def start(script: Callable[[Conversation], None], timeout: float = LONG) -> Engine:
        server = ScriptedServer(script)
        engine = open_engine(RemoteConfig(server.url, timeout=timeout))
        opened.extend((server, engine))
        return engine

    yield start
    for thing in reversed(opened):
        thing.stop() if isinstance(thing, ScriptedServer) else thing.close()


def answer(data: bytes) -> Callable[[Conversation], None]:
    """Hear a request, say `data`, hang up."""

    def script(talk: Conversation) -> None:
        talk.hear_whole()
        talk.say(data)

    return script


def status(line: bytes, *headers: bytes) -> bytes:
    head = [b"HTTP/1.1 " + line, *headers, b"Content-Length: 0"]
    return b"".join(part + b"\r\n" for part in head) + b"\r\n"


def steps(engine: Engine) -> dict[str, Callable[[], object]]:
    """Everything that can be asked of an engine."""
    return {
        "get blob": lambda: fetch(engine.blobs, BLOB),
        "get many": lambda: engine.blobs.get_many([BLOB]),
        "find blob": lambda: engine.blobs.find_missing([BLOB]),
        "put blob": lambda: engine.blobs.put(BLOB, source_of(DATA)),
        "put many": lambda: engine.blobs.put_many({BLOB: DATA}),
        "get entry": lambda: engine.entries.get(BLOB),
        "put entry": lambda: engine.entries.put(BLOB, DATA),
    }


STATUSES = [
    (status(b"401 Unauthorized"), RemoteRefused, "401 Unauthorized"),
    (status(b"403 Forbidden"), RemoteRefused, "403 Forbidden"),
    (status(b"500 Internal Server Error"), RemoteUnavailable, "500"),
    (status(b"503 Busy"), RemoteUnavailable, "503"),
    (status(b"507 Full"), RemoteUnavailable, "507 Full"),
    (status(b"429 Slower"), RemoteUnavailable, "429"),
    (status(b"302 Found", b"Location: http://x/\x1b[31m"), RemoteProtocolError, r"\?\[31m; redir"),
    (status(b"301 Moved", b"Location: /cas"), RemoteProtocolError, "redirects are not followed"),
    (status(b"400 Bad Request"), RemoteProtocolError, "400"),
    (status(b"206 Partial"), RemoteProtocolError, "206"),
    (status(b"299 Fine"), RemoteProtocolError, "299"),
    (b"220 mail.example ESMTP\r\n" * 2, RemoteProtocolError, "no HTTP: BadStatusLine"),
    (b"\0" * 100 + b"\r\n", RemoteProtocolError, "no HTTP"),
    (b"HTTP/1.1 " + b"x" * 70_000, RemoteProtocolError, "no HTTP"),
    (b"HTTP/1.1 200 " + b"x" * 70_000, RemoteProtocolError, "no HTTP"),
    (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", RemoteProtocolError, "no HTTP"),
    (b"HTTP/1.1 99999 OK\r\n\r\n", RemoteProtocolError, "no HTTP"),
    (b"", RemoteUnavailable, "closed connection"),
    (b"HTTP/1.1 4", RemoteProtocolError, "no HTTP"),
]


@pytest.mark.parametrize(("said", "kind", "reason"), STATUSES, ids=range(len(STATUSES)))
def test_every_answer_that_is_no_yes_is_one_fault(serve, said, kind, reason):
    engine = serve(answer(said))
    for operation, step in steps(engine).items():
        with pytest.raises(kind, match=reason) as caught:
            step()
        fault = caught.value
        assert type(fault) is kind
        assert fault.operation.startswith(operation.split(" ")[0]) and BLOB.sha256.hex in str(fault)
        assert fault.url.startswith("http://127.0.0.1:") and fault.remedy
        assert "\x1b" not in str(fault) and len(str(fault)) < 600


@pytest.mark.parametrize("line", [b"404 Not Found", b"410 Gone"])
def test_absent_is_no_fault_for_who_asks(serve, line):
    engine = serve(answer(status(line)))
    assert engine.blobs.get(BLOB) is None and engine.entries.get(BLOB) is None
    assert engine.blobs.find_missing([BLOB]) == {BLOB}
    with pytest.raises(RemoteProtocolError, match=r"put blob .*404"):
        engine.blobs.put(BLOB, source_of(DATA))


@pytest.mark.parametrize("line", [b"405 Not Allowed", b"501 Unsupported"])
def test_servers_that_only_read_refuse(serve, line):
    with pytest.raises(RemoteRefused, match=line.decode()):
        serve(answer(status(line))).blobs.put(BLOB, source_of(DATA))


def test_a_blob_that_is_too_large_for_a_server_is_no_refusal_of_others(serve):
    engine = serve(answer(status(b"413 Content Too Large")))
    with pytest.raises(RemoteProtocolError, match="413 Content Too Large; have the server take"):
        engine.blobs.put(BLOB, source_of(DATA))


def body(data: bytes, length: int | None) -> bytes:
    head = b"HTTP/1.1 200 OK\r\n"
    if length is not None:
        head += b"Content-Length: %d\r\n" % length
    return head + b"\r\n" + data


@pytest.mark.parametrize(
    ("said", "kind", "reason"),
    [
        (body(b"x" * 10, 10), CorruptBlob, "SHA-256"),
        (body(DATA[:9], 9), CorruptBlob, "1 bytes early|it has 9 bytes"),
        (body(DATA[:9], None), CorruptBlob, "1 bytes early|it has 9 bytes"),
        (body(DATA + b"x", 11), CorruptBlob, "goes on|it has 11 bytes"),
        (body(b"", 0), CorruptBlob, "10 bytes early|it has 0 bytes"),
        (body(DATA[:9], 10), RemoteUnavailable, "IncompleteRead|1 more expected"),
        (body(DATA, 10**18), CorruptBlob, "goes on|more expected"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n" + DATA,
            RemoteProtocolError,
            "encoded",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\nnonsense\r\n",
            RemoteUnavailable,
            "IncompleteRead",
        ),
    ],
)
def test_a_wrong_body_is_a_fault(serve, said, kind, reason):
    engine = serve(answer(said))
    for step in (lambda: fetch(engine.blobs, BLOB, 4), lambda: engine.blobs.get_many([BLOB])):
        with pytest.raises(RemoteFault, match=reason) as caught:
            step()
        assert isinstance(caught.value, kind) or reason.endswith("more expected")


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"fffffffffff\r\n",
    ],
)
def test_a_stream_without_an_end_is_left_after_the_size(serve, head):
    def script(talk: Conversation) -> None:
        talk.hear()
        talk.say(head)
        while True:
            talk.say(ENDLESS)

    engine = serve(script)
    digest = BlobDigest(BLOB.sha256, 1 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBlob, match="goes on"):
            fetch(engine.blobs, digest)
        with pytest.raises(CorruptBlob, match="bytes"):
            engine.blobs.get_many([digest])
        with pytest.raises(RemoteProtocolError, match=r"more than|neither a length nor chunks"):
            engine.entries.get(BLOB)
        assert tracemalloc.get_traced_memory()[1] < 16 * ENTRY_LIMIT
    finally:
        tracemalloc.stop()


def test_an_entry_that_was_cut_off_is_no_entry(serve):
    with pytest.raises(RemoteUnavailable):
        serve(answer(body(DATA, 11))).entries.get(BLOB)
    with pytest.raises(RemoteProtocolError, match="neither a length nor chunks"):
        serve(answer(body(DATA, None))).entries.get(BLOB)
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n" + DATA + b"\r\n"
    assert serve(answer(chunks + b"0\r\n\r\n")).entries.get(BLOB) == DATA
    with pytest.raises(RemoteUnavailable):
        serve(answer(chunks)).entries.get(BLOB)


def silent(talk: Conversation) -> None:
    talk.be_silent()


def drips_its_head(talk: Conversation) -> None:
    talk.hear()
    talk.drip(b"HTTP/1.1 200 OK\r\nA: " + b"b" * 6000)


def drips_interim_answers(talk: Conversation) -> None:
    talk.hear()
    for _ in range(1000):
        talk.drip(b"HTTP/1.1 100 Continue\r\n\r\n", 0.001)


def drips_its_body(talk: Conversation) -> None:
    talk.hear()
    talk.say(b"HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n")
    talk.drip(b"b" * 6000)


def stops_in_its_body(talk: Conversation) -> None:
    talk.hear()
    talk.say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
    talk.be_silent()


def drips_a_refusal(talk: Conversation) -> None:
    talk.hear()
    talk.say(b"HTTP/1.1 404 Not Found\r\nContent-Length: 6000\r\n\r\n")
    talk.drip(b"b" * 6000)


@pytest.mark.parametrize(
    "script", [silent, drips_its_head, drips_interim_answers, drips_its_body, stops_in_its_body]
)
def test_who_is_too_slow_is_down(serve, script):
    engine = serve(script, SHORT)
    asked = BlobDigest(BLOB.sha256, 6000)
    for step in (lambda: fetch(engine.blobs, asked), lambda: engine.entries.get(BLOB)):
        with pytest.raises(RemoteUnavailable, match=rf"in time \(timeout {SHORT:g} s\)"):
            step()


def test_a_body_that_nobody_wants_is_not_waited_for(serve):
    # Longer than SHORT: the head of the answer has to arrive in time, on a busy machine too.
    assert serve(drips_a_refusal, 3.0).blobs.get(BLOB) is None


@pytest.mark.parametrize("step", ["get", "find", "put"])
def test_many_blobs_have_one_time_together(serve, step):
    def hesitates(talk: Conversation) -> None:
        while talk.hear_whole():
            time.sleep(0.6 * SHORT)  # in time for each by itself
            talk.say(status(b"201 Created" if step == "put" else b"404 Not Found"))

    engine = serve(hesitates, SHORT)
    blobs = {BlobDigest.of(data): data for data in (b"%d" % number for number in range(30))}
    with pytest.raises(RemoteUnavailable, match="in time"):
        {
            "get": engine.blobs.get_many,
            "find": engine.blobs.find_missing,
            "put": engine.blobs.put_many,
        }[step](blobs)


def test_who_takes_nothing_is_down(serve, monkeypatch):
    monkeypatch.setattr("pypto_store.remote.http_server.SLOWEST", 1 << 40)
    engine = serve(silent, SHORT)
    with pytest.raises(RemoteUnavailable, match="timeout"):
        put(engine.blobs, LARGE * 2)


def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        engine = open_engine(RemoteConfig(f"http://127.0.0.1:{taken.getsockname()[1]}"))
        for step in steps(engine).values():
            with pytest.raises(RemoteUnavailable, match="refused"):
                step()


@pytest.mark.parametrize("name", ["a..b", "x" * 64])
def test_names_that_no_host_can_have(name):
    engine = open_engine(RemoteConfig(f"http://{name}"))
    with pytest.raises(RemoteUnavailable, match="no host can have that name"):
        engine.entries.get(BLOB)


def test_a_reset_in_the_middle_of_a_body(serve):
    def script(talk: Conversation) -> None:
        talk.hear()
        talk.say(body(DATA[:5], 10))
        talk.reset()

    engine = serve(script)
    with pytest.raises(RemoteUnavailable):
        fetch(engine.blobs, BLOB)
    with pytest.raises(RemoteUnavailable):
        engine.entries.get(BLOB)


def test_a_refusal_before_the_body_was_sent_is_heard(serve):
    def script(talk: Conversation) -> None:
        talk.hear()
        talk.say(status(b"403 Forbidden", b"Connection: close"))

    with pytest.raises((RemoteRefused, RemoteUnavailable)):
        put(serve(script).blobs, LARGE)


def test_connections_are_kept_and_one_that_is_gone_is_replaced(serve):
    heard: list[bytes] = []

    def script(talk: Conversation) -> None:
        for _ in range(2):
            if head := talk.hear_whole():
                heard.append(head.split(b" ")[0])
                talk.say(body(DATA, 10) if head.startswith(b"GET") else status(b"201 Created"))

    engine = serve(script)
    for _ in range(3):
        put(engine.blobs, DATA)
        assert fetch(engine.blobs, BLOB) == DATA
        assert engine.entries.get(BLOB) == DATA
    assert heard == [b"PUT", b"GET", b"GET"] * 3


def test_a_kept_connection_on_which_something_arrived_is_not_believed(serve):
    answered, more_came = threading.Event(), threading.Event()

    def script(talk: Conversation) -> None:
        talk.hear_whole()
        talk.say(body(DATA, 10))
        if not more_came.is_set():
            answered.wait(LONG)
            talk.say(status(b"404 Not Found"))
            more_came.set()
        talk.be_silent()

    engine = serve(script)
    assert engine.entries.get(BLOB) == DATA
    answered.set()
    assert more_came.wait(LONG)
    assert engine.entries.get(BLOB) == DATA


@pytest.fixture
def server() -> Iterator[HttpCacheServer]:
    server = HttpCacheServer()
    yield server
    server.stop()


def test_headers_of_the_user_go_with_every_request(server):
    config = RemoteConfig(server.url, headers=(("X-Key", "a b"), ("Authorization", "Bearer c")))
    with closing(open_engine(config)) as engine:
        for step in steps(engine).values():
            step()
    assert len(server.requests) == 7 and server.connections == 1
    for _, _, headers in server.requests:
        assert (headers["X-Key"], headers["Authorization"]) == ("a b", "Bearer c")
        assert headers["Accept-Encoding"] == "identity"


def test_parent_and_child_share_no_connection(server):
    with closing(open_engine(RemoteConfig(server.url))) as engine:
        put(engine.blobs, DATA)
        child = os.fork()
        if child == 0:
            os._exit(0 if fetch(engine.blobs, BLOB) == DATA else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert fetch(engine.blobs, BLOB) == DATA
    assert server.connections == 2


def test_plain_http_where_encryption_is_expected_is_a_fault(server):
    engine = open_engine(RemoteConfig(server.url.replace("http:", "https:"), timeout=LONG))
    with pytest.raises((RemoteProtocolError, RemoteUnavailable)), closing(engine):
        engine.entries.get(BLOB)
