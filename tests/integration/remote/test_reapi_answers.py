"""What grpc:// makes of the answers that a server can give, from a server that gives them."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from pypto_store.remote import reapi_protocol
from pypto_store.remote.blob_store import (
    BlobDigest,
    CorruptBlob,
    Engine,
    RemoteFault,
    RemoteProtocolError,
    RemoteRefused,
    RemoteUnavailable,
    source_of,
)
from pypto_store.remote.engines import open_engine
from pypto_store.remote.reapi_protocol import (
    BATCH_READ,
    BATCH_UPDATE,
    CAPABILITIES,
    FIND_MISSING,
    GET_ENTRY,
    READ,
    UPDATE_ENTRY,
    WRITE,
)
from pypto_store.remote.testing import ACTION, LARGE, SMALL, fetch, put
from pypto_store.remote_config import RemoteConfig

grpc = pytest.importorskip("grpc", reason="pypto[remote] is not installed")
from scripted_reapi import ScriptedReapi, failing, message  # noqa: E402 - needs grpc

_SMALL = BlobDigest.of(SMALL)
_LARGE = BlobDigest.of(LARGE)
_PIECE = 1 << 20


@pytest.fixture
def server() -> Iterator[ScriptedReapi]:
    """A server with an empty cache that takes nothing."""
    server = ScriptedReapi()
    yield server
    server.stop()


@pytest.fixture
def engine(server: ScriptedReapi) -> Iterator[Engine]:
    """A client of the server's instance "a/b"."""
    config = RemoteConfig(
        f"grpc://{server.address}", instance="a/b", headers=(("X-Name", "value"),), timeout=30
    )
    with closing(open_engine(config)) as engine:
        yield engine


def _entry(request: Any, context: Any) -> bytes:
    return b"\x20\x07"  # exit_code 7


def _pieces(request: Any, context: Any) -> Iterator[Any]:
    for start in range(request.read_offset, len(LARGE), _PIECE):
        yield message(READ.response or "", data=LARGE[start : start + _PIECE])


def test_what_is_unavailable_is_asked_again(server: ScriptedReapi, engine: Engine) -> None:
    server.answer(GET_ENTRY, failing(grpc.StatusCode.UNAVAILABLE, 2, _entry))
    assert engine.entries.get(ACTION) == b"\x20\x07"
    assert server.calls == [CAPABILITIES.path] + [GET_ENTRY.path] * 3
    assert server.metadata["x-name"] == "value"


def test_it_is_not_asked_for_ever(server: ScriptedReapi, engine: Engine) -> None:
    server.answer(GET_ENTRY, failing(grpc.StatusCode.UNAVAILABLE, 99, _entry))
    with pytest.raises(RemoteUnavailable, match=r"get entry .*UNAVAILABLE: as the test"):
        engine.entries.get(ACTION)
    assert server.calls.count(GET_ENTRY.path) == 4


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("RESOURCE_EXHAUSTED", RemoteUnavailable),
        ("DEADLINE_EXCEEDED", RemoteUnavailable),
        ("UNAUTHENTICATED", RemoteRefused),
        ("PERMISSION_DENIED", RemoteRefused),
        ("INTERNAL", RemoteProtocolError),
        ("UNKNOWN", RemoteProtocolError),
        ("DATA_LOSS", RemoteProtocolError),
        ("INVALID_ARGUMENT", RemoteProtocolError),
        ("FAILED_PRECONDITION", RemoteProtocolError),
    ],
)
def test_every_other_status_is_one_fault_and_asked_once(
    server: ScriptedReapi, engine: Engine, code: str, kind: type[RemoteFault]
) -> None:
    fails = failing(grpc.StatusCode[code], 99, _entry)
    steps = {
        FIND_MISSING: lambda: engine.blobs.find_missing([_SMALL]),
        BATCH_READ: lambda: engine.blobs.get_many([_SMALL]),
        BATCH_UPDATE: lambda: engine.blobs.put_many({_SMALL: SMALL}),
        READ: lambda: engine.blobs.get(_SMALL),
        WRITE: lambda: put(engine.blobs, SMALL),
        GET_ENTRY: lambda: engine.entries.get(ACTION),
        UPDATE_ENTRY: lambda: engine.entries.put(ACTION, b""),
    }
    for method, step in steps.items():
        server.answer(method, fails)
        with pytest.raises(kind, match=code) as fault:
            step()
        assert type(fault.value) is kind
        assert server.calls.count(method.path) == 1


def test_no_entry_is_sent_to_who_says_that_it_stores_none(
    server: ScriptedReapi, engine: Engine
) -> None:
    cache = server.capabilities.cache_capabilities
    cache.action_cache_update_capabilities.update_enabled = False
    with pytest.raises(RemoteRefused, match="stores no entries"):
        engine.entries.put(ACTION, b"")
    assert UPDATE_ENTRY.path not in server.calls


