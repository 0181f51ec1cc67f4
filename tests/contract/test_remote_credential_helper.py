"""Credential helpers: what they are asked, what they may say, and everything that goes wrong."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from http_cache_server import HttpCacheServer
from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import BlobDigest, RemoteRefused, RemoteUnavailable
from pypto_store.remote.credential_helper import HelperCredentials
from pypto_store.remote.credentials import FixedCredentials, credentials_of
from pypto_store.remote.engines import open_engine
from scripted_server import Conversation, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BLOB = BlobDigest.of(b"x")
PATIENCE = 30.0  # seconds; nothing here takes them
NOON = 1_893_585_600.0  # 2030-01-02T12:00:00Z
BEARER = {"headers": {"Authorization": ["Bearer s3cret"]}}


class Helper:
    """A program that says `answer`, and how often it was run and with what."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "helper"
        self._answer = directory / "answer"
        self._log = directory / "log"

    def script(self, text: str) -> None:
        self.path.unlink(missing_ok=True)
        self.path.write_text(f"#!/bin/sh\n{text}\n")
        self.path.chmod(0o700)

    def says(self, answer: object) -> None:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self._answer.write_text(text)
        self.script(f'echo "$*" "$(cat)" >> {self._log}; cat {self._answer}')

    @property
    def asked(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []


@pytest.fixture
def helper(tmp_path: Path) -> Helper:
    made = Helper(tmp_path)
    made.says(BEARER)
    return made


def credentials(
    helper: Helper, url: str = "https://cache.example/a", longest: float = 60.0, **more: object
) -> HelperCredentials:
    config = RemoteConfig(url, credential_helper=helper.path, **more)  # type: ignore[arg-type]
    return HelperCredentials(config, clock=lambda: NOON, longest=longest)


@pytest.mark.parametrize(
    ("url", "uri"),
    [
        ("https://cache.example:8443/a/b", "https://cache.example:8443/a/b"),
        ("grpcs://cache.example:8443", "https://cache.example:8443"),
        ("http://127.0.0.1:80/a", "http://127.0.0.1:80/a"),
        ("grpc://[::1]:5000", "http://[::1]:5000"),
        ("grpc://localhost", "http://localhost"),
    ],
)
def test_it_is_told_which_remote_and_its_headers_are_used(helper, url, uri):
    assert credentials(helper, url).headers() == (("Authorization", "Bearer s3cret"),)
    assert helper.asked == [f'get {{"uri": "{uri}"}}']


@pytest.mark.parametrize(
    "url", ["http://cache.example", "grpc://10.0.0.1:5000", "http://a.127.0.0.1"]
)
def test_it_is_not_asked_for_what_would_be_sent_unencrypted(helper, url):
    with pytest.raises(ValueError, match="sent unencrypted; use https:// or grpcs://"):
        open_engine(RemoteConfig(url, credential_helper=helper.path))
    assert helper.asked == []


def test_its_headers_come_after_configured_ones_and_replace_them(helper):
    helper.says({"headers": {"X-Both": ["1", "2"]}, "later": {"versions": True}})
    made = credentials(helper, headers=(("x-both", "old"), ("X-Mine", "kept")))
    assert made.headers() == (("X-Mine", "kept"), ("X-Both", "1"), ("X-Both", "2"))
    helper.says({})
    assert credentials(helper, headers=(("X-Mine", "kept"),)).headers() == (("X-Mine", "kept"),)


def test_the_name_in_a_url_is_not_shown_to_it_and_goes_along(helper):
    helper.says({"headers": {"X-Token": ["t"]}})
    made = credentials(helper, "https://me:pw@cache.example")
    assert made.headers() == (("X-Token", "t"), ("Authorization", "Basic bWU6cHc="))
    assert helper.asked == ['get {"uri": "https://cache.example"}']


@pytest.mark.parametrize(
    ("expires", "seconds"),
    [
        (None, 1800),
        ("2030-01-02T12:10:00Z", 600),
        ("2030-01-02t12:10:00.987654321z", 600),
        ("2030-01-02T14:10:00+02:00", 600),
        ("2030-01-02 06:40:00-05:30", 600),
        ("2030-01-02T11:00:00Z", 0),
    ],
)
def test_an_answer_is_used_until_it_expires(helper, expires, seconds):
    helper.says(BEARER | ({} if expires is None else {"expires": expires}))
    now = NOON
    config = RemoteConfig("https://cache.example", credential_helper=helper.path)
    made = HelperCredentials(config, clock=lambda: now, longest=60.0)
    made.headers()
    if seconds:
        now = NOON + seconds - 0.001
        made.headers()
    assert len(helper.asked) == 1
    now = NOON + seconds
    made.headers()
    assert len(helper.asked) == 2


def test_many_threads_ask_once(helper):
    made = credentials(helper)
    threads = [threading.Thread(target=made.headers) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(helper.asked) == 1


def test_threads_that_wait_share_a_failure_and_later_ones_ask_anew(helper, tmp_path):
    lines = (
        f"echo asked >> {tmp_path}/log; while ! test -e {tmp_path}/go; do sleep 0.02; done; exit 7"
    )
    helper.script(lines)
    made = credentials(helper)
    faults: list[RemoteRefused] = []

    def ask() -> None:
        try:
            made.headers()
        except RemoteRefused as fault:
            faults.append(fault)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    while not helper.asked:
        time.sleep(0.01)
    time.sleep(0.1)  # most of them are waiting now; those that are not yet ask by themselves
    (tmp_path / "go").touch()
    for thread in threads:
        thread.join()
    assert len(faults) == 8 and len(helper.asked) < 8
    before = len(helper.asked)
    ask()
    assert len(helper.asked) == before + 1
    helper.says(BEARER)
    assert made.headers()


def test_a_child_of_a_process_that_was_asking_can_ask(helper):
    made = credentials(helper)
    with made._asking:  # as another thread of the parent's would hold it
        child = os.fork()
        if child == 0:
            signal.alarm(int(PATIENCE))
            os._exit(0 if made.headers() else 1)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "its answer is not JSON"),
        ("Bearer s3cret", "its answer is not JSON"),
        ('{"headers": {"Authorization": ["Bearer s3cret"]}', "its answer is not JSON"),
        ("[" * 60_000, "its answer is not JSON"),
        (["s3cret"], "no JSON object"),
        ({"headers": ["s3cret"]}, "no object of lists"),
        ({"headers": {"Authorization": "s3cret"}}, "no object of lists"),
        ({"headers": {"Authorization": [["s3cret"]]}}, "no object of lists"),
        ({"headers": None}, "no object of lists"),
        ({"headers": {"Authorization": ["s3cret\r\nX: y"]}}, "cannot be sent: .*printable"),
        ({"headers": {"Host": ["s3cret"]}}, "cannot be sent: .*Host"),
        ({"headers": {"a b": ["s3cret"]}}, "cannot be sent: .*a name that no header can have"),
        (BEARER | {"expires": 1893585600}, "no time of RFC 3339"),
        (BEARER | {"expires": "tomorrow s3cret"}, "no time of RFC 3339"),
        (BEARER | {"expires": "2030-13-01T00:00:00Z"}, "no time of RFC 3339"),
        (BEARER | {"expires": "0001-01-01T00:00:00+23:00"}, "no time of RFC 3339"),
    ],
)
def test_an_answer_of_another_shape_is_a_refusal_that_shows_nothing_of_it(helper, answer, reason):
    helper.says(answer)
    with pytest.raises(RemoteRefused, match=f"{reason}.*; run it by hand") as caught:
        credentials(helper).headers()
    assert "s3cret" not in str(caught.value)
    assert caught.value.url == "https://cache.example/a"


