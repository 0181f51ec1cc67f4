"""Disabled, forced, read-only and bypassed requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

DISABLED = """
first = kernels.kernel.compile()
second = kernels.kernel.compile()
report["same"] = first is second
report["has_program"] = second.program is not None
report["key"] = first.artifact_key
"""

TOGGLE = """
from pypto.runtime import RunConfig
off = RunConfig(cache_config=pypto.CacheConfig(enabled=False))
on = kernels.kernel.compile()
private = kernels.kernel.compile(config=off)
report["crossed"] = on is private
report["again"] = kernels.kernel.compile() is on and kernels.kernel.compile(config=off) is private
other = RunConfig(cache_config=pypto.CacheConfig(enabled=True, root=Path("other")))
report["root"] = kernels.kernel.compile(config=other) is on
readonly = RunConfig(
    cache_config=pypto.CacheConfig(enabled=True, root=Path(job["root"]), readonly=True)
)
report["mode"] = kernels.kernel.compile(config=readonly) is on
"""

FORCED = """
from pypto.runtime import RunConfig
cached = kernels.kernel.compile()
before = pypto.cache_stats()
dumped = kernels.kernel.compile(config=RunConfig(dump_passes=True))
placed = kernels.kernel.warmup(config=RunConfig(save_kernels_dir="placed"))
report["fresh"] = len({id(cached), id(dumped), id(placed)}) == 3
report["dumps"] = sorted(p.name for p in (dumped.output_dir / "passes_dump").iterdir())[:1]
report["placed"] = [
    Path("placed/kernel_config.json").is_file(), Path("placed/cache/kernel_0.bin").is_file()
]
report["programs"] = dumped.program is not None and placed.program is not None
report["kept"] = kernels.kernel.compile() is cached
report["misses"] = pypto.cache_stats().misses - before.misses
"""

WATCHED = """
import torch
from pypto import ir
x = torch.rand(16, 64)
out = torch.zeros(16, 64)
cached = kernels.kernel.compile()
kernels.kernel(x, out)
kernels.kernel(x, out)
before = pypto.cache_stats()
names = []
watching = ir.CallbackInstrument(after_pass=lambda name, program: names.append(name))
with ir.PassContext([watching]):
    compiled = kernels.kernel.compile()
    report["passes"] = list(names)
    kernels.kernel(x, out)
report["fresh"] = compiled is not cached
report["calls"] = len(names) // len(report["passes"])
report["kept"] = kernels.kernel.compile() is cached
report["misses"] = pypto.cache_stats().misses - before.misses
report["forced"] = pypto.cache_stats().forced_rebuilds - before.forced_rebuilds
"""

DISABLED_FORCED = """
from pypto.runtime import RunConfig
kernels.kernel.compile(config=RunConfig(dump_passes=True))
"""

IR_ONLY = """
report["names"] = [
    type(kernels.kernel.specialize()).__name__, type(kernels.kernel.lower()).__name__
]
"""

CALL = """
kernels.kernel(x, out)
"""

WATCH = """
below = []
sys.addaudithook(
    lambda event, detail: below.append(str(detail[0]))
    if event in {"os.mkdir", "os.rename", "os.link", "os.remove"}
    and str(detail[0]).startswith(job["root"])
    else None
)
"""

# A file that is written anew has another inode.
RECORDS = """
report.setdefault("records", []).append(
    [(p.name, p.stat().st_ino) for p in (Path(job["root"]) / "tools").iterdir()]
)
"""

UNIDENTIFIED = """
import pypto.language as pl


class Thing:
    __slots__ = ()


THING = Thing()


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)
    return out


