"""Which request gets the object of an earlier one, and which is compiled afresh."""

from __future__ import annotations

from typing import Any

import pytest

COMMON = """
import torch
from pypto.runtime import RunConfig
def meta(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, device="meta")
def counted(name):
    return getattr(pypto.cache_stats(), name)
"""

KERNELS = """
import pypto.language as pl

N = pl.dynamic("N")


@pl.jit
def scaled(
    x: pl.Tensor[[N, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[N, 64], pl.FP32]],
    scale: pl.Scalar[pl.FP32],
    times: pl.constexpr = 1,
):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.mul(pl.load(x, [0, 0], [16, 64]), scale)
        out = pl.store(pl.mul(tile, times), [0, 0], out)
    return out


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)
    return out
"""

POLICIES = """
def private():
    return RunConfig(cache_config=pypto.CacheConfig())
def enabled(**fields):
    return RunConfig(cache_config=pypto.CacheConfig(enabled=True, **fields))
root = Path(job["root"])
"""


@pytest.mark.conforms("language.118")
@pytest.mark.conforms("cache.21", "cache.25", "cache.26")
@pytest.mark.parametrize("cached", [True, False])
def test_equal_specializations_share_one_object(house: Any, cached: bool) -> None:
    house.write(KERNELS)
    report = house.run(
        COMMON
        + """
scaled = kernels.scaled
def hits(make):
    before = counted("object_hits")
    made = make()
    return made is first, counted("object_hits") - before
first = scaled.compile()
report["alike"] = {
    "signature": hits(lambda: scaled.compile()),
    "named constant": hits(lambda: scaled.compile(times=1)),
    "samples": hits(lambda: scaled.compile(meta(16, 64), meta(16, 64), 1.0)),
    "other scalar": hits(lambda: scaled.compile(meta(16, 64), meta(16, 64), -7.5)),
    "other extent": hits(lambda: scaled.compile(meta(48, 64), meta(48, 64), 1.0)),
    "warmed": hits(lambda: scaled.warmup()),
}
x = torch.ones(16, 64)
out = torch.zeros(16, 64)
before = counted("object_hits")
for scale in (2.0, 3.0):
    scaled(x, out, scale)
    report["correct"] = torch.equal(out, x * scale)
report["calls"] = counted("object_hits") - before
report["apart"] = {
    "constant": hits(lambda: scaled.compile(times=2)),
    "type of a constant": hits(lambda: scaled.compile(times=1.0)),
    "truth": hits(lambda: scaled.compile(times=True)),
}
report["built"] = counted("generation_builds")
""",
        cached=cached,
    )
    assert set(map(tuple, report["alike"].values())) == {(True, 1)}, report["alike"]
    assert report["calls"] == 2
    assert report["correct"]
    assert set(map(tuple, report["apart"].values())) == {(False, 0)}, report["apart"]
    assert report["built"] == 4


@pytest.mark.conforms("cache.22", "cache.23", "cache.24", "cache.31")
def test_objects_stay_within_their_policy(house: Any) -> None:
    house.write(KERNELS)
    report = house.run(
        COMMON
        + POLICIES
        + """
policies = {
    "enabled": enabled(root=root),
    "private": private(),
    "other root": enabled(root=root.with_name("other")),
    "read-only": enabled(root=root, readonly=True),
    "read-only other": enabled(root=root.with_name("other"), readonly=True),
}
first = {name: kernels.kernel.compile(config=config) for name, config in policies.items()}
hits = counted("object_hits")
again = {name: kernels.kernel.compile(config=config) for name, config in policies.items()}
report["distinct"] = len(set(map(id, first.values())))
report["kept"] = [name for name in policies if again[name] is first[name]]
report["hits"] = [hits, counted("object_hits")]
report["program"] = first["private"].program is not None and again["private"].program is not None
report["disabled"] = counted("disabled_requests")
"""
    )
    assert report["distinct"] == 5
    assert len(report["kept"]) == 5
    assert report["hits"] == [0, 5]
    assert report["program"]
    assert report["disabled"] == 2


