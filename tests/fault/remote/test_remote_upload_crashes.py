"""Uploads whose process is killed, ends, forks or has company: a reader sees all or nothing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from machines import LONG, SHORT, Machine
from moody_cache import MoodyCache
from pypto_store import RemoteConfig
from pypto_store.remote import tier as tier_module
from pypto_store.remote.engines import open_engine
from pypto_store.testing import HINT, PAYLOAD
from scripted_server import ScriptedServer

WHOLE = {**PAYLOAD, "large": bytes(range(256)) * (8 << 10)}  # 2 MiB are sent as a stream


pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


class Killing:
    """An engine that kills its process at an operation: before it, within it, or after it."""

    def __init__(self, inner, number, moment):
        self._left = number
        self._moment = moment
        self.blobs = self.entries = None
        self.blobs = _Operations(inner.blobs, self)
        self.entries = _Operations(inner.entries, self)
        self.close = inner.close

    def run(self, operation, arguments):
        now = self._left == 0
        self._left -= 1
        if now and self._moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if now and self._moment == "within" and callable(arguments[-1]):
            arguments = (*arguments[:-1], lambda source=arguments[-1]: _Killing(source()))
        result = operation(*arguments)
        if now and self._moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result


class _Operations:
    def __init__(self, inner, killing):
        for name in ("get", "get_many", "put", "put_many", "find_missing"):
            if (operation := getattr(inner, name, None)) is not None:
                setattr(self, name, self._counted(operation, killing))

    @staticmethod
    def _counted(operation, killing):
        return lambda *arguments: killing.run(operation, arguments)


class _Killing:
    """A source whose process is killed after the first piece was sent."""

    def __init__(self, inner):
        self._inner = inner
        self._pieces = 0

    def read(self, size):
        self._pieces += 1
        if self._pieces > 3:
            time.sleep(0.05)  # what was sent is on its way
            os.kill(os.getpid(), signal.SIGKILL)
        return self._inner.read(min(size, 1 << 18))

    def close(self):
        self._inner.close()


def forked(action):
    """The status of a child that runs `action`."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed_at(directory, config, number, moment):
    """Build in a child that is killed at its upload's operation of that number; its status."""

    def build():
        tier_module.RemoteTier.__init__.__kwdefaults__["open_engine"] = lambda config: Killing(
            open_engine(config), number, moment
        )
        Machine(directory, config).build(payload=WHOLE)

    return forked(build)


def all_or_nothing(directory, config, payload=WHOLE):
    """What a reader sees is an entry or none; what comes next is as if nothing had been."""
    reader = Machine(directory / "reader", config)
    built = reader.build(payload=payload)
    reader.stop()
    assert reader.counted.faults == []
    assert (reader.counted.hits, reader.counted.misses) == ((0, 1) if built else (1, 0))
    after = Machine(directory / "after", config)
    assert not after.build(payload=payload)
    after.stop()
    return built


def kill_everywhere(tmp_path, make_config, moment):
    outcomes = []
    for number in range(100):
        directory = tmp_path / str(number)
        config = make_config(directory)
        status = killed_at(directory / "killed", config, number, moment)
        if status == 0 and moment != "within":
            break
        if status == -signal.SIGKILL:
            outcomes.append(all_or_nothing(directory, config))
            if moment == "within":
                break  # there is one stream
    return outcomes


@pytest.mark.parametrize("moment", ["before", "within", "after"])
@pytest.mark.parametrize("kind", ["file", "http"])
def test_kill_at_every_operation(tmp_path, started, kind, moment):
    def make_config(directory):
        if kind == "file":
            return RemoteConfig(f"file://{directory}/cache", upload="sync", timeout=LONG)
        started.append(MoodyCache())
        return RemoteConfig(started[-1].url, upload="sync", timeout=LONG)

    had_to_build = kill_everywhere(tmp_path, make_config, moment)
    assert len(had_to_build) >= (1 if moment == "within" else 5)
    # The entry is sent last: whoever is killed before that has left nothing to be seen.
    assert had_to_build == [True] * (len(had_to_build) - 1) + [moment != "after"]


