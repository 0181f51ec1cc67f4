"""A directory that is compiled into again stands for the build that ran last, or for none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from copy_programs import copy_program, several_programs
from pypto import ir
from pypto.backend import target_of
from pypto.compiler import Assembler, BuiltSources
from pypto.compiler.build_options import BuildOptions
from pypto.compiler.driver import build_orchestrations
from pypto.compiler.orchestrations import orchestrations
from pypto.ir.nodes import Program
from pypto.runtime import RunConfig
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.compiled_orchestrations import CompiledOrchestrations
from pypto.runtime.directory_kind import DirectoryKind, kind_of

Build = Callable[..., BuiltSources]

SINGLE = ("kernel_config.py", "kernel_config.json", "compiled_meta.json")


@pytest.fixture
def build_several(assembler: Assembler) -> Callable[[Program, Path], None]:
    def run(program: Program, output: Path) -> None:
        build_orchestrations(
            orchestrations(program),
            output,
            options=BuildOptions(target_of("a2a3sim")),
            assembler=assembler,
        )

    return run


def _put(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("{}")


def test_each_orchestration_is_a_build_of_its_own(
    build_several: Callable[[Program, Path], None], build: Build, tmp_path: Path
) -> None:
    build_several(several_programs("first", "second"), tmp_path / "out")
    build(copy_program("first"), tmp_path / "alone")
    found = sorted(p.relative_to(tmp_path / "out") for p in (tmp_path / "out").iterdir())
    assert [str(p) for p in found] == ["next_levels"]
    child = tmp_path / "out/next_levels/first"
    for path in (tmp_path / "alone").rglob("*.cpp"):
        name = path.relative_to(tmp_path / "alone")
        assert (child / name).read_bytes() == path.read_bytes()
    assert (child / "compiled_meta.json").read_bytes() == (
        tmp_path / "alone/compiled_meta.json"
    ).read_bytes()
    assert CompiledMeta.load(tmp_path / "out/next_levels/second").params[0].name == "x"


def test_a_child_has_only_what_it_calls() -> None:
    parts = orchestrations(several_programs("first", "second"))
    assert list(parts) == ["first", "second"]
    assert [list(p.functions) for p in parts.values()] == [["first"], ["second"]]
    assert [p.entry for p in parts.values()] == ["first", "second"]


def test_the_parent_of_several_has_no_description(
    build_several: Callable[[Program, Path], None], build: Build, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    build(copy_program(), out)
    _put(out, "notes.txt", "distributed_meta.json", "orchestration/host_orch.py")
    build_several(several_programs("first", "second"), out)
    assert kind_of(out) is DirectoryKind.NONE
    assert not any((out / name).exists() for name in (*SINGLE, "distributed_meta.json"))
    assert (out / "kernels/aiv/copy_rows.cpp").exists() and (out / "notes.txt").exists()
    with pytest.raises(
        FileNotFoundError, match="several programs; use one of next_levels/first, next_levels/sec"
    ):
        ir.CompiledProgram.from_dir(out)


def test_children_of_an_older_build_do_not_change_a_new_one(
    build_several: Callable[[Program, Path], None], build: Build, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    build_several(several_programs("first", "second"), out)
    child = {p: p.read_bytes() for p in (out / "next_levels").rglob("*") if p.is_file()}
    build(copy_program("third"), out)
    assert kind_of(out) is DirectoryKind.SINGLE
    assert json.loads((out / "kernel_config.json").read_text())["orchestration"]["source"] == (
        "orchestration/third.cpp"
    )
    assert {p: p.read_bytes() for p in (out / "next_levels").rglob("*") if p.is_file()} == child
    assert CompiledMeta.load(out / "next_levels/first").params


def test_markers_go_from_children_too(
    build_several: Callable[[Program, Path], None], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    _put(out / "next_levels/first", "distributed_meta.json")
    _put(out / "next_levels/other", "distributed_meta.json")
    build_several(several_programs("first", "second"), out)
    assert not (out / "next_levels/first/distributed_meta.json").exists()
    assert (out / "next_levels/other/distributed_meta.json").exists()


def test_texts_without_cpp_leave_no_older_program(build: Build, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(copy_program(), out)
    build(copy_program(), out, assemble=False)
    assert kind_of(out) is DirectoryKind.NONE
    assert not any((out / name).exists() for name in SINGLE)


def test_the_kind_is_read_from_markers_alone(tmp_path: Path) -> None:
    assert kind_of(tmp_path) is DirectoryKind.NONE
    _put(tmp_path, "orchestration/host_orch.py", "compiled_meta.json", "next_levels/a/x")
    assert kind_of(tmp_path) is DirectoryKind.DISTRIBUTED
    _put(tmp_path, "kernel_config.json")
    assert kind_of(tmp_path) is DirectoryKind.SINGLE


def test_the_whole_hands_out_its_programs(tmp_path: Path) -> None:
    program = several_programs("first", "second")
    compiled = ir.compile(program, output_dir=tmp_path / "out", skip_ptoas=True)
    assert isinstance(compiled, CompiledOrchestrations)
    assert isinstance(compiled, ir.CompiledProgram)
    assert compiled.orchestration_names == ("first", "second")
    assert compiled["first"] is compiled.first
    assert compiled.second.output_dir == tmp_path / "out/next_levels/second"
    assert compiled["second"].orchestration_names == ("second",)
    assert compiled["second"]["second"] is compiled["second"]
    assert compiled.program is program
    assert compiled.output_dir == tmp_path / "out"
    assert compiled == str(tmp_path / "out") and hash(compiled) == hash(str(tmp_path / "out"))
    assert os.fspath(compiled) == str(compiled) == str(tmp_path / "out")
    assert (compiled.platform, compiled.artifact_key) == ("a2a3sim", None)
    compiled.validate_ir()
    with pytest.raises(
        TypeError, match=r"2 orchestrations .*called.*compiled\['first'\] or compiled\['second'\]"
    ):
        compiled()
    with pytest.raises(TypeError, match=r"2 orchestrations .*(called|run) as a whole"):
        compiled(1, config=RunConfig())
    for config in (None, RunConfig()):
        with pytest.raises(TypeError, match="run as a whole; use compiled"):
            compiled.dispatcher_for(config)
    asked = ("param_names", "output_indices", "has_return")
    for name in (*asked, "chip_callable", "runtime_name", "runtime_config"):
        with pytest.raises(TypeError, match="use compiled"):
            getattr(compiled, name)
    with pytest.raises(KeyError, match="'third'; it has first, second"):
        compiled["third"]
    with pytest.raises(AttributeError, match="'third'; it has first, second"):
        compiled.third  # noqa: B018
    with pytest.raises(KeyError, match="'third'; it has first"):
        compiled["first"]["third"]


_KILLED = """
import os, sys
from pathlib import Path
from pypto.compiler import tree