SCALE = 1.0
"""


@pytest.mark.conforms("cache.102")
def test_disabled_requests_touch_nothing_and_keep_their_program(house: Any) -> None:
    report = house.run(DISABLED + house.RUN, cached=False)
    stats = report["stats"]
    assert report["same"]
    assert report["has_program"]
    assert report["correct"]
    assert report["key"] is None
    assert stats["disabled_requests"] == stats["requests"] == 3
    assert stats["object_hits"] == 2
    assert stats["misses"] == stats["bypasses"] == 0
    assert stats["generation_builds"] == stats["binary_builds"] == 1
    assert not house.root.exists()
    assert not (house.top / ".cache").exists()
    assert [path.name for path in house.work.iterdir()] == ["build_output"]


def test_the_environment_enables_the_default_root_below_home(house: Any) -> None:
    report = house.run(house.COMPILE, cached=False, env={"PYPTO_CACHE": "1"})
    assert report["key"] is not None
    assert (house.top / ".cache" / "pypto" / "jit" / "STORE").is_file()


def test_a_malformed_variable_is_an_error_that_names_it(house: Any) -> None:
    report = house.run(house.FAIL, cached=False, env={"PYPTO_CACHE": "yes"})
    assert report["error"]["type"] == "ValueError"
    assert "PYPTO_CACHE='yes'" in report["error"]["text"]
    report = house.run(house.COMPILE, env={"PYPTO_CACHE": "yes"})
    assert report["key"] is not None


def test_objects_do_not_cross_policies(house: Any) -> None:
    report = house.run(TOGGLE)
    assert not report["crossed"]
    assert report["again"]
    assert not report["root"]
    assert not report["mode"]
    assert (house.work / "other" / "STORE").is_file()


@pytest.mark.conforms("cache.102")
def test_requests_that_instruments_watch_are_fresh(house: Any) -> None:
    report = house.run(WATCHED)
    assert report["passes"][-1] == "plan_memory"
    assert report["fresh"] and report["kept"]
    assert report["calls"] == 2  # the call that could have been answered at once is watched too
    assert (report["misses"], report["forced"]) == (0, 2)


def test_forced_builds_are_fresh_and_leave_everything_as_it_was(house: Any) -> None:
    report = house.run(FORCED)
    assert report["fresh"]
    assert report["dumps"] == ["00_frontend.py"]
    assert report["placed"] == [True, True]
    assert report["programs"]
    assert report["kept"]
    assert report["misses"] == 0
    assert report["stats"]["forced_rebuilds"] == 2
    assert report["stats"]["bypasses"] == 0
    assert report["stats"]["binary_builds"] == 1
    assert len(house.slots("generated")) == 1


@pytest.mark.conforms("cache.102")
def test_a_disabled_diagnostic_counts_as_both(house: Any) -> None:
    stats = house.run(DISABLED_FORCED, cached=False)["stats"]
    assert stats["disabled_requests"] == stats["forced_rebuilds"] == 1
    assert stats["bypasses"] == stats["misses"] == 0


def test_the_representation_alone_touches_nothing(house: Any) -> None:
    report = house.run(IR_ONLY)
    assert report["names"] == ["Program", "Program"]
    assert all(not value for value in report["stats"].values())
    assert not house.root.exists()


@pytest.mark.conforms("cache.53")
def test_a_read_only_hit_and_a_read_only_miss_write_nothing_below_the_root(filled: Any) -> None:
    before = filled.tree(filled.root)
    report = filled.run(filled.WARM + filled.RUN, cache={"readonly": True})
    assert report["correct"]
    assert report["stats"]["ready_hits"] == 1
    assert not report["started"]
    filled.write(filled.KERNELS.replace("SCALE = 2.0", "SCALE = 5.0"))
    report = filled.run(filled.WARM + filled.RUN, cache={"readonly": True})
    assert report["correct"]
    assert report["key"] is None
    assert report["stats"]["misses"] == 1
    assert report["stats"]["storage_errors"] == report["stats"]["bypasses"] == 0
    assert filled.tree(filled.root) == before


def test_a_missing_read_only_root_stays_missing(house: Any) -> None:
    report = house.run(house.WARM, cache={"readonly": True})
    assert report["stats"]["misses"] == 1
    assert not house.root.exists()


def test_private_output_never_lies_in_the_cache(filled: Any) -> None:
    scratch = filled.top / "scratch"
    scratch.mkdir()
    before = filled.tree(filled.root)
    filled.write(filled.KERNELS.replace("SCALE = 2.0", "SCALE = 5.0"))
    report = filled.run(
        filled.WARM,
        cache={"readonly": True},
        cwd=filled.root / "artifacts",
        env={"TMPDIR": str(scratch)},
    )
    assert report["key"] is None
    assert filled.tree(filled.root) == before
    (parent,) = scratch.iterdir()
    assert parent.stat().st_mode & 0o777 == 0o700


def test_no_tool_writes_below_a_read_only_root(filled: Any) -> None:
    scratch = filled.root / "scratch"
    scratch.mkdir()
    scratch.chmod(0o500)
    filled.write(filled.KERNELS.replace("SCALE = 2.0", "SCALE = 5.0"))
    # The audit sees even what is removed again.
    step = WATCH + filled.WARM + "report['below'] = below"
    report = filled.run(step, cache={"readonly": True}, env={"TMPDIR": str(scratch)})
    assert report["error"] is None
    assert report["below"] == []


@pytest.mark.conforms("cache.54")
def test_a_root_that_cannot_be_written_gives_a_private_result(house: Any) -> None:
    house.root.write_text("a file")
    report = house.run(house.WARM + house.RUN)
    assert report["correct"]
    assert report["key"] is None
    assert report["stats"]["storage_errors"] >= 1
    assert house.root.read_text() == "a file"


def test_private_output_that_cannot_be_written_says_where_else(house: Any) -> None:
    (house.work / "file").write_text("")
    step = """
for change in (lambda: None, lambda: pypto.configure_cache(None)):
    change()
    try:
        kernels.kernel.compile()
    except OSError as error:
        report.setdefault("told", []).append(str(error))
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
try:
    kernels.kernel.compile()