@pytest.mark.parametrize(
    ("script", "kind", "reason"),
    [
        ("echo no entry >&2; exit 3", RemoteRefused, r"exited with status 3 \(no entry\); do what"),
        ("printf 'a\\033\\nb' >&2; exit 1", RemoteRefused, r"status 1 \(a b\)"),
        ("echo s3cret; exit 1", RemoteRefused, "exited with status 1;"),
        ("kill -9 $$", RemoteRefused, "ended by signal 9"),
        ("while :; do echo s3cret; done", RemoteRefused, "wrote more than 65536 bytes"),
    ],
)
def test_a_helper_that_fails_is_a_refusal(helper, script, kind, reason):
    helper.script(script)
    with pytest.raises(kind, match=reason) as caught:
        credentials(helper).headers()
    assert "s3cret" not in str(caught.value) and "\x1b" not in str(caught.value)


def test_the_end_of_a_long_complaint_is_shown(helper):
    helper.script("i=0; while [ $i -lt 3000 ]; do echo $i >&2; i=$((i+1)); done; exit 1")
    with pytest.raises(RemoteRefused, match=r"status 1 \([ 0-9]*2999\)") as caught:
        credentials(helper).headers()
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize("script", ["exec sleep 100", "echo wait >&2; sleep 100 & wait"])
def test_a_helper_that_does_not_end_is_killed_with_what_it_started(helper, script):
    helper.script(script)
    begin = time.monotonic()
    with pytest.raises(RemoteUnavailable, match=r"did not end in 0\.2 s"):
        credentials(helper, longest=0.2).headers()
    with pytest.raises(RemoteUnavailable, match=r"did not end in 0\.1 s"):
        credentials(helper, timeout=0.1).headers()
    assert time.monotonic() - begin < 50


