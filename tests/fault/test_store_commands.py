"""The offline commands, killed before each system call they make, or with each of them failing.

Whatever happens to one of them, the store holds whole entries or none, and the next run of the same
command, or of anybody else, goes on from there.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from intercepted import DONE, KILL, Run, Unavailable, intercepted
from pypto_store import ArtifactStore, Hit, Invalid, Miss, Published, iterate_entries
from pypto_store.layout import Layout
from pypto_store.locks import acquire
from pypto_store.testing import GENERATED, READY, payload_builder, sample_key, snapshot
from pypto_store.tools.command_line import Edge, run
from tree_states import Ground, import_as

ROUNDS = int(os.environ.get("STORE_FAULT_ROUNDS", "5"))
CODES = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ESTALE)
# Few and small: each file of each entry is a dozen calls.
ENTRIES = [("one", GENERATED), ("one", READY), ("two", READY)]
PAYLOAD = {"kernel_config.json": b'{"schema":1}', "kernels/add.cpp": b"int add;\n"}


class Command(NamedTuple):
    """A command in a directory: what is there before, its words, and its status without faults.

    spoiled: the entries that were damaged on purpose.
    """

    prepare: Callable[[Path], None]
    words: tuple[str, ...]
    status: int = 0
    spoiled: tuple[tuple[str, object], ...] = ()


def publish(root, key, spec):
    store = ArtifactStore(root, lock_timeout=5)
    result = store.get_or_build(
        sample_key(key), spec, payload_builder(PAYLOAD), private_parent=root.parent / "private"
    )
    store._lease.drop()
    return result


def fill(base):
    for key, spec in ENTRIES:
        publish(base / "root", key, spec)


def fill_and_leave_rubbish(base):
    """What killed publications and interrupted runs leave."""
    fill(base)
    layout = Layout(str(base / "root"))
    staging = Path(layout.key_directory(sample_key("two")), ".tmp.0123456789abcdef01234567")
    staging.mkdir()
    (staging / "half").write_bytes(b"half")


def fill_and_spoil(base):
    fill(base)
    slot = Path(Layout(str(base / "root")).slot(sample_key("one"), READY))
    (slot / "extra").write_bytes(b"")


def pack(base):
    fill(base)
    assert perform(base, ("export", "--all", "-o", "BASE/bundle")) == 0
    shutil.rmtree(base / "root")
    publish(base / "root", "two", READY)


COMMANDS = {
    "gc": Command(fill_and_leave_rubbish, ("gc", "--max-size", "0", "--delete")),
    "fsck": Command(fill_and_spoil, ("fsck",), 1, (("one", READY),)),
    "export": Command(fill, ("export", "--all", "-o", "BASE/bundle")),
    "import": Command(pack, ("import", "BASE/bundle")),
    "ls": Command(fill_and_spoil, ("ls",), 0, (("one", READY),)),
}


def perform(base: Path, words: tuple[str, ...]) -> int:
    """Run a command as its process would; gives its exit status."""
    name, *rest = (word.replace("BASE", str(base)) for word in words)
    out, err = io.StringIO(), io.StringIO()
    edge = Edge({"TMPDIR": str(base / "tmp")}, out, err)
    return run([name, "--root", f"{base}/root", "--json", *rest], edge)


def but_for_syncs(_, call):
    return DONE if call.name in ("fsync", "sync_file_range") else None


def under_faults(command: Command, base: Path, decide) -> Run:
    try:
        with intercepted(lambda: perform(base, command.words), base, decide) as ran:
            pass
    except Unavailable as error:
        pytest.skip(str(error))
    assert ran.unknown == set()
    return ran


@pytest.fixture(params=COMMANDS)
def command(request, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return COMMANDS[request.param]


@pytest.fixture
def template(memory_path, command, monkeypatch):
    # Of translations argparse asks the file system a hundred times per command.
    monkeypatch.setenv("LANGUAGE", "C")
    place = memory_path / "template"
    (place / "tmp").mkdir(parents=True)
    command.prepare(place)
    Ground(place, memory_path / "imported")
    import_as(lambda: perform(memory_path / "imported", command.words))
    return place


def test_kill_before_every_call(memory_path, command, template, child, record_property):
    base = memory_path / "base"
    ground = Ground(template, base)
    rehearsal = under_faults(command, base, but_for_syncs)
    assert rehearsal.answer == command.status
    ground.restore()
    kills = 0
    for target in range(len(rehearsal.calls)):

        def decide(number, call, target=target):
            return KILL if number == target else but_for_syncs(number, call)

        ran = under_faults(command, base, decide)
        assert ran.status == -signal.SIGKILL
        kills += 1
        judge(command, ground, base, child, (ran.struck,))
    record_property("kills", kills)
    print(f"{kills} kills, {ground}")


def test_every_call_fails(memory_path, command, template, child, record_property):
    base = memory_path / "base"
    ground = Ground(template, base)
    rehearsal = under_faults(command, base, but_for_syncs)
    assert rehearsal.answer == command.status
    ground.restore()
    failures = 0
    for target, call in enumerate(rehearsal.calls):
        if call.name == "close":
            continue
        # Every call fails in two ways at first, in all of them in a longer run.
        ways = 2 if ROUNDS <= 5 else len(CODES)
        for code in [CODES[(target + way) % len(CODES)] for way in range(ways)]:

            def decide(number, call, target=target, code=code):
                return code if number == target else but_for_syncs(number, call)

            ran = under_faults(command, base, decide)
            failures += 1
            told = (call, errno.errorcode[code], ran.answer)
            # A status, never an exception.
            assert isinstance(ran.answer, int), told
            judge(command, ground, base, child, told)
    record_property("failures", failures)
    print(f"{failures} failures, {ground}")


def judge(command, ground, base, child, told):
    """Each state once, in a longer run each time."""
    acquire(Layout(str(base / "root")).store_lock, shared=False, timeout=0).release()
    if ground.is_new() or ROUNDS > 5:
        check(command, base, child, told)
    ground.restore()


def check(command, base, child, told):
    root = base / "root"
    store = ArtifactStore(root)
    for key, spec in ENTRIES:
        found = store.lookup(sample_key(key), spec)
        if (key, spec) in command.spoiled:
            assert isinstance(found, (Invalid, Miss)), told
        else:
            assert isinstance(found, (Hit, Miss)), (told, found)
            if isinstance(found, Hit):
                assert {path: found.entry.read(path) for path in PAYLOAD} == PAYLOAD, told
    # In a process of its own, as an import is a writer for as long as its process lives.
    status = child(lambda: perform(base, command.words)).wait()
    # What an interrupted fsck has put aside is no finding of the next one.
    assert status in (command.status, 0), (told, status)
    for key, spec in ENTRIES:
        if not isinstance(store.lookup(sample_key(key), spec), Invalid):
            assert isinstance(publish(root, key, spec), (Hit, Published)), told
    assert not [path for path in snapshot(root) if ".tmp." in path], told
    rows = [row for row in iterate_entries(root) if row.damage is not None]
    assert rows == [], told