@pytest.mark.conforms("cache.27", "cache.102")
@pytest.mark.parametrize("cached", [True, False])
def test_every_diagnostic_is_compiled_afresh_and_leaves_no_trace(house: Any, cached: bool) -> None:
    house.write(KERNELS)
    report = house.run(
        COMMON
        + """
from pypto.ir.options import DiagnosticPhase, PassDumpLevel
settings = [
    {"dump_passes": True},
    *({"dump_passes": level} for level in PassDumpLevel if level is not PassDumpLevel.NONE),
    {"dump_ptoas_passes": True},
    {"compile_profiling": True},
    *({"diagnostic_phase": phase} for phase in DiagnosticPhase),
]
def tree():
    return sorted(
        (str(p), p.stat().st_ino, p.stat().st_mtime_ns)
        for p in Path(job["root"] or "/nowhere").rglob("*")
    )
live = kernels.kernel.compile()
before, files = pypto.cache_stats(), tree()
fresh = []
for setting in settings:
    for _ in range(2):
        fresh.append(kernels.kernel.compile(config=RunConfig(**setting)))
after = pypto.cache_stats()
report["count"] = len(fresh)
report["distinct"] = len({id(live), *map(id, fresh)}) == 1 + len(fresh)
report["programs"] = all(item.program is not None for item in fresh)
report["keys"] = [item.artifact_key for item in fresh]
report["grown"] = {
    name: getattr(after, name) - getattr(before, name)
    for name in (
        "requests", "forced_rebuilds", "generation_builds", "disabled_requests", "bypasses",
        "misses", "object_hits", "ready_hits", "generated_hits",
    )
}
report["files kept"] = tree() == files
report["live kept"] = kernels.kernel.compile() is live
# Neither of these asks for the build itself.
report["no diagnostics"] = [
    kernels.kernel.compile(config=RunConfig(**setting)) is live
    for setting in (
        {"save_kernels": True}, {"enable_pmu": True}, {"disabled_diagnostics": ["x"]},
        {"dump_passes": PassDumpLevel.NONE},
    )
]
""",
        cached=cached,
    )
    count = report["count"]
    assert count >= 8
    assert report["distinct"]
    assert report["programs"]
    assert set(report["keys"]) == {None}
    assert report["grown"] == {
        "requests": count,
        "forced_rebuilds": count,
        "generation_builds": count,
        "disabled_requests": 0 if cached else count,
        "bypasses": 0,
        "misses": 0,
        "object_hits": 0,
        "ready_hits": 0,
        "generated_hits": 0,
    }
    assert report["files kept"]
    assert report["live kept"]
    assert report["no diagnostics"] == [True] * 4


@pytest.mark.conforms("cache.28")
@pytest.mark.parametrize("cached", [True, False])
def test_a_named_output_directory_gets_a_build_each_time(house: Any, cached: bool) -> None:
    house.write(KERNELS)
    report = house.run(
        COMMON
        + """
config = RunConfig(save_kernels_dir="placed")
marker = Path("placed/kernel_config.json")
made = []
for _ in range(2):
    made.append(kernels.kernel.compile(config=config))
    report.setdefault("stamps", []).append(marker.stat().st_mtime_ns)
report["there"] = all(item.output_dir.samefile("placed") for item in made)
report["fresh"] = made[0] is not made[1] and None not in [item.program for item in made]
report["counts"] = [counted("forced_rebuilds"), counted("generation_builds"), counted("misses")]
""",
        cached=cached,
    )
    assert report["there"]
    assert report["fresh"]
    assert report["stamps"][0] < report["stamps"][1]
    assert report["counts"] == [2, 2, 0]
    assert not house.root.exists() or not house.slots("generated")


@pytest.mark.conforms("cache.29")
def test_only_what_was_compiled_here_has_its_program(house: Any) -> None:
    house.write(KERNELS)
    fresh = house.run(house.COMPILE)
    generated = house.run(house.WARM)
    ready = house.run(house.COMPILE)
    assert [item["has_program"] for item in (fresh, generated, ready)] == [True, False, False]
    assert generated["stats"]["generated_hits"] == ready["stats"]["ready_hits"] == 1


