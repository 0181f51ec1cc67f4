"""The output directory: complete or untouched, and the same for the same program."""

from __future__ import annotations

import json
import runpy
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from copy_programs import copy_program
from pypto import ir
from pypto.backend import RuntimeKind, target_of
from pypto.compiler import (
    AssemblyFailed,
    BuiltSources,
    PassRecord,
    lower,
    memory_record,
    pass_profile,
)
from pypto.compiler.memory_record import MemoryRecord
from pypto.compiler.pass_profile import PassProfile
from pypto.compiler.tree import staged, unique_directory, write_files
from pypto.ir.errors import CompileError
from pypto.ir.options import DiagnosticPhase, PassDumpLevel
from pypto.ir.passes import limits_of
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.kernel_config import KernelConfig

Build = Callable[..., BuiltSources]


def tree(directory: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()
    }


def test_the_directory_holds_every_file_of_the_program(build: Build, tmp_path: Path) -> None:
    build(copy_program(), tmp_path / "out")
    assert sorted(tree(tmp_path / "out")) == [
        "compiled_meta.json",
        "kernel_config.json",
        "kernel_config.py",
        "kernels/aiv/copy_rows.cpp",
        "orchestration/copy.cpp",
        "ptoas/copy_rows.cpp",
        "ptoas/copy_rows.pto",
    ]


def test_the_tables_read_back_and_agree(build: Build, tmp_path: Path) -> None:
    built = build(copy_program(), tmp_path / "out")
    directory = built.output_dir
    assert KernelConfig.parse((directory / "kernel_config.json").read_bytes()) == built.config
    assert CompiledMeta.load(directory) == built.meta
    assert built.config.runtime is RuntimeKind.TENSORMAP_AND_RINGBUFFER
    params = json.loads((directory / "compiled_meta.json").read_text())["params"]
    assert params[0]["shape"] == [-1, 8]
    assert params[0]["symbols"] == ["N", None]
    module = runpy.run_path(str(directory / "kernel_config.py"))
    assert module["KERNELS"][0]["source"] == "kernels/aiv/copy_rows.cpp"
    assert module["KERNELS"][0]["signature"] == ["In", "Out"]
    assert module["RUNTIME_CONFIG"]["runtime"] == "tensormap_and_ringbuffer"
    assert module["ORCHESTRATION"]["source"] == "orchestration/copy.cpp"


def test_equal_programs_give_equal_bytes_in_any_directory(build: Build, tmp_path: Path) -> None:
    first = build(copy_program(), tmp_path / "one")
    second = build(copy_program(), tmp_path / "deep" / "er" / "two")
    assert tree(first.output_dir) == tree(second.output_dir)
    assert all(str(tmp_path).encode() not in data for data in tree(first.output_dir).values())


def test_a_rejected_text_is_an_internal_error_with_the_text(build: Build, tmp_path: Path) -> None:
    with pytest.raises(AssemblyFailed, match="internal error") as caught:
        build(copy_program("bad"), tmp_path / "out")
    assert "func.func @bad_rows" in caught.value.pto
    assert caught.value.pto in str(caught.value)
    assert "no such thing" in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


def test_a_failed_build_leaves_the_directory_as_it_was(build: Build, tmp_path: Path) -> None:
    build(copy_program(), tmp_path / "out")
    before = tree(tmp_path / "out")
    with pytest.raises(CompileError):
        build(copy_program(shape=(8000, 8)), tmp_path / "out")
    with pytest.raises(AssemblyFailed):
        build(copy_program("bad"), tmp_path / "out")
    assert tree(tmp_path / "out") == before


def test_a_build_into_a_directory_keeps_what_else_is_there(build: Build, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_files(out, {"notes.txt": "mine", "orchestration/host_orch.py": "", "copy.txt": "x"})
    write_files(out, {"distributed_meta.json": "{}", "kernel_config.json": "old"})
    build(copy_program(), out)
    files = tree(out)
    assert files["notes.txt"] == b"mine"
    assert files["kernel_config.json"] != b"old"
    assert "orchestration/host_orch.py" not in files
    assert "distributed_meta.json" not in files


def test_a_new_directory_has_the_mode_of_new_directories(build: Build, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    build(copy_program(), tmp_path / "out")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "out")]
    assert modes[0] == modes[1]


