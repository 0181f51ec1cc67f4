"""A child that was forked, at whatever moment, works on its own and counts on its own."""

from __future__ import annotations

from typing import Any

import pytest

COMMON = """
import threading, time, torch, warnings
import pypto.jit.building as building
warnings.simplefilter("ignore")  # a fork with threads is what this is about
x = torch.arange(16 * 64, dtype=torch.float32).reshape(16, 64)
def right():
    out = torch.zeros(16, 64)
    kernels.kernel(x, out)
    return torch.equal(out, x * kernels.SCALE)
def stats():
    return dataclasses.asdict(pypto.cache_stats())
def forked(work):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            told = work()
        except BaseException as error:
            told = {"error": repr(error)}
        os.write(writer, json.dumps(told).encode())
        os._exit(0)
    os.close(writer)
    def wait():
        with os.fdopen(reader) as pipe:
            told = json.loads(pipe.read() or '{"error": "died"}')
        os.waitpid(child, 0)
        return told
    return wait
def counted(before, names=("requests", "object_hits", "ready_hits", "generated_hits", "misses",
                           "generation_builds", "binary_builds", "disabled_requests")):
    after = stats()
    return {name: after[name] - before[name] for name in names if after[name] != before[name]}
"""


@pytest.mark.parametrize("cached", [True, False])
def test_forked_before_anything_was_used(house: Any, cached: bool) -> None:
    report = house.run(
        COMMON
        + """
def work():
    return {"right": right(), "counted": counted({name: 0 for name in stats()})}
report["child"] = forked(work)()
report["parent untouched"] = not any(stats().values())
report["parent"] = work()
""",
        cached=cached,
    )
    built = {"requests": 1, "generation_builds": 1, "binary_builds": 1}
    assert report["child"]["right"]
    assert report["child"]["counted"] == built | {"misses" if cached else "disabled_requests": 1}
    assert report["parent untouched"]
    assert report["parent"]["right"]
    if cached:
        assert report["parent"]["counted"] == {"requests": 1, "ready_hits": 1}
    else:
        assert report["parent"]["counted"] == report["child"]["counted"]


@pytest.mark.parametrize("cached", [True, False])
def test_forked_after_a_hit(house: Any, cached: bool) -> None:
    report = house.run(
        COMMON
        + """
report["first"] = right()
before = stats()
def work():
    inherited = stats() == before
    told = {"right": right(), "inherited": inherited, "same": counted(before)}
    kernels.SCALE = 5.0
    middle = stats()
    return {**told, "other": right(), "built": counted(middle)}
waits = [forked(work) for _ in range(3)]
report["children"] = [wait() for wait in waits]
report["parent"] = [stats() == before, right(), counted(before)]
""",
        cached=cached,
    )
    hit = {"requests": 1, "object_hits": 1} | ({} if cached else {"disabled_requests": 1})
    assert report["first"]
    for child in report["children"]:
        assert child["right"]
        assert child["other"]
        assert child["inherited"]
        assert child["same"] == hit
        assert child["built"]["requests"] == 1
    # The children share one store, so that one of them built for all.
    built = sum(child["built"].get("generation_builds", 0) for child in report["children"])
    assert built == (1 if cached else 3)
    assert report["parent"] == [True, True, hit]


@pytest.mark.parametrize("cached", [True, False])
def test_forked_while_another_thread_builds(house: Any, cached: bool) -> None:
    report = house.run(
        COMMON
        + """
inside, go = threading.Event(), threading.Event()
generate = building.Recipe.generate
def slow(self, directory, **options):
    inside.set()
    go.wait(60)
    return generate(self, directory, **options)
building.Recipe.generate = slow
results = []
thread = threading.Thread(target=lambda: results.append(right()))
thread.start()
assert inside.wait(60)
def work():
    building.Recipe.generate = generate
    before = stats()
    return {"right": right(), "counted": counted(before)}
wait = forked(work)
if job["root"] is None:
    report["child"] = wait()  # it has nobody to wait for
go.set()
thread.join()
if job["root"] is not None:
    report["child"] = wait()
report["results"] = results
report["again"] = right()
""",
        cached=cached,
    )
    assert report["results"] == [True]
    assert report["again"]
    assert report["child"]["right"]
    assert report["child"]["counted"]["requests"] == 1
    total = report["stats"]["generation_builds"]
    total += report["child"]["counted"].get("generation_builds", 0)
    assert total == (1 if cached else 2)


def test_forked_while_every_lock_is_taken_by_somebody(house: Any) -> None:
    report = house.run(
        COMMON
        + """
right()
stop = threading.Event()
def busy(work):
    while not stop.is_set():
        work()
def compile_afresh():
    kernels.kernel.compile(config=pypto.runtime.RunConfig(dump_passes=True))
import pypto.runtime
works = [right, pypto.cache_stats, compile_afresh, lambda: pypto.configure_cache(
    pypto.CacheConfig(enabled=True, root=Path(job["root"])))]
threads = [threading.Thread(target=busy, args=(work,)) for work in works]
for thread in threads: thread.start()
def work():
    before = stats()
    return {"right": right(), "counted": counted(before)}
try:
    report["children"] = [forked(work)() for _ in range(15)]
finally:
    stop.set()
    for thread in threads: thread.join()
report["parent"] = right()
"""
    )
    for child in report["children"]:
        assert child.get("right"), child
        assert child["counted"] == {"requests": 1, "object_hits": 1}
    assert report["parent"]
