"""Processes and threads that want the same kernel at the same time: one of them builds it."""

from __future__ import annotations

from typing import Any

import pytest

THREADS = """
import threading
results = []
gate = threading.Barrier(8)
def ask():
    gate.wait()
    results.append(kernels.kernel.warmup())
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
report["objects"] = len({id(result) for result in results})
report["count"] = len(results)
"""

FORK = """
kernels.kernel.warmup()
child = os.fork()
if child == 0:
    kernels.kernel.warmup()
    seen = pypto.cache_stats()
    ok = seen.requests == 2 and seen.object_hits == 1 and seen.generation_builds == 1
    os._exit(0 if ok else 1)
report["child"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


@pytest.mark.conforms("cache.30", "cache.51", "cache.101")
@pytest.mark.parametrize("count", [2, 8])
def test_processes_build_once(house: Any, count: int) -> None:
    children = [house.start(house.WARM) for _ in range(count)]
    reports = [house.finish(child) for child in children]
    total = {
        name: sum(report["stats"][name] for report in reports)
        for name in ("generation_builds", "binary_builds", "bypasses", "storage_errors")
    }
    assert total == {
        "generation_builds": 1,
        "binary_builds": 1,
        "bypasses": 0,
        "storage_errors": 0,
    }
    assert len({report["key"] for report in reports}) == 1
    assert all(report["stats"]["requests"] == 1 for report in reports)
    assert sum(report["has_program"] for report in reports) == 1


@pytest.mark.conforms("cache.52", "cache.101")
def test_threads_build_once_and_share_the_object(house: Any) -> None:
    report = house.run(THREADS)
    stats = report["stats"]
    assert (report["objects"], report["count"]) == (1, 8)
    assert stats["requests"] == 8
    assert stats["misses"] == 1
    assert stats["object_hits"] == 7
    assert stats["generation_builds"] == stats["binary_builds"] == 1


def test_a_forked_child_inherits_objects_and_counters(house: Any) -> None:
    report = house.run(FORK)
    assert report["child"] == 0
    assert report["stats"]["requests"] == 1