except OSError as error:
    report["gone"] = str(error)
"""
    report = house.run(step, env={"PYPTO_PROG_BUILD_DIR": str(house.work / "file" / "below")})
    assert len(report["told"]) == 2
    for told in report["told"]:
        assert "PYPTO_PROG_BUILD_DIR" in told
        assert str(house.work / "file") in told
    assert "working directory" in report["gone"]


@pytest.mark.conforms("cache.103")
def test_a_missing_extra_source_is_a_bypass_that_names_it(house: Any) -> None:
    report = house.run(
        "kernels.kernel.compile()\n" + house.COMPILE,
        cache={"extra_source_paths": (str(house.top / "gone.py"),)},
    )
    stats = report["stats"]
    assert stats["bypasses"] == 2
    assert stats["object_hits"] == stats["misses"] == 0
    assert stats["generation_builds"] == 2
    assert "gone.py" in stats["last_bypass_reason"]


def test_an_identity_that_is_missing_is_a_bypass_with_a_reason(house: Any) -> None:
    step = "kernels.kernel.compile()\n" + house.COMPILE
    report = house.run(step, env={"PYPTO_CACHE_IDENTITY": "content", "CPATH": "/nowhere"})
    stats = report["stats"]
    assert stats["bypasses"] == 2
    assert stats["object_hits"] == 1
    assert "CPATH" in stats["last_bypass_reason"]
    assert report["key"] is None
    assert not house.slots("generated")


def test_repeated_calls_without_an_identity_stay_bypasses(house: Any) -> None:
    unidentified = {"PYPTO_CACHE_IDENTITY": "content", "CPATH": "/nowhere"}
    report = house.run(house.RUN + 2 * CALL, env=unidentified)
    stats = report["stats"]
    assert report["correct"]
    assert (stats["requests"], stats["bypasses"], stats["object_hits"]) == (3, 3, 2)


@pytest.mark.conforms("cache.54")
def test_a_directory_that_is_no_store_is_left_as_it_is(house: Any) -> None:
    root = Path(house.root)
    root.mkdir()
    (root / "STORE").write_text("of somebody else\n")
    before = house.tree(root)
    report = house.run(house.WARM)
    assert report["key"] is None
    assert report["stats"]["storage_errors"] > 0
    assert house.tree(root) == before


def test_a_value_without_identity_is_a_bypass_that_names_it(house: Any) -> None:
    used = UNIDENTIFIED.replace("out = pl.store", "THING\n        out = pl.store")
    house.write(used)
    report = house.run(house.FAIL)
    assert report["stats"]["bypasses"] == 1
    assert "THING" in report["stats"]["last_bypass_reason"]


CHANGED_MEANWHILE = """
import pypto.jit.building as building
generate = building.Recipe.generate
def slow(self, directory, **options):
    program = generate(self, directory, **options)
    {change}
    return program
building.Recipe.generate = slow
report["key"] = kernels.kernel.compile().artifact_key
"""


@pytest.mark.conforms("cache.57")
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("Path(kernels.__file__).write_text('# edited')", "source"),
        ("kernels.SCALE = 8.0", "value"),
        ("Path('extra.txt').write_text('2')", "extra"),
    ],
)
def test_inputs_that_change_during_a_build_keep_it_private(
    house: Any, change: str, word: str
) -> None:
    (house.work / "extra.txt").write_text("1")
    report = house.run(
        CHANGED_MEANWHILE.format(change=change),
        cache={"extra_source_paths": (str(house.work / "extra.txt"),)},
    )
    assert report["key"] is None
    assert report["stats"]["misses"] == report["stats"]["bypasses"] == 1
    assert word in report["stats"]["last_bypass_reason"]
    assert not house.slots("generated")


EDITED_BEFORE = """
import pypto.jit.session as session
text = Path(kernels.__file__).read_text()
Path(kernels.__file__).write_text(text.replace("pl.mul(tile, SCALE)", "pl.sub(tile, SCALE)"))
code = compile(text, kernels.__file__, "exec")
session.TEXTS._texts.clear()
exec(code, kernels.__dict__)
report["key"] = kernels.kernel.compile().artifact_key
"""


def test_a_file_that_was_edited_since_import_is_not_taken_for_what_was_imported(
    house: Any,
) -> None:
    report = house.run(EDITED_BEFORE)
    assert report["key"] is None
    assert "changed since import" in report["stats"]["last_bypass_reason"]


def test_probe_records_are_kept_once_and_found(house: Any) -> None:
    report = house.run(house.COMPILE + RECORDS + house.COMPILE + RECORDS)
    assert report["records"][0] == report["records"][1]
    # What the probe said, and the identity that came of it.
    assert len(list((Path(house.root) / "tools").glob("*.json"))) == 2