def test_a_status_of_one_blob_is_one_of_the_call(server: ScriptedReapi, engine: Engine) -> None:
    def refuse(request: Any, context: Any) -> Any:
        answer = message(BATCH_UPDATE.response or "")
        response = answer.responses.add(digest=request.requests[0].digest)
        response.status.code = 7
        return answer

    server.answer(BATCH_UPDATE, refuse)
    with pytest.raises(RemoteRefused):
        engine.blobs.put_many({_SMALL: SMALL})
    server.answer(BATCH_UPDATE, lambda request, context: message(BATCH_UPDATE.response or ""))
    with pytest.raises(RemoteProtocolError, match="says nothing of"):
        engine.blobs.put_many({_SMALL: SMALL})


def test_a_server_that_does_not_answer_costs_the_timeout(server: ScriptedReapi) -> None:
    def never(request: Any, context: Any) -> Any:
        while context.is_active():
            time.sleep(0.01)

    server.answer(GET_ENTRY, never)
    config = RemoteConfig(f"grpc://{server.address}", timeout=1)
    with closing(open_engine(config)) as engine:
        assert engine.blobs.find_missing([]) == frozenset()
        begin = time.monotonic()
        with pytest.raises(RemoteUnavailable, match="DEADLINE_EXCEEDED"):
            engine.entries.get(ACTION)
        assert time.monotonic() - begin < 20


