"""Where private builds and the output of runs go, and what is made to find that out."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from pypto_store import ArtifactStore

PRIVATE = re.compile(r"pypto-[0-9a-f]{32}")

PLACES = """
compiled = kernels.kernel.warmup()
kernels.kernel(x, out)
report["output"] = str(compiled.output_dir)
report["made"] = compiled.output_dir.is_dir()
"""
OTHER = "SCALE = 5.0"


def change(site: Any) -> None:
    text = (site.modules / "kernels.py").read_text()
    site.write_kernels(text.replace("SCALE = 2.0", OTHER))


def written(directory: Path, report: dict[str, Any]) -> list[Path]:
    """What the process touched below a directory, relative to it."""
    paths = [Path(path) for path in report["touched"]]
    return [path.relative_to(directory) for path in paths if path.is_relative_to(directory)]


@pytest.mark.conforms("cache.81")
@pytest.mark.parametrize("readonly", [False, True])
def test_private_builds_go_below_build_output(filled: Any, readonly: bool) -> None:
    change(filled)
    report = filled.run(PLACES, readonly=readonly)
    assert report["correct"]
    output = Path(report["output"])
    assert output.parent == filled.work / "build_output"
    if readonly:
        assert report["made"]
        assert [path for path in output.rglob("*") if path.name == "kernel_0.bin"]
    # Nothing else comes to be in the working directory.
    assert {path.parts[0] for path in written(filled.work, report)} == {"build_output"}


@pytest.mark.conforms("cache.81")
def test_runtime_output_of_a_hit_goes_below_build_output(filled: Any) -> None:
    report = filled.run(PLACES)
    assert report["stats"]["ready_hits"] == 1
    output = Path(report["output"])
    assert output.parent == filled.work / "build_output"
    assert written(filled.work, report) == []


@pytest.mark.conforms("cache.82")
@pytest.mark.parametrize("readonly", [False, True])
def test_a_build_from_inside_the_root_goes_to_a_private_directory(
    filled: Any, snapshot_of: Any, readonly: bool
) -> None:
    change(filled)
    if readonly:
        before = snapshot_of(filled.root)
    inside = filled.root / "artifacts"
    report = filled.run(PLACES, readonly=readonly, cwd=inside)
    assert report["correct"]
    assert report["stats"]["generation_builds"] == report["stats"]["binary_builds"] == 1
    output = Path(report["output"])
    assert output.parent.parent == filled.scratch
    assert PRIVATE.fullmatch(output.parent.name)
    assert written(inside / "build_output", report) == []
    if readonly:
        assert stat.S_IMODE(output.parent.stat().st_mode) == 0o700
        assert snapshot_of(filled.root) == before
    # Nothing was made in the temporary directory but that parent and the compilers' own ones.
    made = {path.parts[0] for path in written(filled.scratch, report)}
    assert made
    assert not [name for name in made if not PRIVATE.match(name) and "pypto-build-" not in name]
    again = filled.run(PLACES, readonly=readonly, cwd=inside)
    assert Path(again["output"]).parent != output.parent


BYPASSED = """
pypto.configure_cache(pypto.CacheConfig(
    enabled=True, root=Path(job["root"]), extra_source_paths=(Path("gone"),)))
"""
FORCED = """
from pypto.runtime import RunConfig
compiled = kernels.kernel.compile(config=RunConfig(dump_passes=True))
compiled(x, out)
report["output"] = str(compiled.output_dir)
"""


@pytest.mark.conforms("cache.82")
@pytest.mark.parametrize("step", [BYPASSED + PLACES, FORCED], ids=["bypassed", "forced"])
def test_builds_without_the_store_are_as_private(filled: Any, snapshot_of: Any, step: str) -> None:
    """Whoever makes the directory outside, its name and its mode keep others out."""
    before = snapshot_of(filled.root)
    report = filled.run(step, cwd=filled.root)
    assert report["correct"]
    parent = Path(report["output"]).parent
    assert parent.parent == filled.scratch
    assert PRIVATE.fullmatch(parent.name)
    assert stat.S_IMODE(parent.stat().st_mode) == 0o700
    assert snapshot_of(filled.root) == before


@pytest.mark.conforms("cache.82")
@pytest.mark.parametrize("readonly", [False, True])
def test_a_hit_from_inside_the_root_has_its_output_outside(
    filled: Any, snapshot_of: Any, readonly: bool
) -> None:
    before = snapshot_of(filled.root)
    report = filled.run(PLACES, readonly=readonly, cwd=filled.root)
    assert report["correct"]
    assert report["stats"]["ready_hits"] == 1
    output = Path(report["output"])
    assert output.parent.parent == filled.scratch
    assert PRIVATE.fullmatch(output.parent.name)
    if output.parent.exists():
        assert stat.S_IMODE(output.parent.stat().st_mode) == 0o700
    assert {path.parts[0] for path in written(filled.scratch, report)} <= {output.parent.name}
    assert snapshot_of(filled.root) == before


@pytest.mark.conforms("cache.82")
def test_a_temporary_directory_is_not_probed(filled: Any) -> None:
    """A hit needs none, so one that cannot be written or does not exist is never noticed."""
    shutil.rmtree(filled.scratch)
    report = filled.run(PLACES, cwd=filled.root)
    assert report["correct"]
    assert report["stats"]["ready_hits"] == 1
    assert Path(report["output"]).is_relative_to(filled.scratch)
    assert report["touched"] == []


OTHER_MODE = """
from pypto.runtime import RunConfig
from pypto.backend import BackendType, ExecutionMode
onboard = RunConfig(arch=BackendType.Ascend910B, execution_mode=ExecutionMode.ONBOARD)
compiled = kernels.kernel.compile(config=onboard)
before = len(touched)
compiled(x, out, config=RunConfig(platform="a2a3sim"))
report["made"] = touched[before:]
"""


@pytest.mark.conforms("cache.82")
def test_binaries_of_the_other_execution_mode_are_put_there_without_a_probe(site: Any) -> None:
    report = site.run(OTHER_MODE)
    assert report["correct"]
    made = [Path(path) for path in report["made"] if Path(path).is_relative_to(site.scratch)]
    assert made
    for path in made:
        assert path.relative_to(site.scratch).parts[0].startswith("pypto-build-"), path


KEEP = """
import gc
compiled = kernels.kernel.warmup()
files = lambda: sorted(str(p) for p in compiled.output_dir.rglob("*") if p.is_file())
before = files()
kernels.SCALE = 7.0
other = kernels.kernel.warmup()
del other
gc.collect()
pypto.configure_cache(None)
report["kept"] = bool(before) and files() == before
kernels.SCALE = 2.0
compiled(x, out)
report["output"] = str(compiled.output_dir)
"""


@pytest.mark.conforms("cache.83")
def test_private_trees_live_as_long_as_their_object(filled: Any) -> None:
    shutil.rmtree(filled.root)
    report = filled.run(KEEP, readonly=True)
    assert report["kept"]
    assert report["correct"]
    # Nothing cleans up behind the user's back either: the tree outlives the process.
    assert any(Path(report["output"]).iterdir())


@pytest.mark.conforms("cache.83")
def test_there_is_no_call_that_evicts(filled: Any) -> None:
    import pypto.jit

    words = re.compile(r"evict|clear|clean|purge|prune|remove|delete|expire|\bgc\b|invalidate")
    names = {*dir(pypto), *dir(pypto.jit), *dir(ArtifactStore)}
    assert not [name for name in names if words.search(name)]
    assert os.path.isdir(filled.root)
