"""`push` and `pull` over HTTP: what goes over the wire, and what a server's moods do to them."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from http_cache_server import HttpCacheServer
from pypto_store import ArtifactStore, Hit
from pypto_store.remote.collections import collection_name
from pypto_store.testing import GENERATED, PAYLOAD, READY, payload_builder, sample_key, snapshot
from pypto_store.tools import pushing
from pypto_store.tools.command_line import Edge, run

KEYS = [sample_key(f"key {number}") for number in range(5)]


@pytest.fixture
def server():
    server = HttpCacheServer()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    top = tmp_path_factory.mktemp("commands")
    store = ArtifactStore(top / "root")
    for number, key in enumerate(KEYS):
        for spec in (GENERATED, READY):
            payload = {**PAYLOAD, "own": f"{number} {spec.state}".encode()}
            store.get_or_build(key, spec, payload_builder(payload), private_parent=top / "p")
    store._lease.drop()
    return top / "root"


class Done:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def document(self):
        return json.loads(self.out)


def command(*words, environ=None):
    out, err = io.StringIO(), io.StringIO()
    status = run([str(word) for word in words], Edge(environ or {}, out, err))
    return Done(status, out.getvalue(), err.getvalue())


def entries(root):
    return {
        path: (mode, data)
        for path, (mode, _, data) in snapshot(root).items()
        if path.startswith("artifacts")
    }


def test_a_root_fills_another_through_a_server(root, server, tmp_path):
    pushed = command("push", "--root", root, "--remote", server.url)
    assert (pushed.status, pushed.document["counts"]["sent"]) == (0, 10)
    pulled = command("pull", "--root", tmp_path / "there", "--remote", server.url)
    assert (pulled.status, pulled.document["counts"]["pulled"]) == (0, 10)
    assert entries(tmp_path / "there") == entries(root)


def test_what_the_server_has_is_not_sent_again(root, server):
    command("push", "--root", root, "--remote", server.url)
    server.requests.clear()
    again = command("push", "--root", root, "--remote", server.url)
    assert again.document["bytes_sent"] == 0
    assert not [request for request in server.requests if request[0] == "PUT"]
    name = collection_name("default").digest.sha256.hex
    listed = server.files.pop(f"ac/{name}")
    command("push", "--root", root, "--remote", server.url)
    put = [path for method, path, _ in server.requests if method == "PUT"]
    assert put == [f"/ac/{name}"]  # the list's blobs are there
    assert server.files[f"ac/{name}"] == listed


def test_headers_go_with_every_request_and_into_no_output(root, server):
    environ = {
        "PYPTO_CACHE_REMOTE": server.url,
        "PYPTO_CACHE_REMOTE_HEADERS": "Authorization: Bearer hush",
    }
    done = command("push", "--root", root, environ=environ)
    assert done.status == 0 and "hush" not in done.out + done.err
    assert {headers.get("Authorization") for _, _, headers in server.requests} == {"Bearer hush"}
    server.requests.clear()
    options = ("--header", "X-Team: kernels", "--header", "X-More: a: b")
    command("push", "--root", root, *options, environ=environ)
    (sent,) = {
        (headers.get("X-Team"), headers.get("X-More"), headers.get("Authorization"))
        for _, _, headers in server.requests
    }
    assert sent == ("kernels", "a: b", None)


def test_a_server_that_is_not_there_is_said_and_changes_nothing(root, tmp_path):
    server = HttpCacheServer()
    server.stop()
    before = snapshot(root)
    for words in (("push", "--root", root), ("pull", "--root", tmp_path / "there")):
        done = command(*words, "--remote", server.url)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith(f"error: {server.url}: ") and done.err.count("\n") == 1
    assert snapshot(root) == before
    assert not (tmp_path / "there" / "artifacts").exists()


def test_a_wrong_address_is_said(root, tmp_path):
    done = command("push", "--root", root, "--remote", "http://no-such-host.invalid:1")
    assert done.status == 2 and "no-such-host.invalid" in done.err


def refuse(server, monkeypatch, status, after=0):
    """Answer every PUT but the first `after` with a status."""
    handler, real, left = server.RequestHandlerClass, server.RequestHandlerClass.do_PUT, [after]

    def do_put(self):
        left[0] -= 1
        if left[0] >= 0:
            return real(self)
        self.rfile.read(int(self.headers["Content-Length"]))
        return self._answer(status)

    monkeypatch.setattr(handler, "do_PUT", do_put)


@pytest.mark.parametrize("after", [0, 12])
@pytest.mark.parametrize("status", [401, 403, 503, 507])
def test_a_refusal_stops_a_push_soon_and_says_how_much_is_done(
    root, server, monkeypatch, status, after
):
    refuse(server, monkeypatch, status, after)
    monkeypatch.setattr(pushing, "LANES", 2)
    done = command("push", "--root", root, "--remote", server.url)
    assert done.status == 1
    assert re.search(r"; \d+ of 10 entries are done, run it again to go on\n$", done.err), done.err
    document = done.document
    assert document["stopped"] and done.err == f"error: {document['stopped']}\n"
    assert document["left"] == 10 - document["counts"]["sent"] > 0
    assert document["collection"] is None
    puts = [request for request in server.requests if request[0] == "PUT"]
    assert len(puts) <= after + 2 * (len(PAYLOAD) + 4)  # what was under way, and nothing further
    monkeypatch.undo()
    again = command("push", "--root", root, "--remote", server.url).document
    assert again["counts"]["present"] >= document["counts"]["sent"]
    assert again["counts"]["sent"] + again["counts"]["present"] == 10


def test_what_is_too_large_for_a_server_keeps_nothing_else_back(root, server, monkeypatch):
    real = server.RequestHandlerClass.do_PUT

    def do_put(self):
        size = int(self.headers["Content-Length"])
        if size == len(b"3 State.READY"):
            body = self.rfile.read(size)
            if body == b"3 State.READY":
                return self._answer(413)
            self.rfile = io.BytesIO(body)
        return real(self)

    monkeypatch.setattr(server.RequestHandlerClass, "do_PUT", do_put)
    done = command("push", "--root", root, "--remote", server.url)
    assert done.status == 1
    assert done.document["counts"] == {"sent": 9, "present": 0, "damaged": 0, "failed": 1}
    assert done.document["collection"]["entries"] == 9


def test_a_server_that_goes_away_in_the_middle_of_a_pull(root, server, tmp_path, monkeypatch):
    command("push", "--root", root, "--remote", server.url)
    real, left = server.RequestHandlerClass.do_GET, [25]

    def do_get(self):
        left[0] -= 1
        return real(self) if left[0] >= 0 else (self._place(), self._answer(503))

    with monkeypatch.context() as patch:
        patch.setattr(server.RequestHandlerClass, "do_GET", do_get)
        done = command("pull", "--root", tmp_path / "there", "--remote", server.url)
    assert done.status == 1 and "run it again" in done.err
    pulled = done.document["counts"]["pulled"]
    assert pulled + done.document["left"] == 10
    again = command("pull", "--root", tmp_path / "there", "--remote", server.url)
    assert (again.status, again.document["counts"]["present"]) == (0, pulled)
    assert entries(tmp_path / "there") == entries(root)


def test_a_web_site_is_no_remote(root, server, tmp_path, monkeypatch):
    def page(self):
        self._place()
        self._answer(200, b"<html>Welcome</html>")

    monkeypatch.setattr(server.RequestHandlerClass, "do_GET", page)
    done = command("pull", "--root", tmp_path / "there", "--remote", server.url)
    assert (done.status, done.out) == (2, "")
    assert "collection 'default'" in done.err and "Traceback" not in done.err


def test_lists_that_two_push_at_once_lose_no_entry(root, server, tmp_path):
    """One list is read between the other's reading and writing: the last one wins, on the list."""
    first, second = KEYS[0].digest.hex, KEYS[1].digest.hex
    command("push", "--root", root, "--remote", server.url, first)
    name = f"ac/{collection_name('default').digest.sha256.hex}"
    theirs = server.files[name]
    command("push", "--root", root, "--remote", server.url, second)
    server.files[name] = theirs
    lost = command("pull", "--root", tmp_path / "there", "--remote", server.url).document
    assert len(lost["entries"]) == 2
    again = command("push", "--root", root, "--remote", server.url, second).document
    assert (again["counts"]["present"], again["collection"]["added"]) == (2, 2)
    assert len(command("pull", "--root", tmp_path / "there", "--remote", server.url).document[
        "entries"]) == 4  # fmt: skip


@pytest.mark.parametrize("name", ["push", "pull"])
def test_an_interrupted_command_leaves_whole_entries_and_goes_on(
    root, server, tmp_path, monkeypatch, name
):
    there = tmp_path / "there"
    if name == "pull":
        command("push", "--root", root, "--remote", server.url)
    place = ("--root", root if name == "push" else there)
    method = "do_PUT" if name == "push" else "do_GET"
    real, count, ended = getattr(server.RequestHandlerClass, method), [0], threading.Event()

    def held(self):
        count[0] += 1
        if count[0] > 15:
            ended.wait(60)
        return real(self)

    words = (name, *place, "--remote", server.url, "--scratch", tmp_path)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with monkeypatch.context() as patch:
        patch.setattr(server.RequestHandlerClass, method, held)
        process = subprocess.Popen(
            [sys.executable, "-m", "pypto_store", *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
        )  # fmt: skip
        while count[0] <= 15:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        ended.set()
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")
    assert command(*words).status == 0
    if name == "push":
        command("pull", "--root", there, "--remote", server.url)
    assert entries(there) == entries(root)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("pypto-")]
    assert isinstance(ArtifactStore(there).lookup(KEYS[0], READY), Hit)
