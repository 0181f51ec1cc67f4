"""Remotes that are down, slow, full, wrong or hostile: builds go on here, and it is said once."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from machines import BOUND, LONG, SHORT, builds_on
from moody_cache import MoodyCache, hang_up
from pypto_store import RemoteConfig
from pypto_store.remote_config import TlsConfig
from pypto_store.testing import PAYLOAD
from scripted_server import ScriptedServer

PKI = Path(__file__).parents[2] / "pki"
CA = TlsConfig(ca=PKI / "ca.pem")


def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def server(context=None):
    return MoodyCache(context)


def context(certificate, clients=False):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(PKI / certificate)
    if clients:
        made.load_verify_locations(PKI / "ca.pem")
        made.verify_mode = ssl.CERT_REQUIRED
    return made


# -- not there, or something else


def test_nobody_listens(machine, told):
    config = RemoteConfig(f"http://127.0.0.1:{unused_port()}", timeout=LONG)
    builds_on(machine, told, config, "Connection refused", reports=1)


def test_a_name_that_nobody_has(machine, told, monkeypatch):
    def unknown(*arguments, **options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    config = RemoteConfig("http://cache.invalid:8080", timeout=LONG)
    builds_on(machine, told, config, "Name or service not known", reports=1)


def says_no_end(talk):
    """Answers a GET by chunks that go on, and nothing else at all."""
    if talk.hear_whole().startswith(b"GET"):
        talk.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(200):
            talk.say(b"10000\r\n" + b"x" * 65536 + b"\r\n")


SCRIPTS = {
    "a black hole": (lambda talk: talk.be_silent(), "did not end in time"),
    "a slow trickle": (
        lambda talk: (
            talk.hear_whole(),
            talk.say(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"),
            talk.drip(b"x" * 9999),
        ),
        "",
    ),
    "a trickle of headers": (
        lambda talk: (talk.hear_whole(), talk.drip(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 90)),
        "did not end in time",
    ),
    "hanging up": (lambda talk: talk.hear_whole(), "closed connection"),
    "a reset": (lambda talk: (talk.hear_whole(), talk.reset()), ""),
    "garbage": (lambda talk: (talk.hear_whole(), talk.say(b"\0\xff" * 200)), "is no HTTP"),
    "another protocol": (lambda talk: talk.say(b"SSH-2.0-OpenSSH_9.2\r\n"), "is no HTTP"),
    "a redirect": (
        lambda talk: (
            talk.hear_whole(),
            talk.say(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"),
        ),
        "redirects are not followed",
    ),
    "an endless stream": (
        says_no_end,
        "",
    ),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_what_is_no_cache(machine, told, started, kind):
    script, reason = SCRIPTS[kind]
    started.append(ScriptedServer(script))
    builds_on(machine, told, RemoteConfig(started[0].url, timeout=SHORT), reason, reports=3)


@pytest.mark.parametrize("status", [400, 401, 403, 407, 429, 500, 502, 503, 507])
def test_an_answer_that_is_no_yes(machine, told, started, status):
    started.append(server())
    started[0].mood = lambda method, place: status
    builds_on(machine, told, RemoteConfig(started[0].url, timeout=LONG), f"answered {status}")


def test_a_page_that_welcomes_everybody(machine, told, started):
    """As a proxy that wants a login: whatever is asked, 200 and the same page."""
    started.append(server())
    page = b"<html><body>Please log in</body></html>"
    started[0].mood = lambda method, place: lambda handler: handler._answer(200, page)
    built = machine(RemoteConfig(started[0].url, timeout=LONG))
    for name in "abcde":
        assert built.build(name)
    counted = built.settle()
    assert (counted.hits, counted.misses) == (0, 0)
    assert len(counted.faults) >= 5
    assert 1 <= len(told()) <= 3


# -- encryption


@pytest.mark.parametrize(
    ("certificate", "tls", "reason"),
    [
        ("expired.pem", CA, "certificate has expired"),
        ("unknown.pem", CA, "certificate verify failed|unable to get|self-signed|unknown"),
        ("stranger.pem", CA, "IP address mismatch"),
        ("server.pem", None, ""),
    ],
    ids=["expired", "of an unknown authority", "of another host", "not by the system's"],
)
def test_a_certificate_that_is_not_believed(machine, told, started, certificate, tls, reason):
    started.append(server(context(certificate)))
    built = machine(RemoteConfig(started[0].url, tls=tls, timeout=LONG))
    assert built.build()
    counted = built.settle()
    assert len(counted.faults) == 2 and "encryption failed" in counted.faults[0]
    assert any(word in counted.faults[0] for word in reason.split("|"))
    assert len(told()) == 1
    assert not started[0].heard  # nor any credentials


def test_a_client_certificate_that_is_wanted_and_not_there(machine, told, started):
    started.append(server(context("server.pem", clients=True)))
    built = machine(RemoteConfig(started[0].url, tls=CA, timeout=LONG))
    assert built.build()
    assert len(built.settle().faults) == 2 and not started[0].heard


def test_encryption_where_none_is_expected_and_the_other_way_round(machine, told, started):
    started += [server(context("server.pem")), server()]
    plain = started[0].url.replace("https", "http")
    encrypted = started[1].url.replace("http", "https")
    for config in (RemoteConfig(plain, timeout=1), RemoteConfig(encrypted, tls=CA, timeout=1)):
        built = machine(config)
        assert built.build()
        assert len(built.settle().faults) == 2
    assert not any(started[1].files)


@pytest.mark.parametrize("name", ["ca", "certificate"])
def test_files_of_encryption_that_are_not_there(machine, told, tmp_path, name):
    tls = TlsConfig(**{"ca": PKI / "ca.pem", name: tmp_path / "no-such.pem"})
    config = RemoteConfig("https://127.0.0.1:1", tls=tls, timeout=LONG)
    builds_on(machine, told, config, "RemoteConfig.tls cannot be used", reports=1)


# -- there for reading only, or full


@pytest.mark.parametrize("status", [401, 403, 405, 501])
def test_who_may_only_read_goes_on_reading(machine, told, started, status):
    started.append(server())
    author = machine(RemoteConfig(started[0].url, timeout=LONG))
    assert author.build("shared")
    author.settle()
    held = dict(started[0].files)
    started[0].mood = lambda method, place: status if method == "PUT" else None
    reader = machine(RemoteConfig(started[0].url, timeout=LONG))
    assert reader.build("one") and reader.build("two")
    counted = reader.settle()
    assert not reader.build("shared")
    assert (counted.hits, counted.misses, counted.uploads) == (1, 2, 0)
    assert len(counted.faults) == 1 and f"answered {status}" in counted.faults[0]
    assert len(told()) == 1
    assert started[0].files == held


@pytest.mark.parametrize("status", [413, 500, 507])
@pytest.mark.parametrize("place", ["cas", "ac"])
def test_who_is_full_is_read_on_and_has_no_half_entries(machine, told, started, status, place):
    started.append(server())
    author = machine(RemoteConfig(started[0].url, timeout=LONG))
    assert author.build("shared")
    author.settle()
    entries = {name for name in started[0].files if name.startswith("ac")}
    started[0].mood = lambda method, where: status if (method, where) == ("PUT", place) else None
    full = machine(RemoteConfig(started[0].url, timeout=LONG))
    payloads = [{**PAYLOAD, "own": str(number).encode()} for number in range(5)]
    for number, payload in enumerate(payloads):
        assert full.build(str(number), payload)
    counted = full.settle()
    assert not full.build("shared")
    assert (counted.hits, counted.misses, counted.uploads, len(counted.faults)) == (1, 5, 0, 5)
    assert len(told()) == 1
    puts = [method for method, _ in started[0].heard if method == "PUT"]
    assert len(puts) < len(payloads) * 6  # after three it was left alone
    assert {name for name in started[0].files if name.startswith("ac")} == entries


def test_room_that_comes_back_is_used(machine, started, monkeypatch):
    monkeypatch.setattr("pypto_store.remote.breaker.PAUSE", 0)
    monkeypatch.setattr("pypto_store.remote.breaker._PATIENCE", 0)
    started.append(server())
    started[0].mood = lambda method, place: 507 if method == "PUT" else None
    built = machine(RemoteConfig(started[0].url, timeout=LONG))
    for name in "abcd":
        assert built.build(name, {**PAYLOAD, "own": name.encode()})
        built.settle()
    started[0].mood = lambda method, place: None
    assert built.build("e")
    counted = built.settle()
    assert (counted.uploads, len(counted.faults)) == (1, 4)
    assert not machine(RemoteConfig(started[0].url)).build("e")


# -- coming and going


def test_a_flapping_server_never_makes_a_wrong_entry(machine, told, started):
    """Every seventh request fails, in one of several ways; what comes of it is right or built."""
    started.append(server())
    author = machine(RemoteConfig(started[0].url, timeout=LONG))
    names = [str(number) for number in range(9)]
    for name in names:
        author.build(name, {**PAYLOAD, "own": name.encode()})
    author.settle()
    requests, moods = [0], (503, hang_up, 500, hang_up)

    def mood(method, place):
        requests[0] += 1
        return moods[requests[0] // 7 % 4] if requests[0] % 7 == 0 else None

    started[0].mood = mood
    total = 0
    for _ in range(3):
        flapped = machine(RemoteConfig(started[0].url, timeout=LONG, upload="sync"))
        for name in names:
            total += not flapped.build(name, {**PAYLOAD, "own": name.encode()})
        counted = flapped.settle()
        assert counted.hits + counted.misses + len(counted.faults) >= len(names)
        assert counted.faults
    assert total > 0


def test_a_server_that_goes_between_finding_and_reading(machine, told, started):
    started.append(server())
    machine(RemoteConfig(started[0].url, timeout=LONG)).build()
    while not any(name.startswith("ac") for name in list(started[0].files)):
        time.sleep(0.002)
    started[0].mood = lambda method, place: hang_up if place == "cas" else None
    built = machine(RemoteConfig(started[0].url, timeout=LONG))
    assert built.build()
    assert "closed connection" in built.settle().faults[0]


def test_blobs_that_go_between_finding_and_reading_are_a_miss(machine, told, started):
    started.append(server())
    author = machine(RemoteConfig(started[0].url, timeout=LONG))
    author.build()
    author.settle()
    for name in [name for name in started[0].files if name.startswith("cas")]:
        del started[0].files[name]
    built = machine(RemoteConfig(started[0].url, timeout=LONG))
    assert built.build()
    counted = built.settle()
    assert (counted.misses, counted.faults, counted.uploads, told()) == (1, [], 1, [])
    assert not machine(RemoteConfig(started[0].url)).build()  # and it was mended


def test_slow_blobs_are_given_up_as_a_whole(machine, told, started):
    """Every blob comes within the timeout, but all of them together do not."""
    started.append(server())
    payload = {**PAYLOAD, **{f"large/{n}": bytes([n]) * (1 << 21) for n in range(5)}}
    author = machine(RemoteConfig(started[0].url, timeout=LONG))
    author.build(payload=payload)
    author.settle()
    built, now = machine(RemoteConfig(started[0].url, timeout=LONG)), [0]
    built.tier._clock = lambda: now[0]

    def slowly(method, place):
        now[0] += int(0.7 * LONG * 1e9)

    started[0].mood = slowly
    assert built.build(payload=payload)
    assert "the whole request has taken" in built.settle().faults[0]


# -- time


def test_many_builds_at_a_black_hole_wait_for_a_few_only(machine, told, started):
    started.append(ScriptedServer(lambda talk: talk.be_silent()))
    built = machine(RemoteConfig(started[0].url, timeout=SHORT))
    begun = time.monotonic()
    for number in range(30):
        assert built.build(str(number))
    assert time.monotonic() - begun < BOUND
    counted = built.settle()
    waited = [fault for fault in counted.faults if "did not end in time" in fault
              and "not asked" not in fault]  # fmt: skip
    assert len(counted.faults) == 60 and 3 <= len(waited) <= 6
    assert len(told()) == 1
    assert started[0].connections <= 6


def test_builds_of_many_threads_wait_for_a_black_hole_side_by_side(machine, told, started):
    started.append(ScriptedServer(lambda talk: talk.be_silent()))
    built = machine(RemoteConfig(started[0].url, timeout=SHORT, upload="sync"))
    outcomes = []

    def build(thread):
        for number in range(4):
            outcomes.append(built.build(f"{thread}-{number}", alone=False))

    threads = [threading.Thread(target=build, args=(number,)) for number in range(8)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - begun < BOUND
    assert outcomes == [True] * 32 and len(built.counted.faults) == 64
    assert len(told()) == 1
    # Each was there once before it was known, and perhaps once more with what it had built.
    assert started[0].connections <= 16


@pytest.mark.parametrize("upload", ["sync", "background"])
def test_one_build_at_a_black_hole_waits_no_longer_than_it_says(machine, started, upload):
    started.append(ScriptedServer(lambda talk: talk.be_silent()))
    built = machine(RemoteConfig(started[0].url, timeout=SHORT, upload=upload))
    begun = time.monotonic()
    assert built.build()
    assert time.monotonic() - begun < BOUND
