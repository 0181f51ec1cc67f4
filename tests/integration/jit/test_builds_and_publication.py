"""Who builds, what that starts and publishes, and what the others who wanted the same get."""

from __future__ import annotations

import time
from typing import Any

import pytest

# The build takes its time and says when it has begun.
SLOW = """
import threading, time
import pypto.jit.building as building
generate = building.Recipe.generate
calls = []
def slow(self, directory, **options):
    calls.append(directory)
    Path("building").touch()
    time.sleep({seconds})
    {then}
    return generate(self, directory, **options)
building.Recipe.generate = slow
"""

TOGETHER = """
results, errors = [], []
gate = threading.Barrier(4)
def ask():
    gate.wait()
    try:
        results.append(kernels.kernel.{what}())
    except Exception as error:
        errors.append((type(error).__name__, str(error)))
threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
report["objects"] = len({{id(result) for result in results}})
report["errors"] = errors
report["calls"] = len(calls)
"""

RUNNING = """
maps = Path("/proc/self/maps").read_text()
report["running"] = {
    "threads": len(os.listdir("/proc/self/task")),
    "libraries": sorted(
        {line.split("/")[-1] for line in maps.splitlines() if ".bin" in line or ".load-" in line}
    ),
    "modules": [name for name in ("pypto.runtime.worker", "torch") if name in sys.modules],
}
"""
NOTHING_RUNS = {"threads": 1, "libraries": [], "modules": []}

SCALED = """

@pl.jit
def scaled(x: pl.Tensor, out: pl.Out[pl.Tensor], s: pl.Scalar[pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), s), [0, 0], out)
    return out
"""


@pytest.mark.conforms("cache.35")
def test_compiling_publishes_sources_and_starts_nothing(house: Any) -> None:
    report = house.run(house.COMPILE + RUNNING)
    assert report["running"] == NOTHING_RUNS
    assert len(house.slots("generated")) == 1
    assert not house.slots("ready")


@pytest.mark.conforms("cache.36")
def test_a_call_alone_publishes_complete_binaries(house: Any) -> None:
    report = house.run(house.RUN)
    assert report["correct"]
    assert len(house.slots("ready")) == 1
    again = house.run(house.RUN)
    assert again["correct"]
    assert again["stats"]["ready_hits"] == 1
    assert again["stats"]["binary_builds"] == 0


@pytest.mark.conforms("cache.37")
def test_warming_builds_and_publishes_everything_and_runs_nothing(house: Any) -> None:
    report = house.run(house.WARM + RUNNING)
    assert report["running"] == NOTHING_RUNS
    assert report["stats"]["binary_builds"] == 1
    assert len(house.slots("ready")) == 1


@pytest.mark.conforms("cache.38")
def test_warming_binds_as_compiling_does(house: Any) -> None:
    house.write(house.KERNELS + SCALED)
    step = """
import torch
x = torch.empty(16, 64, device="meta")
declared, sampled = kernels.kernel.warmup(), kernels.kernel.warmup(x, x)
report["same"] = declared is sampled
scaled = [kernels.scaled.warmup(x, x, s) for s in (2.0, 3)]
report["scaled"] = scaled[0] is scaled[1] and scaled[0].artifact_key is not None
report["told"] = []
for name, args, kwargs in (
    ("kernel", (x,), {}),
    ("kernel", (x, x, x), {}),
    ("kernel", (), {"other": 1}),
    ("kernel", (x, 3), {}),
    ("scaled", (), {}),
    ("scaled", (x, x), {}),
    ("scaled", (x, x, x), {}),
):
    told = []
    for method in ("compile", "warmup"):
        try:
            getattr(getattr(kernels, name), method)(*args, **kwargs)
            told.append("nothing")
        except TypeError as error:
            told.append(str(error))
    report["told"].append(told)
"""
    report = house.run(step)
    assert report["same"]
    assert report["scaled"]
    for compiled, warmed in report["told"]:
        assert compiled == warmed != "nothing"


@pytest.mark.conforms("cache.52", "cache.55")
def test_threads_that_want_the_same_share_an_error_and_then_a_build(house: Any) -> None:
    broken = SLOW.format(seconds=0.5, then="raise RuntimeError(f'failed {len(calls)}')")
    report = house.run(
        broken
        + TOGETHER.format(what="compile")
        + "report['failed'] = (report['errors'], report['calls'])\n"
        + SLOW.format(seconds=0.5, then="").replace("generate = building", "# ")
        + TOGETHER.format(what="compile")
    )
    errors, calls = report["failed"]
    assert errors == 4 * [["RuntimeError", "failed 1"]]
    assert calls == 1
    assert report["errors"] == []
    assert (report["calls"], report["objects"]) == (1, 1)
    assert report["stats"]["misses"] == 2
    assert report["stats"]["generation_builds"] == 1
    assert len(house.slots("generated")) == 1