def test_what_a_helper_leaves_running_is_not_waited_for(helper):
    helper.script(f"sleep 100 & echo $! > {helper.path}.pid; echo '{json.dumps(BEARER)}'")
    assert credentials(helper).headers() == (("Authorization", "Bearer s3cret"),)
    os.kill(int((helper.path.parent / "helper.pid").read_text()), 9)


def test_a_helper_need_not_listen(helper):
    helper.script(f"exec <&-; echo '{json.dumps(BEARER)}'")
    assert credentials(helper).headers()


@pytest.mark.parametrize("what", ["missing", "not executable", "no program", "a directory"])
def test_a_program_that_cannot_be_started_is_named(helper, what):
    if what == "no program":
        helper.path.write_text("neither a script nor a binary")
        helper.path.chmod(0o700)
    elif what == "not executable":
        helper.path.chmod(0o600)
    else:
        helper.path.unlink()
        if what == "a directory":
            helper.path.mkdir()
    with pytest.raises(RemoteRefused, match=f"{helper.path} cannot be started: .*executable"):
        credentials(helper).headers()


def test_without_a_helper_there_is_what_was_configured():
    config = RemoteConfig("https://me:pw@x", headers=(("A", "b"),))
    made = credentials_of(config)
    assert type(made) is FixedCredentials
    assert made.headers() == (("A", "b"), ("Authorization", "Basic bWU6cHc="))
    assert made.renew(made.headers()) is False


def _demanding(accepted: Callable[[], str]) -> Callable[[Conversation], None]:
    def script(talk: Conversation) -> None:
        while head := talk.hear_whole():
            allowed = f"Authorization: {accepted()}\r\n".encode() in head
            talk.say(
                b"HTTP/1.1 %s\r\nContent-Length: 1\r\n\r\nx"
                % (b"200 OK" if allowed else b"401 Unauthorized")
            )

    return script


def test_after_a_401_it_is_asked_once_more(helper):
    token = "Bearer s3cret"
    server = ScriptedServer(_demanding(lambda: token))
    config = RemoteConfig(server.url, credential_helper=helper.path)
    try:
        with closing(open_engine(config)) as engine:
            for _ in range(3):
                assert engine.entries.get(BLOB) == b"x"
            assert len(helper.asked) == 1
            token = "Bearer n3w"
            helper.says({"headers": {"Authorization": [token]}})
            assert engine.blobs.get_many([BLOB]) == {BLOB: b"x"}
            engine.blobs.put_many({BLOB: b"x"})
            assert len(helper.asked) == 2
            token = "another"
            for step in (
                lambda: engine.entries.get(BLOB),
                lambda: engine.blobs.put_many({BLOB: b"x"}),
            ):
                before = len(helper.asked)
                with pytest.raises(RemoteRefused, match="401") as caught:
                    step()
                assert "n3w" not in str(caught.value)
                assert len(helper.asked) == before + 1
    finally:
        server.stop()


def test_many_requests_that_are_refused_together_are_all_sent_again(helper):
    blobs = {BlobDigest.of(b"%d" % number): b"%d" % number for number in range(20)}
    server = ScriptedServer(_demanding(lambda: "Bearer n3w"))
    config = RemoteConfig(server.url, credential_helper=helper.path)
    try:
        with closing(open_engine(config)) as engine:
            with pytest.raises(RemoteRefused):
                engine.blobs.put_many(blobs)
            helper.says({"headers": {"Authorization": ["Bearer n3w"]}})
            engine.blobs.put_many(blobs)
    finally:
        server.stop()
    assert len(helper.asked) <= 4


def test_its_headers_go_with_every_request(helper):
    server = HttpCacheServer()
    config = RemoteConfig(server.url, credential_helper=helper.path)
    try:
        with closing(open_engine(config)) as engine:
            engine.blobs.put_many({BLOB: b"x"})
            assert engine.blobs.get_many([BLOB]) == {BLOB: b"x"}
            assert engine.entries.get(BLOB) is None
        assert [headers["Authorization"] for _, _, headers in server.requests] == [
            "Bearer s3cret"
        ] * 3
    finally:
        server.stop()
    assert len(helper.asked) == 1


def test_a_helper_that_fails_is_a_fault_of_the_request_and_nothing_is_sent(helper):
    helper.script("exit 1")
    server = HttpCacheServer()
    config = RemoteConfig(server.url, credential_helper=helper.path)
    try:
        with closing(open_engine(config)) as engine, pytest.raises(RemoteRefused, match="status 1"):
            engine.entries.get(BLOB)
        assert server.connections == 0
    finally:
        server.stop()