calls = 0
replace = Path.replace

def dying(self, target):
    global calls
    calls += 1
    if calls > int(sys.argv[3]):
        os._exit(9)
    return replace(self, target)

Path.replace = dying
with tree.staged(Path(sys.argv[1])) as staging:
    for path in sorted(p for p in Path(sys.argv[2]).rglob("*") if p.is_file()):
        tree.write_files(staging, {str(path.relative_to(sys.argv[2])): path.read_bytes()})
os._exit(0)
"""


def test_a_killed_compile_leaves_the_old_sidecar_or_the_new(build: Build, tmp_path: Path) -> None:
    new = tmp_path / "new"
    build(copy_program("new"), new)
    moved = len([p for p in new.rglob("*") if p.is_file()])
    seen = set()
    for moves in range(moved + 1):
        out = tmp_path / f"out{moves}"
        build(copy_program("old"), out, platform="a5sim")
        old = (out / "compiled_meta.json").read_bytes()
        result = subprocess.run(
            [sys.executable, "-c", _KILLED, str(out), str(new), str(moves)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == (0 if moves == moved else 9), result.stderr
        sidecar = (out / "compiled_meta.json").read_bytes()
        assert sidecar in (old, (new / "compiled_meta.json").read_bytes())
        seen.add(sidecar)
    assert len(seen) == 2