@pytest.mark.conforms("cache.55")
def test_a_failed_build_leaves_no_lock_and_no_entry(house: Any) -> None:
    broken = SLOW.format(seconds=0, then="raise RuntimeError('failed')")
    failed = house.start(
        broken + house.FAIL + "print(json.dumps(report), flush=True)\ntime.sleep(600)\n"
    )
    try:
        assert failed.stdout is not None
        assert "RuntimeError" in failed.stdout.readline()
        assert not house.slots("generated")
        # The process that failed is alive, and holds nothing up.
        began = time.monotonic()
        report = house.run(house.COMPILE)
        assert report["stats"]["generation_builds"] == 1
        assert time.monotonic() - began < 120
    finally:
        failed.kill()
        failed.communicate()


@pytest.mark.conforms("cache.53")
def test_a_read_only_miss_is_shared_by_threads_and_not_by_processes(house: Any) -> None:
    step = SLOW.format(seconds=1, then="") + TOGETHER.format(what="warmup") + house.RUN
    children = [house.start(step, cache={"readonly": True}) for _ in range(2)]
    reports = [house.finish(child) for child in children]
    for report in reports:
        assert report["correct"]
        assert (report["calls"], report["objects"]) == (1, 1)
        assert report["stats"]["generation_builds"] == report["stats"]["binary_builds"] == 1
        assert report["stats"]["misses"] == 1
    assert not house.root.exists()


@pytest.mark.conforms("cache.30", "cache.101")
def test_who_waits_for_a_build_counts_the_miss_it_began_with(house: Any) -> None:
    builder = house.start(SLOW.format(seconds=6, then="") + house.COMPILE)
    deadline = time.monotonic() + 120
    while not (house.work / "building").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    loser = house.run(house.COMPILE)
    winner = house.finish(builder)
    assert loser["key"] == winner["key"]
    assert winner["has_program"]
    assert not loser["has_program"]
    for report, builds in ((winner, 1), (loser, 0)):
        stats = report["stats"]
        assert (stats["requests"], stats["misses"]) == (1, 1)
        assert stats["generation_builds"] == builds
        assert stats["generated_hits"] == stats["ready_hits"] == 0


@pytest.mark.conforms("cache.59")
def test_restoring_reads_no_manifest_again_and_imports_no_worker(filled: Any) -> None:
    step = """
import pypto.jit.persistence as persistence
restore = persistence.Persistent._from_ready
def without_manifests(self, entry):
    for manifest in Path(job["root"]).rglob("artifact_manifest.json"):
        manifest.unlink()
    return restore(self, entry)
persistence.Persistent._from_ready = without_manifests
"""
    report = filled.run(step + filled.WARM + RUNNING + filled.RUN)
    assert report["running"] == NOTHING_RUNS
    assert report["stats"]["ready_hits"] == 1
    assert report["stats"]["binary_builds"] == 0
    assert report["correct"]
    assert not list(filled.root.rglob("artifact_manifest.json"))


@pytest.mark.conforms("cache.105")
def test_the_times_leave_the_execution_of_kernels_out(filled: Any) -> None:
    step = """
import time
from pypto.runtime.compiled_program import CompiledProgram
call = CompiledProgram.__call__
def slow(self, *args, **kwargs):
    time.sleep(3)
    return call(self, *args, **kwargs)
CompiledProgram.__call__ = slow
kernels.kernel.warmup().load()
before = pypto.cache_stats()
"""
    after = """
now = pypto.cache_stats()
report["spent"] = now.lookup_ns + now.build_ns - before.lookup_ns - before.build_ns
"""
    report = filled.run(step + filled.RUN + after)
    assert report["correct"]
    assert 0 < report["spent"] < 1.5e9


@pytest.mark.conforms("cache.100")
def test_a_snapshot_opens_nothing_and_resets_nothing(filled: Any) -> None:
    step = """
opened = []
sys.addaudithook(lambda event, detail: opened.append(event)
                 if event in {"open", "os.listdir", "os.scandir"} else None)
del opened[:]
first, second = pypto.cache_stats(), pypto.cache_stats()
report["opened"] = list(opened)
report["equal"] = first == second
report["requests"] = first.requests
"""
    report = filled.run(filled.WARM + step)
    assert report["opened"] == []
    assert report["equal"]
    assert report["requests"] == 1


@pytest.mark.conforms("cache.9")
def test_a_call_after_a_chdir_uses_the_other_root(house: Any) -> None:
    """Also a call that a live object would answer had the directory stayed the same."""
    step = """
pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path("relative")))
"""
    again = """
kernels.kernel(x, out)
os.mkdir("elsewhere")
os.chdir("elsewhere")
kernels.kernel(x, out)
"""
    report = house.run(step + house.RUN + again)
    assert report["stats"]["object_hits"] == 1
    assert report["stats"]["generation_builds"] == 2
    for place in (house.work, house.work / "elsewhere"):
        assert len(list((place / "relative").glob("artifacts/v1/*/*/ready/*"))) == 1


@pytest.mark.conforms("cache.11")
def test_binaries_are_published_where_their_sources_were(house: Any) -> None:
    step = """
compiled = kernels.kernel.compile()
pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path("other").absolute()))
compiled.complete()
report["key"] = compiled.artifact_key
"""
    report = house.run(step)
    assert report["key"] is not None
    assert len(house.slots("ready")) == 1
    assert not (house.work / "other").exists()
