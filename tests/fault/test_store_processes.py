"""Several processes at one key: races, holders that die or stop, forks without exec."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path

import pytest
from pypto_store import ArtifactStore, Failure, Hit, Private, Published
from pypto_store.locks import acquire, try_acquire
from pypto_store.testing import READY, payload_builder, sample_key, snapshot

BUILT, FOUND, PRIVATE = 10, 11, 12
STATUS = {Published: BUILT, Hit: FOUND, Private: PRIVATE}


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


def request(root, build=None, timeout=30):
    store = ArtifactStore(root, lock_timeout=timeout)
    return store.get_or_build(
        sample_key(), READY, build or payload_builder(), private_parent=root.parent / "private"
    )


def status(root, build=None, timeout=30):
    return STATUS[type(request(root, build, timeout))]


def noting_builder(log):
    def build(directory):
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, b"built\n")
        os.close(descriptor)
        time.sleep(0.02)
        payload_builder()(directory)

    return build


@pytest.mark.parametrize("trial", range(5))
def test_eight_processes_build_once(root, tmp_path, child, latch, trial):
    start, log = latch(), tmp_path / "log"

    def race():
        start.wait()
        return status(root, noting_builder(log))

    racers = [child(race) for _ in range(8)]
    start.open()
    assert sorted(racer.wait() for racer in racers) == [BUILT] + [FOUND] * 7
    assert log.read_bytes() == b"built\n"
    assert not [path for path in snapshot(root) if ".tmp." in path]


def test_waiter_builds_when_the_holder_is_killed(root, child, latch):
    inside = latch()

    def hang(_):
        inside.open()
        signal.pause()

    holder = child(lambda: status(root, hang))
    inside.wait()
    waiter = child(lambda: status(root))
    time.sleep(0.05)
    assert holder.kill() == -signal.SIGKILL
    assert waiter.wait() == BUILT


def test_stopped_holder_makes_others_private_and_may_finish_later(root, child, latch):
    inside, leave = latch(), latch()

    def slow(directory):
        inside.open()
        leave.wait()
        payload_builder()(directory)

    holder = child(lambda: status(root, slow))
    inside.wait()
    holder.signal(signal.SIGSTOP)
    result = request(root, timeout=0.2)
    assert isinstance(result, Private)
    assert result.failure is Failure.LOCK
    assert "timed out" in result.reason
    holder.signal(signal.SIGCONT)
    leave.open()
    assert holder.wait() == BUILT
    assert isinstance(request(root), Hit)


def test_killed_holder_whose_forked_child_lives_holds_nothing(root, child, latch):
    """A child forked without exec inherits the descriptor, and with it the lock."""
    forked, leave = latch(), latch()

    def fork_and_hang(_):
        if os.fork() == 0:
            forked.open()
            leave.wait()
            os._exit(0)
        signal.pause()

    holder = child(lambda: status(root, fork_and_hang))
    forked.wait()
    holder.kill()
    assert isinstance(request(root, timeout=20), Published)
    leave.open()


def test_forked_child_of_a_living_holder_does_not_prolong_its_lock(root, child, latch):
    leave = latch()

    def fork_and_build(directory):
        if os.fork() == 0:
            leave.wait()
            os._exit(0)
        payload_builder()(directory)

    assert child(lambda: status(root, fork_and_build)).wait() == BUILT
    lock = f"{root}/locks/{sample_key().digest}.lock"
    acquire(lock, shared=False, timeout=0).release()
    leave.open()


def fork_unseen(log):
    """A child that the interpreter knows nothing of, as a C library forks one, and its number."""
    native = ctypes.PyDLL(None)
    pid = native.fork()
    if pid == 0:
        native.pause()
        native._exit(0)
    log.write_text(str(pid))
    return pid


def test_child_forked_by_native_code_keeps_no_lock_that_was_released(root, child, tmp_path):
    log = tmp_path / "pid"

    def fork_and_build(directory):
        fork_unseen(log)
        payload_builder()(directory)

    assert child(lambda: status(root, fork_and_build)).wait() == BUILT
    try:
        # The child has the descriptors still, of the key's lock and of the store's.
        held = [os.readlink(path) for path in Path(f"/proc/{log.read_text()}/fd").iterdir()]
        assert f"{root}/locks/{sample_key().digest}.lock" in held
        acquire(f"{root}/locks/{sample_key().digest}.lock", shared=False, timeout=0).release()
    finally:
        os.kill(int(log.read_text()), signal.SIGKILL)


def test_child_forked_by_native_code_keeps_the_lock_of_a_holder_that_died(
    root, child, latch, tmp_path
):
    """Nothing but the kernel knows that child. Others build privately until it has ended."""
    log, inside = tmp_path / "pid", latch()

    def fork_and_hang(_):
        fork_unseen(log)
        inside.open()
        signal.pause()

    holder = child(lambda: status(root, fork_and_hang))
    inside.wait()
    holder.kill()
    try:
        result = request(root, timeout=0.2)
        assert isinstance(result, Private)
        assert result.failure is Failure.LOCK
    finally:
        os.kill(int(log.read_text()), signal.SIGKILL)
    assert isinstance(request(root, timeout=20), Published)


def test_builder_that_forks_and_returns_twice_publishes_once(root, child, tmp_path):
    def fork_within(directory):
        payload_builder()(directory)
        if os.fork() == 0:
            (tmp_path / "is-child").write_bytes(b"")

    def run():
        result = request(root, fork_within)
        if isinstance(result, Private):
            (tmp_path / "child-result").write_text(str(result.failure))
        return STATUS[type(result)]

    assert child(run).wait() == BUILT
    deadline = time.monotonic() + 20
    while not (tmp_path / "child-result").exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(0.005)
    assert (tmp_path / "child-result").read_text() == str(Failure.LOCK)
    assert isinstance(request(root), Hit)


def test_child_of_a_process_that_used_the_store_works(root, child):
    request(root)
    store = ArtifactStore(root, lock_timeout=20)
    other = sample_key("other")

    def build_another():
        result = store.get_or_build(
            other, READY, payload_builder(), private_parent=root.parent / "private"
        )
        return STATUS[type(result)]

    assert child(build_another).wait() == BUILT
    assert isinstance(store.lookup(other, READY), Hit)


def test_cleaning_is_refused_while_a_writer_lives_and_writers_wait_for_it(root, child, latch):
    done, leave = latch(), latch()

    def write_and_stay():
        request(root)
        done.open()
        leave.wait()

    writer = child(write_and_stay)
    done.wait()
    store_lock = f"{root}/locks/store.lock"
    assert try_acquire(store_lock, shared=False) is None
    leave.open()
    writer.wait()
    with acquire(store_lock, shared=False, timeout=0):
        result = ArtifactStore(root, lock_timeout=0.1).get_or_build(
            sample_key("new"), READY, payload_builder(), private_parent=root.parent / "private"
        )
        assert isinstance(result, Private)
        assert result.failure is Failure.LOCK
        assert isinstance(request(root), Hit)  # readers need no lock


def test_readers_never_wait_for_a_builder(root, child, latch):
    request(root)
    inside, leave = latch(), latch()

    def slow(directory):
        inside.open()
        leave.wait()

    def build_other_state():
        ArtifactStore(root).get_or_build(
            sample_key(), type(READY)(READY.state, "slow"), slow,
            private_parent=root.parent / "private",
        )  # fmt: skip

    child(build_other_state)
    inside.wait()
    began = time.monotonic()
    assert isinstance(request(root), Hit)
    assert time.monotonic() - began < 5
    leave.open()


@pytest.mark.conforms("cache.53")
def test_readonly_processes_build_privately_each_for_itself(root, child, tmp_path):
    root.mkdir()
    before = snapshot(tmp_path / "root")
    log = tmp_path / "log"

    def build_privately():
        store = ArtifactStore(root, readonly=True)
        result = store.get_or_build(
            sample_key(), READY, noting_builder(log), private_parent=tmp_path / "private"
        )
        return STATUS[type(result)]

    readers = [child(build_privately) for _ in range(2)]
    assert [reader.wait() for reader in readers] == [PRIVATE, PRIVATE]
    assert log.read_bytes() == b"built\n" * 2
    assert snapshot(tmp_path / "root") == before
