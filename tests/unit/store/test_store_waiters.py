"""Who waits for another's build: all of them wake at once, and one of them builds if it failed."""

from __future__ import annotations

import threading

from pypto_store import ArtifactStore, Hit, Miss, Published
from pypto_store.locks import acquire, try_acquire
from pypto_store.testing import READY, payload_builder, sample_key

WAITERS = 3


class WatchedStore(ArtifactStore):
    """A store of its own per waiter, as processes have; its waiters meet when they look."""

    def __init__(self, root, met):
        super().__init__(root, lock_timeout=60)
        self.met = met
        self.waiting = threading.Event()
        self.woken = False

    def wait_for_writer(self, key, *, shared):
        self.waiting.set()
        lock = super().wait_for_writer(key, shared=shared)
        self.woken = shared
        return lock

    def lookup(self, key, spec):
        if self.woken:
            self.woken = False
            # Everyone looks before anyone has looked: nobody may hold a lock that excludes others.
            self.met.wait(timeout=20)
        return super().lookup(key, spec)


def start_waiters(root, tmp_path, met):
    stores = [WatchedStore(root, met) for _ in range(WAITERS)]
    results = {}

    def ask(index):
        results[index] = stores[index].get_or_build(
            sample_key(), READY, payload_builder(), private_parent=tmp_path / f"private{index}"
        )

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(WAITERS)]
    for thread in threads:
        thread.start()
    for store in stores:
        assert store.waiting.wait(20)
    return threads, results


def join(threads):
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_waiters_of_a_finished_build_look_side_by_side(tmp_path):
    root = tmp_path / "root"
    met = threading.Barrier(WAITERS)
    started = {}

    def build(directory):
        started["waiters"] = start_waiters(root, tmp_path, met)
        payload_builder()(directory)

    result = ArtifactStore(root).get_or_build(
        sample_key(), READY, build, private_parent=tmp_path / "private"
    )
    threads, results = started["waiters"]
    join(threads)
    assert isinstance(result, Published)
    assert not met.broken
    assert [type(results[index]) for index in range(WAITERS)] == [Hit] * WAITERS


def test_one_waiter_builds_when_the_awaited_build_failed(tmp_path):
    root = tmp_path / "root"
    store = ArtifactStore(root)
    held = store.try_writer_lock(sample_key())
    assert held is not None
    threads, results = start_waiters(root, tmp_path, threading.Barrier(WAITERS))
    held.release()
    join(threads)
    kinds = sorted(type(results[index]).__name__ for index in range(WAITERS))
    assert kinds == ["Hit"] * (WAITERS - 1) + ["Published"]


def test_lock_that_is_taken_is_not_waited_for(tmp_path):
    store, other = ArtifactStore(tmp_path / "root"), ArtifactStore(tmp_path / "root")
    with store.wait_for_writer(sample_key(), shared=False):
        assert other.try_writer_lock(sample_key()) is None
    lock = other.try_writer_lock(sample_key())
    assert lock is not None
    lock.release()
    assert isinstance(store.lookup(sample_key(), READY), Miss)


def test_failed_attempt_leaves_no_descriptor_that_keeps_the_lock(tmp_path):
    path = str(tmp_path / "l")
    with acquire(path, shared=False, timeout=0):
        assert try_acquire(path, shared=True) is None
    with acquire(path, shared=True, timeout=0):
        assert try_acquire(path, shared=False) is None
        shared = try_acquire(path, shared=True)
        assert shared is not None
        shared.release()
    acquire(path, shared=False, timeout=0).release()