def test_kill_at_every_call_of_a_directory(tmp_path):
    """Within the operations, too: each call that changes the directory of a file:// remote."""
    names, reached = ("mkdir", "open", "fdopen", "fsync", "replace", "utime"), []
    payload = {"kernel_config.json": HINT, "large": WHOLE["large"]}

    def intercept(number):
        left = [number]

        def wrap(name):
            real = getattr(os, name)

            def call(*arguments, **options):
                if any("/cache" in str(part) for part in arguments) or name.startswith("f"):
                    if left[0] == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    left[0] -= 1
                return real(*arguments, **options)

            setattr(os, name, call)

        for name in names:
            wrap(name)

    number = 0
    while True:
        directory = tmp_path / str(number)
        config = RemoteConfig(f"file://{directory}/cache", upload="sync")
        machine = Machine(directory / "killed", config)

        def build(machine=machine, number=number):
            real = machine.tier.offer

            def offer(entry):
                intercept(number)
                real(entry)

            machine.tier.offer = offer
            machine.build(payload=payload)

        status = forked(build)
        machine.stop()
        reached.append(all_or_nothing(directory, config, payload))
        if status == 0:
            break
        assert status == -signal.SIGKILL
        number += 1
    assert number > 20, number
    assert reached[:number].count(False) <= 2  # after the entry has its name


# -- programs that end

PROGRAM = """
import os, pathlib, sys, time
sys.path.insert(0, {place!r})
from machines import Machine
from pypto_store import RemoteConfig
machine = Machine(pathlib.Path({directory!r}), RemoteConfig({url!r}, **{options!r}))
machine.build()
"""


def run(tmp_path, url, ending="", expected=0, **options):
    """Run a program that builds one entry and ends; what it says on standard error."""
    place = os.path.dirname(os.path.abspath(__file__))
    program = subprocess.Popen(
        [
            sys.executable,
            "-c",
            PROGRAM.format(
                place=place, directory=str(tmp_path / "program"), url=url, options=options
            )
            + textwrap.dedent(ending),
        ],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        text=True,
    )
    try:
        _, err = program.communicate(timeout=LONG)
    finally:
        program.kill()
        program.communicate()
    assert program.returncode == expected, err
    assert "Traceback" not in err and "Fatal" not in err and "terminate" not in err
    return err


@pytest.fixture(params=["file", "http", "grpc"])
def remote(request, tmp_path, started):
    """The URL of a remote that is well."""
    if request.param == "file":
        return f"file://{tmp_path}/cache"
    if request.param == "http":
        started.append(MoodyCache())
        return started[-1].url
    pytest.importorskip("grpc")
    from memory_reapi import MemoryReapi

    started.append(MemoryReapi())
    return f"grpc://{started[-1].address}"


def test_a_program_that_ends_has_sent_what_it_made(tmp_path, remote, machine):
    assert run(tmp_path, remote) == ""
    assert not machine(RemoteConfig(remote)).build()


def test_a_program_that_ends_at_once_has_sent_all_or_nothing(tmp_path, remote, machine):
    for number, ending in enumerate(("os._exit(0)", "time.sleep(0.003); os._exit(0)")):
        run(tmp_path / str(number), remote, ending)
        built = machine(RemoteConfig(remote, upload="off"), f"reader-{number}")
        built.build()
        assert built.settle().faults == []


@pytest.mark.parametrize("scheme", ["http", "grpc"])
@pytest.mark.parametrize("upload", ["sync", "background"])
def test_a_program_does_not_hang_at_its_end(tmp_path, started, scheme, upload):
    started.append(ScriptedServer(lambda talk: talk.be_silent()))
    url = started[0].url.replace("http", scheme)
    begun = time.monotonic()
    err = run(tmp_path, url, timeout=SHORT, upload=upload)
    assert time.monotonic() - begun < 30
    assert err.count("told once") == 1


