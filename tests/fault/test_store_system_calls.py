"""Every system call that the store makes fails in turn, in each of the ways a file system fails.

A rehearsal counts the calls of an operation; then it is repeated once for each call and errno.
Nothing here names a call: what the kernel is asked for is what fails.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from intercepted import DONE, KILL, Run, Unavailable, intercepted, uncounted
from pypto.jit.native_validation import NativeValidator
from pypto_store import ArtifactStore, Failure, Hit, Miss, Published, iterate_entries
from pypto_store.layout import Layout
from pypto_store.locks import acquire
from pypto_store.testing import GENERATED, READY, ready_spec, sample_key, snapshot
from pypto_store.validation import PYTHON_VALIDATOR, Validator
from tree_states import Ground

CODES = (
    errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ESTALE, errno.EINTR,
)  # fmt: skip
HINT = b'{"schema":1}'
PAYLOAD = {"kernel_config.json": HINT, "kernels/add.cpp": b"int add;\n" * 40, "big": bytes(300_000)}


class Done(NamedTuple):
    """An outcome, as much of it as leaves the child; `left` are the descriptors it left open."""

    kind: str
    failure: Failure | None
    reason: str
    path: Path | None
    left: tuple[str, ...]


class Operation(NamedTuple):
    """What is done to the root in a directory.

    prepare: makes the directory as it is before. act: does it, in the child. sound: the kind of
    outcome when nothing fails, and `broken` the kinds when a call does. writes: whether it may
    write.
    """

    prepare: Callable[[Path], None]
    act: Callable[[Path, Validator], object]
    sound: str
    broken: frozenset[str]
    writes: bool = False


def store_in(base, validator=PYTHON_VALIDATOR, *, readonly=False):
    return ArtifactStore(base / "root", readonly=readonly, lock_timeout=5, validator=validator)


def write_payload(directory: Path) -> None:
    for path, data in PAYLOAD.items():
        (directory / path).parent.mkdir(exist_ok=True)
        (directory / path).write_bytes(data)


def build_unseen(directory: Path) -> None:
    """A builder is not part of the store: its calls are not counted and never fail."""
    with uncounted():
        write_payload(directory)


def build(base, validator, spec=READY, readonly=False):
    return store_in(base, validator, readonly=readonly).get_or_build(
        sample_key(), spec, build_unseen, private_parent=base / "private"
    )


def clean_build(base, spec=READY, key="one"):
    """A build without faults in this process, which keeps no lock of it."""
    store = store_in(base)
    calls = []

    def builder(directory):
        calls.append(directory)
        write_payload(directory)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        result = store.get_or_build(sample_key(key), spec, builder, private_parent=base / "again")
    store._lease.drop()
    return result, len(calls)


def nothing(base: Path) -> None:
    """Not even a root."""


def both_states(base: Path) -> None:
    clean_build(base, GENERATED)
    clean_build(base, READY)


def generated_and_another(base: Path) -> None:
    """GENERATED of the key, and another key whose blobs can be linked."""
    clean_build(base, GENERATED)
    clean_build(base, READY, "other")


def two_candidates(base: Path) -> None:
    clean_build(base, GENERATED)
    clean_build(base, READY)
    clean_build(base, ready_spec("x86-64"))


def materialize(base, _):
    with uncounted():
        entry = store_in(base).lookup(sample_key(), READY).entry
    entry.materialize(base / "out")
    return "Materialized"


def verify(base, _):
    with uncounted():
        entry = store_in(base).lookup(sample_key(), READY).entry
    for path in PAYLOAD:
        entry.verify(path)
        assert entry.read(path) == PAYLOAD[path]
    return "Verified"


def derive(data):
    if data != HINT:
        raise ValueError("not the hint")
    return READY


def discover(base, how):
    return store_in(base, how).discover_ready(sample_key(), derive)


READING = frozenset({"StorageError"})
BUILDING = frozenset({"Published", "Hit", "Private", "OSError"})
OPERATIONS = {
    "lookup": Operation(
        both_states, lambda base, how: store_in(base, how).lookup(sample_key(), READY), "Hit",
        READING,
    ),
    "lookup generated": Operation(
        both_states, lambda base, how: store_in(base, how).lookup_generated(sample_key()), "Hit",
        READING,
    ),
    "hint": Operation(
        both_states, lambda base, how: store_in(base, how).read_hint(sample_key()), "Hint", READING
    ),
    "discovery": Operation(
        both_states, discover, "Hit", READING,
    ),
    "discovery beside another": Operation(
        two_candidates, discover, "Hit", READING,
    ),
    "listing": Operation(
        both_states, lambda base, _: tuple(iterate_entries(base / "root")), "tuple",
        frozenset({"tuple", "OSError"}),
    ),
    "materialize": Operation(
        both_states, materialize, "Materialized", frozenset({"OSError"})
    ),
    "verify": Operation(both_states, verify, "Verified", frozenset({"OSError"})),
    "readonly hit": Operation(
        both_states, lambda base, how: build(base, how, readonly=True), "Hit",
        frozenset({"Hit", "Private", "OSError"}),
    ),
    "readonly miss": Operation(
        generated_and_another, lambda base, how: build(base, how, readonly=True), "Private",
        frozenset({"Private", "OSError"}),
    ),
    "first build": Operation(
        nothing, lambda base, how: build(base, how, GENERATED), "Published", BUILDING, writes=True
    ),
    "promotion": Operation(
        generated_and_another, build, "Published", BUILDING, writes=True
    ),
}  # fmt: skip


def descriptors() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except OSError:
            continue  # the listing's own
    return found


VALIDATORS = {"python": PYTHON_VALIDATOR, "native": NativeValidator(PYTHON_VALIDATOR)}
VALIDATING = ("lookup", "lookup generated", "hint", "discovery", "readonly hit")
WRITING = [name for name, operation in OPERATIONS.items() if operation.writes]
CASES = [(name, "python") for name in OPERATIONS] + [(name, "native") for name in VALIDATING]


def perform(operation: Operation, base: Path, decide, how: Validator = PYTHON_VALIDATOR) -> Run:
    def act():
        with uncounted():
            before = descriptors()
        try:
            outcome = operation.act(base, how)
        except OSError as error:
            outcome = error
            kind = "OSError"
        else:
            kind = outcome if isinstance(outcome, str) else type(outcome).__name__
        with uncounted():
            # A writer keeps the shared lock on its store for life.
            left = {item for item in descriptors() - before if not item.endswith("store.lock")}
        return Done(
            kind,
            getattr(outcome, "failure", None),
            getattr(outcome, "reason", None) or str(outcome),
            getattr(outcome, "path", None),
            tuple(left),
        )

    with intercepted(act, base, decide) as run:
        if operation.writes:
            acquire(
                Layout(str(base / "root")).key_lock(sample_key()), shared=False, timeout=0
            ).release()
    assert run.unknown == set(), "a system call that the tables do not have"
    assert run.status == 0
    assert isinstance(run.answer, Done), run.answer
    return run


def but_for_syncs(_, call):
    """Durability is not what fails here, and the disk is slow."""
    return DONE if call.name in ("fsync", "sync_file_range") else None


def rehearse(operation: Operation, base: Path, how: Validator = PYTHON_VALIDATOR) -> Run:
    """The operation without faults, to count its calls."""
    try:
        run = perform(operation, base, but_for_syncs, how)
    except Unavailable as error:
        pytest.skip(str(error))
    assert run.answer.kind == operation.sound
    assert run.answer.left == ()
    return run


def restore(operation: Operation, ground: Ground, base: Path) -> None:
    """As before the operation; one that does not write leaves the root alone, as is tested."""
    if operation.writes:
        ground.restore()
    for place in ("private", "out"):
        shutil.rmtree(base / place, ignore_errors=True)


@pytest.mark.parametrize(("name", "validator"), CASES)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for good"])
def test_every_call_with_every_errno(memory_path, name, validator, lasting, record_property):
    """A call fails once, or it and every equal one after it: then trying again is no way out."""
    operation, how = OPERATIONS[name], VALIDATORS[validator]
    template = memory_path / "template"
    template.mkdir()
    operation.prepare(template)
    before = snapshot(template)
    base = memory_path / "base"
    ground = Ground(template, base)
    original = snapshot(base / "root")
    rehearsal = rehearse(operation, base, how)
    restore(operation, ground, base)
    kinds = set()
    failures = 0
    for target, call in enumerate(rehearsal.calls):
        if call.name == "close":
            continue  # a failing close closes all the same, which an interception cannot do
        for code in (errno.EIO,) if lasting else CODES:
            struck = []

            def decide(number, call, target=target, code=code, struck=struck):
                if number == target or (lasting and call in struck):
                    struck.append(call)
                    return code
                return but_for_syncs(number, call)

            run = perform(operation, base, decide, how)
            failures += 1
            kinds.add(run.answer.kind)
            judge(operation, ground, base, run, (call, errno.errorcode[code], run.answer))
    record_property("failures", failures)
    print(f"{name}: {len(rehearsal.calls)} calls, {failures} failures, {ground}")
    # A validator that hands over what it dislikes gets a second look at a call that failed once.
    assert operation.broken & kinds or (validator == "native" and not lasting)
    assert snapshot(template) == before
    assert operation.writes or snapshot(base / "root") == original


@pytest.mark.parametrize("validator", VALIDATORS)
@pytest.mark.parametrize("damage", ["flip", "extra", "missing"])
def test_a_failing_call_never_makes_damage_valid(memory_path, validator, damage):
    both_states(memory_path)
    slot = Path(Layout(str(memory_path / "root")).slot(sample_key(), READY))
    match damage:
        case "flip":
            (slot / "big").write_bytes(bytes(150_000) + b"\1" + bytes(149_999))
        case "extra":
            (slot / "kernels" / "extra").write_bytes(b"")
        case "missing":
            (slot / "kernels" / "add.cpp").unlink()
    operation = OPERATIONS["lookup"]._replace(sound="Invalid")
    rehearsal = rehearse(operation, memory_path, VALIDATORS[validator])
    for target in range(len(rehearsal.calls)):
        for code in (errno.EIO, errno.EINTR):

            def decide(number, call, target=target, code=code):
                return code if number == target and call.name != "close" else None

            run = perform(operation, memory_path, decide, VALIDATORS[validator])
            assert run.answer.kind in ("Invalid", "StorageError"), (run.struck, run.answer)


@pytest.mark.parametrize("name", WRITING)
def test_kill_before_every_call(memory_path, name, record_property):
    operation = OPERATIONS[name]
    template = memory_path / "template"
    template.mkdir()
    operation.prepare(template)
    base = memory_path / "base"
    ground = Ground(template, base)
    count = len(rehearse(operation, base).calls)
    restore(operation, ground, base)
    kills = 0
    for target in range(count):

        def decide(number, call, target=target):
            return KILL if number == target else but_for_syncs(number, call)

        with intercepted(lambda: operation.act(base, PYTHON_VALIDATOR), base, decide) as run:
            pass
        assert run.status == -signal.SIGKILL, run.struck
        kills += 1
        judge_build(operation, ground, base, Done("killed", None, "", None, ()), (run.struck,))
        restore(operation, ground, base)
    record_property("kills", kills)
    print(f"{kills} kills, {ground}")
    assert kills > 150


def judge(operation, ground, base, run, told):
    answer = run.answer
    # Python repeats some interrupted calls itself, and some failures cost an economy only.
    assert answer.kind in operation.broken | {operation.sound}, told
    assert answer.left == (), told
    store = store_in(base)
    if (base / "out").exists() and answer.kind == "OSError":
        assert not [path for path in (base / "out").rglob("*") if path.is_file()], told
    assert isinstance(store.lookup(sample_key(), READY), (Hit, Miss)), told
    assert isinstance(store.lookup_generated(sample_key()), (Hit, Miss)), told
    if operation.writes:
        judge_build(operation, ground, base, answer, told)
    restore(operation, ground, base)


def judge_build(operation, ground, base, answer, told):
    spec = GENERATED if operation.prepare is nothing else READY
    found = store_in(base).lookup(sample_key(), spec)
    assert isinstance(found, (Hit, Miss)), told
    match answer.kind:
        case "Published" | "Hit":
            assert isinstance(found, Hit), told
        case "Private":
            assert answer.failure in (Failure.STORAGE, Failure.LOCK), told
            assert answer.reason, told
            assert {path: (answer.path / path).read_bytes() for path in PAYLOAD} == PAYLOAD, told
        case "OSError":
            # There was no place to build at all, and the caller chose the place.
            place = f"{base}/private"
            assert any(path.startswith(place) or path == str(base) for path in told[0].paths), told
            assert isinstance(found, Miss), told
    if ground.is_new():
        again, calls = clean_build(base, spec)
        assert isinstance(again, Hit if isinstance(found, Hit) else Published), told
        assert calls == (0 if isinstance(found, Hit) else 1), told
        if calls:
            assert not [path for path in snapshot(base / "root") if ".tmp." in path], told
