"""Stores in several processes, over two roots, against one dictionary.

Each worker is a process with store objects of its own; it is told what to do over a pipe, may be
killed while it builds, and is replaced by a new one. The model knows what is published where and
what was damaged; nothing else decides what anybody is told.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from bounds import ROUNDS
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pypto_store import (
    ArtifactStore,
    Failure,
    Hint,
    Hit,
    Invalid,
    Miss,
    Private,
    crash_points,
    iterate_entries,
)
from pypto_store.testing import GENERATED, ready_spec, sample_key, snapshot
from pypto_store.tools.command_line import Edge, run

WORKERS = range(3)
ROOTS = ("first", "second")
KEYS = ("a", "b")
SPECS = (GENERATED, ready_spec("x86-64"), ready_spec("x86-64-v3"))
HINTS = {f'{{"spec":{number}}}'.encode(): spec for number, spec in enumerate(SPECS)}
HINT_OF = {spec: hint for hint, spec in HINTS.items()}
VISIBLE = frozenset(
    {"publish.renamed", "publish.slot_synced", "publish.adopted", "publish.done", "build.released"}
)
POINTS = sorted(
    point
    for point in crash_points.POINTS
    if point.startswith(("build.", "publish.", "store.")) and point != "publish.adopted"
)


class Worker:
    """What one process can do; every method answers with something plain."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._stores = {}

    def _store(self, root: str, readonly: bool) -> ArtifactStore:
        place = (root, readonly)
        if place not in self._stores:
            self._stores[place] = ArtifactStore(
                self._base / root, readonly=readonly, lock_timeout=20
            )
        return self._stores[place]

    def build(self, root, readonly, key, spec, payload, point=None):
        """Ask for an entry; `point` is where this process is killed on the way."""
        calls = []

        def write(directory):
            calls.append(None)
            for path, data in {**payload, "kernel_config.json": HINT_OF[spec]}.items():
                (directory / path).parent.mkdir(parents=True, exist_ok=True)
                (directory / path).write_bytes(data)

        def strike(name):
            if name == point:
                os.kill(os.getpid(), signal.SIGKILL)

        with crash_points.armed(strike):
            result = self._store(root, readonly).get_or_build(
                sample_key(key), spec, write, private_parent=self._base / "private"
            )
        if isinstance(result, Private):
            content = self._tree(result.path)
            shutil.rmtree(result.path)
            return "Private", result.failure, content, len(calls)
        return type(result).__name__, None, self._content(result), len(calls)

    def lookup(self, root, readonly, key, spec):
        """What a lookup says, and the content of a hit."""
        return self._told(self._store(root, readonly).lookup(sample_key(key), spec))

    def discover(self, root, readonly, key):
        """The same of a discovery, and how many were rejected."""
        found = self._store(root, readonly).discover_ready(sample_key(key), HINTS.__getitem__)
        return *self._told(found), len(getattr(found, "rejected", ()))

    def hint(self, root, readonly, key):
        """The kind of answer and the hint's bytes."""
        found = self._store(root, readonly).read_hint(sample_key(key))
        return type(found).__name__, getattr(found, "data", None)

    def command(self, root, *words):
        """The status of an offline command; this process is no writer any more."""
        for store in self._stores.values():
            store._lease.drop()
        edge = Edge({"TMPDIR": str(self._base)}, io.StringIO(), io.StringIO())
        name, *rest = words
        return run([name, "--root", str(self._base / root), "--json", *rest], edge)

    def retire(self):
        """Stop being a writer."""
        for store in self._stores.values():
            store._lease.drop()

    def _told(self, found):
        return type(found).__name__, self._content(found) if isinstance(found, Hit) else None

    @staticmethod
    def _content(result):
        return {
            record.path: result.entry.read(record.path) for record in result.entry.manifest.files
        }

    @staticmethod
    def _tree(directory):
        return {
            str(path.relative_to(directory)): path.read_bytes()
            for path in directory.rglob("*")
            if path.is_file()
        }


def work(base, connection, others):
    """The loop of a worker process."""
    for other in others:
        other.close()
    os.fsync = lambda _: None
    worker = Worker(base)
    with suppress(EOFError):
        while True:
            name, arguments = connection.recv()
            connection.send(getattr(worker, name)(*arguments))