def test_a_program_that_is_stuck_in_an_upload_ends(tmp_path, remote, started):
    """The server stops answering when the entry is being sent; the program has 0.4 s for it."""
    if remote.startswith("file"):
        pytest.skip("a directory answers, or the whole process waits")
    if remote.startswith("http"):
        started[0].mood = lambda method, place: (
            (lambda handler: time.sleep(1.5)) if method == "PUT" else None
        )
    else:
        from memory_reapi import BATCH_UPDATE

        real = started[0].answers[BATCH_UPDATE.path]
        started[0].answer(BATCH_UPDATE, lambda *call: (time.sleep(1.5), real(*call))[1])
    begun = time.monotonic()
    run(tmp_path, remote, timeout=SHORT)
    assert time.monotonic() - begun < 30


def test_the_child_of_a_fork_uses_the_remote_itself(tmp_path, remote, machine):
    """Forked while the parent uploads; each sends its own, once."""
    ending = """
        from pypto_store.testing import PAYLOAD
        pid = os.fork()
        if pid == 0:
            machine.counted.__init__()
            built = machine.build("two", {**PAYLOAD, "own": b"child"}, alone=False)
            sent = machine.tier.flush(30)
            os._exit(0 if built and sent and machine.counted.uploads == 1
                     and not machine.counted.faults else 1)
        assert machine.build("three", {**PAYLOAD, "own": b"parent"}, alone=False)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert machine.tier.flush(30)
        assert (machine.counted.uploads, machine.counted.faults) == (2, []), vars(machine.counted)
        """
    run(tmp_path, remote, ending)
    reader = machine(RemoteConfig(remote))
    assert not reader.build("one")
    assert not reader.build("two", {**PAYLOAD, "own": b"child"})
    assert not reader.build("three", {**PAYLOAD, "own": b"parent"})


# -- company


def test_a_herd_over_two_roots_sends_once(tmp_path, started):
    """Eight processes over two roots want the same at once: one compiles in each root at most."""
    started.append(MoodyCache())
    server = started[0]
    # Slow enough that the roots are at it at the same time.
    server.mood = lambda method, place: time.sleep(0.1) if place == "ac" else None
    read, write = os.pipe()
    log = os.open(tmp_path / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    children = []
    for number in range(8):
        pid = os.fork()
        if pid == 0:
            status = 99
            with contextlib.suppress(BaseException):
                os.read(read, 1)
                root = tmp_path / f"root-{number % 2}"
                one = Machine(root, RemoteConfig(server.url, upload="sync", timeout=LONG))
                built = one.build(alone=False)
                counted = vars(one.counted)
                os.write(log, f"{json.dumps({**counted, 'built': built})}\n".encode())
                status = 0
            os._exit(status)
        children.append(pid)
    os.write(write, b"x" * 8)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * 8
    for descriptor in (read, write, log):
        os.close(descriptor)
    told = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert sum(one["built"] for one in told) <= 2
    assert sum(one["uploads"] for one in told) == 1
    assert sum(len(one["faults"]) for one in told) == 0
    puts = [path for method, path in server.heard if method == "PUT"]
    assert len(puts) == len(set(puts))
    assert sum("/ac/" in path for path in puts) == 1


def test_who_waits_for_an_upload_that_is_killed_sends_it(tmp_path, started):
    started.append(MoodyCache())
    server, killed = started[0], threading.Event()
    server.mood = lambda method, place: killed.wait(LONG) and None if method == "PUT" else None
    config = RemoteConfig(server.url, upload="sync", timeout=LONG)
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            Machine(tmp_path / "first", config).build(payload=WHOLE)
        os._exit(0)
    while not any(method == "PUT" for method, _ in list(server.heard)):
        time.sleep(0.005)
    second = Machine(tmp_path / "second", config)
    waiting = threading.Thread(target=second.build, kwargs={"payload": WHOLE})
    waiting.start()
    time.sleep(0.2)  # by now it waits; if it does not, it has less to wait for
    os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    killed.set()
    waiting.join()
    assert (second.counted.uploads, second.counted.faults) == (1, [])
    second.stop()
    third = Machine(tmp_path / "third", config)
    assert not third.build(payload=WHOLE)
    third.stop()