WINS = """
import pypto.jit.building as building
generate = building.Recipe.generate
def slow(self, directory, **options):
    Path("building").touch()
    while not Path("waiting").exists():
        time.sleep(0.01)
    time.sleep(1.0)  # the other one is on its way to the lock
    return generate(self, directory, **options)
building.Recipe.generate = slow
"""
LOSES = """
while not Path("building").exists():
    time.sleep(0.01)
Path("waiting").touch()
"""


@pytest.mark.conforms("cache.30")
def test_whoever_lost_the_race_has_no_program(house: Any) -> None:
    house.write(KERNELS)
    children = [house.start("import time\n" + how + house.COMPILE) for how in (WINS, LOSES)]
    winner, loser = (house.finish(child) for child in children)
    assert winner["has_program"]
    assert not loser["has_program"]
    assert loser["key"] == winner["key"] is not None
    assert loser["stats"]["misses"] == 1
    assert loser["stats"]["generation_builds"] == 0


@pytest.mark.conforms("cache.32")
def test_the_representation_is_made_without_store_and_counters(house: Any) -> None:
    house.write(KERNELS)
    house.run(house.WARM)
    report = house.run(
        """
opened = []
sys.addaudithook(
    lambda event, detail: opened.append(str(detail[0]))
    if event in ("open", "os.listdir", "os.scandir", "os.mkdir") else None
)
programs = [kernels.kernel.specialize(), kernels.kernel.lower()]
report["types"] = [type(program).__name__ for program in programs]
report["opened"] = [path for path in opened if path.startswith(job["root"])]
"""
    )
    assert report["types"] == ["Program", "Program"]
    assert report["opened"] == []
    assert not any(report["stats"].values())


@pytest.mark.conforms("cache.24")
def test_a_bypass_reuses_private_objects_of_its_kind_only(house: Any) -> None:
    house.write(KERNELS)
    report = house.run(
        COMMON
        + POLICIES
        + """
live = kernels.kernel.compile()
os.environ["PYPTO_CACHE_IDENTITY"] = "content"
os.environ["CPATH"] = "/nowhere"
bypassed = [kernels.kernel.compile() for _ in range(2)]
disabled = kernels.kernel.compile(config=private())
report["objects"] = len({id(item) for item in (live, *bypassed, disabled)})
report["hits"] = counted("object_hits")
report["bypasses"] = counted("bypasses")
"""
    )
    assert report["objects"] == 3
    assert report["hits"] == 1
    assert report["bypasses"] == 2


UNIDENTIFIED = """
import pypto.language as pl


class Config:
    def __init__(self):
        self.scale = 2.0


CONFIG = Config()


@pl.jit.inline
def scaled(x, config):
    return pl.mul(x, config.scale)


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(scaled(pl.load(x, [0, 0], [16, 64]), CONFIG), [0, 0], out)
    return out
"""


@pytest.mark.parametrize("cached", [True, False])
def test_what_cannot_be_identified_is_compiled_each_time(house: Any, cached: bool) -> None:
    house.write(UNIDENTIFIED)
    report = house.run(
        COMMON
        + """
x = torch.ones(16, 64)
out = torch.zeros(16, 64)
report["results"] = []
for scale in (2.0, 3.0):
    kernels.CONFIG.scale = scale
    kernels.kernel(x, out)
    report["results"].append(out[0, 0].item())
    report["results"].append(kernels.kernel.compile()(x, out) or out[0, 0].item())
""",
        cached=cached,
    )
    stats = report["stats"]
    assert report["results"] == [2.0, 2.0, 3.0, 3.0]
    assert stats["object_hits"] == 0
    assert stats["generation_builds"] == 4
    assert stats["bypasses"] == (4 if cached else 0)
    if cached:
        assert "CONFIG" in stats["last_bypass_reason"]