class Process:
    """A worker's process, as its master sees it."""

    def __init__(self, base: Path, others) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        others = [other._pipe for other in others]
        self._process = context.Process(
            target=work, args=(base, theirs, [*others, self._pipe]), daemon=True
        )
        self._process.start()
        theirs.close()

    def ask(self, name, *arguments):
        """What the worker answers; EOFError if it died."""
        self._pipe.send((name, arguments))
        if not self._pipe.poll(60):
            raise TimeoutError(f"{name}{arguments} hangs")
        return self._pipe.recv()

    def end(self):
        self._process.kill()
        self._process.join()
        self._pipe.close()


workers = st.sampled_from(WORKERS)
roots = st.sampled_from(ROOTS)
keys = st.sampled_from(KEYS)
specs = st.sampled_from(SPECS)
readonlies = st.sampled_from([False, False, False, True])
payloads = st.dictionaries(st.sampled_from(["a", "b", "d/c"]), st.binary(max_size=3), max_size=3)


class FleetMachine(RuleBasedStateMachine):
    """published: content by (root, key, spec). damaged: how its slot looks since."""

    def __init__(self):
        super().__init__()
        self.base = Path(tempfile.mkdtemp(prefix="store-fleet-"))
        self.published = {}
        self.damaged = {}
        self.fleet = []

    @initialize()
    def start(self):
        for _ in WORKERS:
            self.fleet.append(Process(self.base, self.fleet))

    def teardown(self):
        for process in self.fleet:
            process.end()
        shutil.rmtree(self.base)

    def replace(self, number):
        self.fleet[number].end()
        others = [process for place, process in enumerate(self.fleet) if place != number]
        self.fleet[number] = Process(self.base, others)

    def content(self, spec, payload):
        return {**payload, "kernel_config.json": HINT_OF[spec]}

    @rule(number=workers, root=roots, readonly=readonlies, key=keys, spec=specs, payload=payloads)
    def build(self, number, root, readonly, key, spec, payload):
        slot = (root, key, spec)
        before = snapshot(self.base / root) if readonly else None
        kind, failure, content, calls = self.fleet[number].ask(
            "build", root, readonly, key, spec, payload
        )
        if slot in self.damaged:
            assert (kind, failure, calls) == ("Private", Failure.INVALID, 1)
            assert content == self.content(spec, payload)
        elif slot in self.published:
            assert (kind, calls) == ("Hit", 0)
            assert content == self.published[slot]
        elif readonly:
            assert (kind, failure, calls) == ("Private", None, 1)
            assert content == self.content(spec, payload)
        else:
            assert (kind, calls) == ("Published", 1)
            assert content == self.content(spec, payload)
            self.published[slot] = content
        assert before is None or snapshot(self.base / root) == before

    @rule(
        number=workers, root=roots, key=keys, spec=specs, payload=payloads,
        point=st.sampled_from(POINTS),
    )  # fmt: skip
    def kill_while_it_builds(self, number, root, key, spec, payload, point):
        slot = (root, key, spec)
        try:
            answer = self.fleet[number].ask("build", root, False, key, spec, payload, point)
        except EOFError:
            assert slot not in self.published
            if point in VISIBLE:
                self.published[slot] = self.content(spec, payload)
            self.replace(number)
        else:
            # It was there, or cannot be, or this point lies behind it: the root has its marker.
            if answer[0] == "Published":
                assert slot not in self.published
                assert point.startswith(("store.", "build.leased"))
                self.published[slot] = answer[2]
            else:
                assert slot in self.published

    @rule(one=workers, other=workers, root=roots, key=keys, payload=payloads)
    def promote(self, one, other, root, key, payload):
        """Both states of a key, as the JIT makes them, the second one by whoever runs it."""
        self.build(one, root, False, key, GENERATED, payload)
        self.build(other, root, False, key, SPECS[1], payload)

    @rule(number=workers)
    def kill(self, number):
        self.replace(number)

    @rule(number=workers, root=roots, readonly=readonlies, key=keys, spec=specs)
    def look_up(self, number, root, readonly, key, spec):
        slot = (root, key, spec)
        kind, content = self.fleet[number].ask("lookup", root, readonly, key, spec)
        if slot in self.damaged:
            assert kind == Invalid.__name__
        elif slot in self.published:
            assert (kind, content) == (Hit.__name__, self.published[slot])
        else:
            assert kind == Miss.__name__

    @rule(number=workers, root=roots, readonly=readonlies, key=keys)
    def discover(self, number, root, readonly, key):
        kind, content, rejected = self.fleet[number].ask("discover", root, readonly, key)
        ready = [
            slot for slot in self.published if slot[:2] == (root, key) and slot[2] != GENERATED
        ]
        sound = [slot for slot in ready if slot not in self.damaged]
        if len(sound) == 1:
            assert (kind, content) == (Hit.__name__, self.published[sound[0]])
            assert rejected == len(ready) - 1
        elif sound:
            assert kind == Invalid.__name__
        else:
            assert (kind, rejected) == (Miss.__name__, len(ready))

    @rule(number=workers, root=roots, readonly=readonlies, key=keys)
    def hint(self, number, root, readonly, key):
        slot = (root, key, GENERATED)
        kind, data = self.fleet[number].ask("hint", root, readonly, key)
        if slot in self.damaged:
            assert kind == Invalid.__name__
        elif slot in self.published:
            assert (kind, data) == (Hint.__name__, HINT_OF[GENERATED])
        else:
            assert kind == Miss.__name__

    def place(self, slot):
        root, key, spec = slot
        name = "generated" if spec == GENERATED else spec.digest.hex
        (path,) = [
            row.path
            for row in iterate_entries(self.base / root)
            if row.key == sample_key(key).digest.hex and os.path.basename(row.path) == name
        ]
        return Path(path)

    @precondition(lambda self: len(self.damaged) < len(self.published))
    @rule(data=st.data(), kind=st.sampled_from(["flip", "cut", "remove", "manifest"]))
    def damage(self, data, kind):
        order = [slot for slot in self.published if slot not in self.damaged]
        slot = data.draw(st.sampled_from(order))
        path = self.place(slot)
        victim = path / ("artifact_manifest.json" if kind == "manifest" else "kernel_config.json")
        old = victim.read_bytes()
        victim.unlink()  # its inode may be another slot's too
        if kind == "flip":
            victim.write_bytes(old.replace(b":", b";"))
        elif kind == "cut":
            victim.write_bytes(old[:-1])
        elif kind == "manifest":
            victim.write_bytes(old + b"\n")
        self.damaged[slot] = snapshot(path)

    @precondition(lambda self: self.published)
    @rule(number=workers, root=roots)
    def check_and_put_aside(self, number, root):
        """fsck: what is damaged is out of the way afterwards, and can be built again."""
        if not any(slot[0] == root for slot in self.published):
            return
        for process in self.fleet:
            process.ask("retire")
        wrong = [slot for slot in self.damaged if slot[0] == root]
        assert self.fleet[number].ask("command", root, "fsck") == (1 if wrong else 0)
        for slot in wrong:
            del self.damaged[slot], self.published[slot]

    @precondition(lambda self: self.published)
    @rule(number=workers, root=roots)
    def remove_everything(self, number, root):
        """gc down to nothing, once nobody is a writer."""
        if not any(slot[0] == root for slot in self.published):
            return
        for process in self.fleet:
            process.ask("retire")
        status = self.fleet[number].ask("command", root, "gc", "--max-size", "0", "--delete")
        assert status == 0
        for slot in [slot for slot in self.published if slot[0] == root]:
            self.published.pop(slot)
            self.damaged.pop(slot, None)

    @invariant()
    def damaged_slots_stay_as_they_are(self):
        for slot, before in self.damaged.items():
            assert snapshot(self.place(slot)) == before

    @invariant()
    def there_is_nothing_but_what_was_published(self):
        for root in ROOTS:
            if (self.base / root).exists():
                rows = list(iterate_entries(self.base / root))
                assert len(rows) == len([slot for slot in self.published if slot[0] == root])


TestFleetMachine = FleetMachine.TestCase
TestFleetMachine.settings = settings(max_examples=5 * ROUNDS, stateful_step_count=25, deadline=None)
TestFleetMachine.pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning")]