def test_threads_that_come_first_at_once_do_not_wait_for_each_other(server: ScriptedReapi) -> None:
    together, waiting = threading.Barrier(3), []

    def never(request: Any, context: Any) -> Any:
        together.wait(30)
        waiting.append(context.is_active())
        while context.is_active():
            time.sleep(0.01)

    server.answer(CAPABILITIES, never)
    config = RemoteConfig(f"grpc://{server.address}", timeout=3)
    said: list[RemoteFault] = []

    def ask(engine: Engine) -> None:
        with pytest.raises(RemoteUnavailable) as caught:
            engine.entries.get(ACTION)
        said.append(caught.value)

    with closing(open_engine(config)) as engine:
        threads = [threading.Thread(target=ask, args=(engine,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(said) == 3 and waiting == [True] * 3  # nobody had given up when the last one came


def test_nobody_there_is_unavailable(server: ScriptedReapi) -> None:
    server.stop()
    engine = open_engine(RemoteConfig(f"grpc://{server.address}"))
    with closing(engine), pytest.raises(RemoteUnavailable, match="see whether the server is up"):
        engine.entries.get(ACTION)


@pytest.mark.parametrize("what", ["digests", "version", "garbage"])
def test_a_server_of_another_protocol_is_named(
    server: ScriptedReapi, engine: Engine, what: str
) -> None:
    if what == "digests":
        server.capabilities.cache_capabilities.digest_functions[:] = [2]
    elif what == "version":
        server.capabilities.low_api_version.major = 3
    else:
        server.capabilities = b"\xff\xff"
    with pytest.raises(RemoteProtocolError, match="get capabilities"):
        engine.entries.get(ACTION)


def test_a_stream_that_breaks_is_resumed(server: ScriptedReapi, engine: Engine) -> None:
    offsets = []

    def breaking(request: Any, context: Any) -> Iterator[Any]:
        offsets.append(request.read_offset)
        assert request.resource_name == f"a/b/blobs/{_LARGE}"
        yield next(_pieces(request, context))
        if request.read_offset < 2 * _PIECE:
            context.abort(grpc.StatusCode.UNAVAILABLE, "broken")
        yield from list(_pieces(request, context))[1:]

    server.answer(READ, breaking)
    assert fetch(engine.blobs, _LARGE) == LARGE
    assert offsets == [0, _PIECE, 2 * _PIECE]


def test_a_stream_that_keeps_breaking_is_given_up(server: ScriptedReapi, engine: Engine) -> None:
    def breaking(request: Any, context: Any) -> Iterator[Any]:
        yield message(READ.response or "", data=b"x")
        context.abort(grpc.StatusCode.UNAVAILABLE, "broken")

    server.answer(READ, breaking)
    with pytest.raises(RemoteUnavailable, match="broken"):
        fetch(engine.blobs, _LARGE)
    assert server.calls.count(READ.path) == 4


def test_a_stream_that_never_ends_is_left(server: ScriptedReapi, engine: Engine) -> None:
    def endless(request: Any, context: Any) -> Iterator[Any]:
        while context.is_active():
            yield message(READ.response or "", data=bytes(_PIECE))

    server.answer(READ, endless)
    with pytest.raises(CorruptBlob):
        fetch(engine.blobs, _LARGE)


def test_batches_keep_to_the_limit(server: ScriptedReapi, engine: Engine) -> None:
    blobs = {BlobDigest.of(data): data for data in (b"%d" % n * 99 for n in range(10, 20))}
    stored: dict[str, bytes] = {}
    sizes = []

    def update(request: Any, context: Any) -> Any:
        assert request.instance_name == "a/b"
        sizes.append(request.ByteSize())
        answer = message(BATCH_UPDATE.response or "")
        for item in request.requests:
            stored[item.digest.hash] = item.data
            answer.responses.add(digest=item.digest)
        return answer

    def read(request: Any, context: Any) -> Any:
        answer = message(BATCH_READ.response or "")
        for digest in request.digests:
            answer.responses.add(digest=digest, data=stored[digest.hash])
        sizes.append(answer.ByteSize())
        return answer

    server.answer(BATCH_UPDATE, update)
    server.answer(BATCH_READ, read)
    engine.blobs.put_many(blobs)
    assert engine.blobs.get_many(blobs) == blobs
    assert len(sizes) > 6 and max(sizes) <= 1000 + 200


def test_a_large_blob_is_written_in_pieces(server: ScriptedReapi, engine: Engine) -> None:
    requests: list[Any] = []

    def write(stream: Iterator[Any], context: Any) -> Any:
        requests.extend(stream)
        return message(WRITE.response or "", committed_size=len(LARGE))

    server.answer(WRITE, write)
    engine.blobs.put_many({_LARGE: LARGE})
    assert b"".join(request.data for request in requests) == LARGE
    assert [request.finish_write for request in requests] == [False] * 4 + [True]
    assert [request.write_offset for request in requests] == [n * _PIECE for n in range(5)]
    name = requests[0].resource_name.split("/")
    assert name[:3] == ["a", "b", "uploads"] and name[4:] == ["blobs", *str(_LARGE).split("/")]


def test_a_stream_is_refused_where_whole_requests_are(
    server: ScriptedReapi, engine: Engine
) -> None:
    server.answer(WRITE, failing(grpc.StatusCode.INTERNAL, 99, _entry))
    server.answer(BATCH_UPDATE, lambda request, context: message(BATCH_UPDATE.response or ""))
    with pytest.raises(RemoteProtocolError, match=r"put blob .*INTERNAL"):
        put(engine.blobs, SMALL)
    server.answer(BATCH_UPDATE, failing(grpc.StatusCode.PERMISSION_DENIED, 99, _entry))
    with pytest.raises(RemoteRefused, match="PERMISSION_DENIED"):
        put(engine.blobs, SMALL)


def test_a_stream_that_is_written_again_has_another_name(
    server: ScriptedReapi, engine: Engine
) -> None:
    names: list[str] = []

    def write(stream: Iterator[Any], context: Any) -> Any:
        requests = list(stream)
        names.append(requests[0].resource_name)
        if len(names) == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "as the test wants it")
        return message(WRITE.response or "", committed_size=len(SMALL))

    server.answer(WRITE, write)
    put(engine.blobs, SMALL)
    assert len(names) == len(set(names)) == 2
    assert {name.split("uploads/")[1].split("/", 1)[1] for name in names} == {f"blobs/{_SMALL}"}


def test_a_server_may_have_the_blob_already(server: ScriptedReapi, engine: Engine) -> None:
    server.answer(
        WRITE, lambda stream, context: message(WRITE.response or "", committed_size=len(LARGE))
    )
    engine.blobs.put(_LARGE, source_of(LARGE))
    server.answer(WRITE, lambda stream, context: message(WRITE.response or "", committed_size=5))
    with pytest.raises(RemoteProtocolError, match="took 5 bytes"):
        engine.blobs.put(_LARGE, source_of(LARGE))


def test_classes_of_messages_are_never_collected() -> None:
    """A thread could otherwise be given one that another thread's collection is clearing."""
    protocol = reapi_protocol.load_protocol()
    batch = protocol.message(BATCH_READ.response or "")()
    parts = [batch, batch.responses.add(), batch.responses[0].digest, batch.responses[0].status]
    classes = [weakref.ref(type(part)) for part in parts]
    del batch, parts
    gc.collect()
    assert None not in [kept() for kept in classes]


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    reapi_protocol.load_protocol.cache_clear()
    monkeypatch.setattr(reapi_protocol, "import_module", absent)
    with pytest.raises(RemoteUnavailable, match=r"No module named 'grpc'; pip install 'pypto\["):
        open_engine(RemoteConfig("grpc://127.0.0.1:1"))
    monkeypatch.undo()
