"""Servers of REAPI that are down, slow, full or something else, as builds see them."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

grpc = pytest.importorskip("grpc")

from machines import LONG, SHORT  # noqa: E402
from memory_reapi import READS, WRITES, MemoryReapi  # noqa: E402
from moody_cache import MoodyCache  # noqa: E402
from pypto_store import RemoteConfig  # noqa: E402
from pypto_store.remote.reapi_protocol import (  # noqa: E402
    BATCH_READ,
    BATCH_UPDATE,
    CAPABILITIES,
    FIND_MISSING,
    GET_ENTRY,
    UPDATE_ENTRY,
    WRITE,
)
from pypto_store.remote_config import TlsConfig  # noqa: E402
from pypto_store.testing import PAYLOAD  # noqa: E402
from scripted_server import ScriptedServer  # noqa: E402

PKI = Path(__file__).parents[2] / "pki"
CA = TlsConfig(ca=PKI / "ca.pem")
BOUND = 30.0  # seconds; longer than what a timeout takes on a busy machine
WHOLE = {**PAYLOAD, "large": bytes(range(256)) * (20 << 10)}  # 5 MiB are a stream


def grpc_url(server):
    """The URL of a server that speaks something else."""
    return "grpc://" + server.url.split("//")[1]


def builds_on(machine, told, config, reason, *, reports=2):
    """A build at a remote that is of no use at all."""
    built = machine(config)
    begun = time.monotonic()
    assert built.build("one", WHOLE)
    counted = built.settle()
    assert time.monotonic() - begun < BOUND
    assert (counted.hits, counted.misses, counted.uploads) == (0, 0, 0)
    assert len(counted.faults) == 2
    assert any(reason in fault for fault in counted.faults), counted.faults
    assert all(fault.startswith(config.shown_url) for fault in counted.faults)
    assert 1 <= len(told()) <= reports, told()
    return built


@pytest.fixture
def server(started):
    started.append(MemoryReapi())
    return started[0]


def test_it_is_a_cache_when_it_is_well(machine, server):
    config = RemoteConfig(f"grpc://{server.address}")
    assert machine(config).build("one", WHOLE)
    while not server.entries:
        time.sleep(0.002)
    assert not machine(config).build("one", WHOLE)


# -- not there, or something else


def test_nobody_listens(machine, told):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    builds_on(machine, told, RemoteConfig(f"grpc://127.0.0.1:{port}", timeout=SHORT), "")


def test_a_name_that_nobody_has(machine, told):
    builds_on(machine, told, RemoteConfig("grpc://cache.invalid:1", timeout=SHORT), "")


def test_a_black_hole(machine, told, started):
    started.append(ScriptedServer(lambda talk: talk.be_silent()))
    builds_on(machine, told, RemoteConfig(grpc_url(started[0]), timeout=SHORT), "")


SOMETHING_ELSE = {
    "garbage": lambda talk: (talk.hear(), talk.say(b"\0\xff\1" * 3000)),
    "a server of the old kind": lambda talk: (
        talk.hear(),
        talk.say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    ),
    "another protocol": lambda talk: talk.say(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "hanging up": lambda talk: None,
    "a trickle": lambda talk: talk.drip(b"\0" * 9999),
}


@pytest.mark.parametrize("kind", SOMETHING_ELSE)
def test_what_is_no_server_of_grpc(machine, told, started, kind):
    started.append(ScriptedServer(SOMETHING_ELSE[kind]))
    builds_on(machine, told, RemoteConfig(grpc_url(started[0]), timeout=SHORT), "")


def test_a_cache_of_the_other_protocol(machine, told, started):
    started.append(MoodyCache())
    builds_on(machine, told, RemoteConfig(grpc_url(started[0]), timeout=SHORT), "")
    assert not started[0].files


def test_a_server_of_grpc_where_http_is_expected(machine, told, server):
    config = RemoteConfig(f"http://{server.address}", timeout=SHORT)
    builds_on(machine, told, config, "", reports=3)
    assert not server.held and not server.entries


# -- encryption


@pytest.mark.parametrize(
    ("certificate", "tls"),
    [("expired.pem", CA), ("unknown.pem", CA), ("stranger.pem", CA), ("server.pem", None)],
)
def test_a_certificate_that_is_not_believed(machine, told, started, certificate, tls):
    pem = (PKI / certificate).read_bytes()
    started.append(MemoryReapi(grpc.ssl_server_credentials([(pem, pem)])))
    config = RemoteConfig(f"grpcs://{started[0].address}", tls=tls, timeout=SHORT)
    builds_on(machine, told, config, "")
    assert not started[0].calls


def test_encryption_where_none_is_expected_and_the_other_way_round(machine, told, started):
    pem = (PKI / "server.pem").read_bytes()
    started += [MemoryReapi(grpc.ssl_server_credentials([(pem, pem)])), MemoryReapi()]
    plain = RemoteConfig(f"grpc://{started[0].address}", timeout=SHORT)
    encrypted = RemoteConfig(f"grpcs://{started[1].address}", tls=CA, timeout=SHORT)
    for config in (plain, encrypted):
        built = machine(config)
        assert built.build()
        assert len(built.settle().faults) == 2
    assert not started[0].calls and not started[1].calls


# -- answers

STATUSES = [
    "UNAUTHENTICATED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED", "INTERNAL",
    "UNKNOWN", "DATA_LOSS", "FAILED_PRECONDITION", "DEADLINE_EXCEEDED", "UNAVAILABLE",
]  # fmt: skip


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("methods", ["capabilities", "everything"])
def test_a_status_that_is_no_yes(machine, told, server, methods, status):
    server.fail([CAPABILITIES] if methods == "capabilities" else [*READS, *WRITES], status)
    # Only what is unavailable is tried again, until the time is up.
    timeout, said = (SHORT, "") if status == "UNAVAILABLE" else (LONG, status)
    builds_on(machine, told, RemoteConfig(f"grpc://{server.address}", timeout=timeout), said)
    assert not server.held and not server.entries


@pytest.mark.parametrize("method", [GET_ENTRY, BATCH_READ], ids=["entry", "blobs"])
@pytest.mark.parametrize("answer", [b"\xff" * 50, b"\x0a\xff\xff\xff\x7f"], ids=["bytes", "cut"])
def test_an_answer_that_is_no_message(machine, told, server, method, answer):
    author = machine(RemoteConfig(f"grpc://{server.address}"))
    author.build()
    author.settle()
    server.answer(method, lambda request, context: answer)
    built = machine(RemoteConfig(f"grpc://{server.address}", timeout=LONG))
    assert built.build()
    assert built.settle().faults and not built.counted.hits


@pytest.mark.parametrize("damage", ["changed", "short", "of another", "huge", "gone", "compressed"])
def test_blobs_that_are_not_what_they_should_be(machine, told, server, damage):
    author = machine(RemoteConfig(f"grpc://{server.address}"))
    author.build()
    author.settle()
    real = server.answers[BATCH_READ.path]

    def change(request, context):
        answer = real(request, context)
        row = answer.responses[0]
        if damage == "changed":
            row.data = bytes(len(row.data))
        elif damage == "short":
            row.data = row.data[:-1]
        elif damage == "of another":
            row.digest.hash = "0" * 64
        elif damage == "huge":
            row.data = bytes(6_000_000)
        elif damage == "gone":
            row.status.code, row.data = 5, b""
        else:
            row.compressor = 1
        return answer

    server.answer(BATCH_READ, change)
    built = machine(RemoteConfig(f"grpc://{server.address}", timeout=LONG))
    assert built.build()
    counted = built.settle()
    assert counted.hits == 0 and counted.misses == (damage == "gone")
    assert len(counted.faults) == (damage != "gone")


def test_a_server_that_stops_between_finding_and_reading(machine, told, server):
    author = machine(RemoteConfig(f"grpc://{server.address}"))
    author.build()
    author.settle()
    real = server.answers[GET_ENTRY.path]
    stopping = []

    def last(request, context):
        stopping.append(threading.Thread(target=server.stop))
        stopping[0].start()
        return real(request, context)

    server.answer(GET_ENTRY, last)
    built = machine(RemoteConfig(f"grpc://{server.address}", timeout=SHORT))
    assert built.build()
    assert built.settle().faults
    for thread in stopping:
        thread.join()


# -- there for reading only, or full


@pytest.mark.parametrize("method", [FIND_MISSING, BATCH_UPDATE, WRITE, UPDATE_ENTRY])
@pytest.mark.parametrize("status", ["UNAUTHENTICATED", "PERMISSION_DENIED"])
def test_who_may_only_read_goes_on_reading(machine, told, server, method, status):
    author = machine(RemoteConfig(f"grpc://{server.address}"))
    author.build("shared")
    author.settle()
    entries = dict(server.entries)
    server.fail([method], status)
    reader = machine(RemoteConfig(f"grpc://{server.address}", timeout=LONG))
    for name in ("one", "two"):
        assert reader.build(name, WHOLE)
    counted = reader.settle()
    assert not reader.build("shared")
    assert (counted.hits, counted.misses, counted.uploads) == (1, 2, 0)
    assert len(counted.faults) == 1 and status in counted.faults[0]
    assert len(told()) == 1
    assert server.entries == entries


@pytest.mark.parametrize("method", [BATCH_UPDATE, WRITE, UPDATE_ENTRY])
def test_who_is_full_is_read_on_and_has_no_half_entries(machine, told, server, method):
    author = machine(RemoteConfig(f"grpc://{server.address}"))
    author.build("shared")
    author.settle()
    entries, before = dict(server.entries), server.calls.count(method.path)
    server.fail([method], "RESOURCE_EXHAUSTED")
    full = machine(RemoteConfig(f"grpc://{server.address}", timeout=LONG))
    for name in "abcde":
        assert full.build(name, {**WHOLE, "own": name.encode()})
    counted = full.settle()
    assert not full.build("shared")
    assert (counted.hits, counted.misses, counted.uploads, len(counted.faults)) == (1, 5, 0, 5)
    assert server.calls.count(method.path) == before + 3  # after which it was left alone
    assert len(told()) == 1
    assert server.entries == entries


# -- time


def test_many_builds_at_a_server_that_never_answers(machine, told, server):
    def never(request, context):
        while context.is_active():
            time.sleep(0.01)

    server.answer(GET_ENTRY, never)
    built = machine(RemoteConfig(f"grpc://{server.address}", timeout=SHORT))
    begun = time.monotonic()
    for number in range(20):
        assert built.build(str(number))
    counted = built.settle()
    assert time.monotonic() - begun < BOUND
    assert len(counted.faults) == 40
    assert len(told()) in (1, 2)  # gRPC has two ways of saying that the time is up
    assert server.calls.count(GET_ENTRY.path) <= 4


def test_without_the_packages_it_is_a_remote_that_is_not_there(machine, told, monkeypatch):
    def missing():
        raise ImportError("No module named 'grpc'")

    monkeypatch.setattr("pypto_store.remote.reapi_server.load_protocol", missing)
    builds_on(
        machine, told, RemoteConfig("grpc://127.0.0.1:1"), "pip install 'pypto[remote]'", reports=1
    )
