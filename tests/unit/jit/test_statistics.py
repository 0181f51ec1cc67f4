from __future__ import annotations

import dataclasses
import os
import threading

import pytest
from pypto.jit.statistics import CacheStats, Counter, Statistics


@pytest.mark.conforms("cache.100")
def test_a_snapshot_has_the_documented_fields_and_cannot_be_changed() -> None:
    names = [field.name for field in dataclasses.fields(CacheStats)]
    assert names[:15] == [
        "requests",
        "object_hits",
        "ready_hits",
        "generated_hits",
        "misses",
        "disabled_requests",
        "forced_rebuilds",
        "bypasses",
        "last_bypass_reason",
        "invalid_entries",
        "storage_errors",
        "generation_builds",
        "binary_builds",
        "lookup_ns",
        "build_ns",
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Statistics().snapshot().requests = 1  # type: ignore[misc]


@pytest.mark.conforms("cache.100")
def test_every_counter_reaches_its_field() -> None:
    statistics = Statistics()
    for position, counter in enumerate(Counter, start=1):
        statistics.add(counter, position)
    snapshot = statistics.snapshot()
    for position, counter in enumerate(Counter, start=1):
        assert getattr(snapshot, counter.field) == position


def test_what_remotes_say_is_counted_apart() -> None:
    names = [field.name for field in dataclasses.fields(CacheStats)]
    assert names[15:] == [
        "remote_hits",
        "remote_misses",
        "remote_errors",
        "last_remote_error",
        "remote_uploads",
        "remote_download_bytes",
        "remote_upload_bytes",
        "remote_fetch_ns",
        "remote_upload_ns",
    ]
    statistics = Statistics()
    assert statistics.snapshot().last_remote_error is None
    statistics.add_all({Counter.REMOTE_HITS: 1, Counter.REMOTE_DOWNLOAD_BYTES: 100})
    statistics.add_all({Counter.REMOTE_HITS: 1, Counter.REMOTE_DOWNLOAD_BYTES: 11})
    statistics.remote_fault("one")
    statistics.remote_fault("two")
    snapshot = statistics.snapshot()
    assert (snapshot.remote_hits, snapshot.remote_download_bytes) == (2, 111)
    assert (snapshot.remote_errors, snapshot.last_remote_error) == (2, "two")


@pytest.mark.conforms("cache.103")
def test_the_latest_bypass_reason_is_kept() -> None:
    statistics = Statistics()
    assert statistics.snapshot().last_bypass_reason is None
    statistics.bypass("one")
    statistics.bypass("two")
    snapshot = statistics.snapshot()
    assert (snapshot.bypasses, snapshot.last_bypass_reason) == (2, "two")


def test_threads_lose_no_count() -> None:
    statistics = Statistics()

    def work() -> None:
        for _ in range(2000):
            statistics.add(Counter.REQUESTS)
            statistics.live_call(True, 3)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    snapshot = statistics.snapshot()
    assert snapshot.requests == 32000
    assert snapshot.object_hits == snapshot.disabled_requests == 16000
    assert snapshot.lookup_ns == 48000


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_child_starts_with_its_parents_counts_and_can_count() -> None:
    statistics = Statistics()
    statistics.add(Counter.REQUESTS, 5)
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            statistics.add(Counter.MISSES)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                statistics.add(Counter.REQUESTS)
                os._exit(0 if statistics.snapshot().requests == 6 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()
    assert statistics.snapshot().requests == 5