def test_an_interrupted_stage_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with staged(tmp_path / "out") as staging:
            write_files(staging, {"a": "b"})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_fresh_directories_never_repeat(tmp_path: Path) -> None:
    names = {unique_directory(tmp_path, "k").name for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("k_") for name in names)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"platform": "gpu"}, ValueError, "a2a3sim"),
        ({"runtime": "threads"}, ValueError, "host_build_graph"),
        ({"distributed_config": object()}, ValueError, "distributed_config"),
    ],
)
def test_a_wrong_option_is_named(
    options: dict[str, object], error: type[Exception], text: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=text):
        ir.compile(copy_program(), output_dir=tmp_path / "out", **options)  # type: ignore[arg-type]


def test_compile_takes_programs_and_named_options_only(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"takes an ir\.Program, got str"):
        ir.compile("kernel", output_dir=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ir.compile(copy_program(), tmp_path)  # type: ignore[misc]


def test_a_record_of_the_passes_becomes_files(tmp_path: Path) -> None:
    ticks = iter(range(1000))
    target = target_of("a2a3sim")
    record = PassRecord(
        dump=PassDumpLevel.EXPLICIT,
        profile=True,
        clock=lambda: float(next(ticks)),
        limits=limits_of(target.backend_type),
    )
    sources = {"tests:copy": ("copy.py", 3), "tests:other": ("other.py", 1)}
    lower(replace(copy_program(), sources=sources), target, record)
    memory = MemoryRecord.parse(record.files[memory_record.FILE_NAME].encode())
    assert memory.sources == {"tests:copy": ("copy.py", 3)}
    assert [tile.name for tile in memory.functions[0].tiles] == ["tile"]
    names = sorted(record.files)
    assert names[0] == "passes_dump/00_frontend.py"
    assert names[1] == "passes_dump/01_after_splice_opaque_functions.py"
    text = record.files[pass_profile.FILE_NAME]
    stages = PassProfile.parse(text.encode()).stages
    assert [seconds for _, seconds in stages] == [1.0] * len(stages)
    assert "plan_memory" in record.files[pass_profile.TEXT_NAME]


def test_a_concise_record_leaves_out_types_and_addresses() -> None:
    target = target_of("a2a3sim")
    limits = limits_of(target.backend_type)
    texts = {}
    for level in PassDumpLevel:
        record = PassRecord(dump=level, profile=False, clock=lambda: 0.0, limits=limits)
        lower(copy_program(), target, record)
        last = max((name for name in record.files if name.endswith("plan_memory.py")), default="")
        texts[level] = record.files.get(last, "")
    load = "pl.load(x, [0, 0], [8, 8])"
    assert f"tile: pl.Tile[[8, 8], pl.FP32, pl.MemRef(0)] = {load}" in texts[PassDumpLevel.EXPLICIT]
    assert f"        tile = {load}" in texts[PassDumpLevel.CONCISE]
    assert texts[PassDumpLevel.NONE] == ""


ROW = (
    "[perf_hint PH001] TileInnermostDimGranularity: tile.{op} has innermost dim = 32B (tile "
    "fp32[8, 8], target_memory=Vec); moves 8 rows of 32B each; recommended >= {bytes}B on {arch} "
    "at {place}"
)


@pytest.mark.parametrize(("platform", "limit"), [("a2a3sim", 512), ("a5sim", 128)])
def test_short_rows_are_told_with_the_users_lines(
    tmp_path: Path, platform: str, limit: int
) -> None:
    program = replace(copy_program(), sources={"tests:copy": ("/home/u/copy.py", 3)})
    ir.compile(
        program, output_dir=tmp_path / "out", platform=platform, skip_ptoas=True, dump_passes=False
    )
    lines = (tmp_path / "out/report/perf_hints.log").read_text().splitlines()
    given = {"bytes": limit, "arch": platform.removesuffix("sim"), "place": "/home/u/copy.py:4:5"}
    assert lines == [ROW.format(op=op, **given) for op in ("load", "store")]


def test_hints_are_switched_off_by_code_or_name(tmp_path: Path) -> None:
    def compiled(name: str, **options: Any) -> bool:
        out = tmp_path / name
        ir.compile(copy_program(), output_dir=out, skip_ptoas=True, **options)
        return (out / "report/perf_hints.log").exists()

    assert compiled("told")
    assert not compiled("by_code", disabled_diagnostics={"PH001"})
    assert not compiled("by_name", disabled_diagnostics={"TileInnermostDimGranularity"})
    for phase in DiagnosticPhase:
        assert compiled(phase.value, diagnostic_phase=phase)


def test_an_unknown_diagnostic_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no diagnostic 'PH999'; use one of PH001, Tile"):
        ir.compile(copy_program(), output_dir=tmp_path / "o", disabled_diagnostics={"PH999"})
