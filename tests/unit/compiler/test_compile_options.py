"""Every option of ir.compile does what it says, or is refused by name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from copy_programs import copy_program
from pypto import ir
from pypto.backend import BackendType, ExecutionMode, RuntimeKind
from pypto.compiler import BuiltSources
from pypto.compiler.build_options import build_options
from pypto.ir.errors import CompileError
from pypto.ir.nodes import Function
from pypto.runtime import CompileOptions, RunConfig
from pypto.runtime.errors import ArtifactError

Build = Callable[..., BuiltSources]


def _options(environ: dict[str, str] | None = None, **given: Any) -> Any:
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(ir.compile).parameters.items()
        if name != "program"
    }
    return build_options({**defaults, **given}, environ or {})


@pytest.mark.conforms("entry.5")
def test_options_are_named(tmp_path: Path) -> None:
    parameters = list(inspect.signature(ir.compile).parameters.values())
    assert parameters[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {p.kind for p in parameters[1:]} == {inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(TypeError, match="positional"):
        ir.compile(copy_program(), tmp_path)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("strategy", "Default"),
        ("dump_passes", 1),
        ("dump_ptoas_passes", 0),
        ("skip_ptoas", 1),
        ("verification_level", "basic"),
        ("profiling", "yes"),
        ("diagnostic_phase", "pre"),
        ("disabled_diagnostics", "PH001"),
        ("disabled_diagnostics", [1]),
        ("analyze_auto_scopes_for_deps", None),
        ("memory_planner", "PYPTO"),
        ("enable_pypto_l0c_double_buffer", 2),
        ("emit_source_loc", "no"),
        ("backend_type", "Ascend950"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused_by_name(name: str, value: object) -> None:
    said = "arch" if name == "backend_type" else name
    with pytest.raises(TypeError, match=said):
        _options(**{name: value})


def test_none_is_a_default() -> None:
    options = _options()
    assert options == _options(verification_level=None, emit_source_loc=None, runtime=None)
    assert (options.assemble, options.source_locations, options.debug_runner) == (True, True, True)
    assert options.verification is ir.VerificationLevel.BASIC
    assert options.runtime is RuntimeKind.TENSORMAP_AND_RINGBUFFER
    assert _options(runtime="host_build_graph").runtime is RuntimeKind.HOST_BUILD_GRAPH


@pytest.mark.conforms("entry.41")
def test_the_backend_counts_only_without_a_platform() -> None:
    alone = _options(backend_type=BackendType.Ascend950)
    assert alone.target.token == "a5sim"
    beside = _options(backend_type=BackendType.Ascend950, platform="a2a3")
    assert beside.target.token == "a2a3"
    assert _options().target.token == "a2a3sim"


@pytest.mark.conforms("entry.31")
def test_compile_options_stand_alone() -> None:
    options = CompileOptions(platform="a5", profiling=True, output_dir="out")
    chosen = _options(**options.as_compile_kwargs())
    assert chosen.target.token == "a5" and chosen.profiling
    names = {field.name for field in dataclasses.fields(CompileOptions)}
    assert names <= set(inspect.signature(ir.compile).parameters)
    assert {"output_dir", "profiling"} <= names
    assert not names & {"save_kernels_dir", "compile_profiling", "backend_type"}


def test_every_option_of_a_configuration_is_one_of_compile() -> None:
    known = set(inspect.signature(ir.compile).parameters)
    assert set(RunConfig().compile_kwargs()) <= known


@pytest.mark.parametrize("value", ["0", "false", "No", "FALSE"])
def test_the_environment_turns_the_script_off(value: str) -> None:
    assert not _options({"PYPTO_EMIT_DEBUG_RUNNER": value}).debug_runner
    assert _options({"PYPTO_EMIT_DEBUG_RUNNER": "1"}).debug_runner


def test_the_environment_leaves_locations_out_unless_the_option_says_otherwise() -> None:
    off = {"PYPTO_EMIT_PTO_LOC": "0"}
    assert not _options(off).source_locations
    assert _options(off, emit_source_loc=True).source_locations
    assert not _options(emit_source_loc=False).source_locations


def test_locations_are_left_out_of_the_texts(build: Build, tmp_path: Path) -> None:
    build(copy_program(), tmp_path / "with")
    build(copy_program(), tmp_path / "without", source_locations=False)
    located = (tmp_path / "with/ptoas/copy_rows.pto").read_text()
    plain = (tmp_path / "without/ptoas/copy_rows.pto").read_text()
    assert located.count(' loc("tests:copy":2:4)') >= 2
    assert "loc(" not in plain
    assert located.replace(' loc("tests:copy":2:4)', "") == plain


def test_without_the_assembler_kernels_stay_texts(build: Build, tmp_path: Path) -> None:
    built = build(copy_program(), tmp_path / "out", assemble=False, debug_runner=True)
    names = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*")}
    assert names == {"kernels/aiv/copy_rows.pto", "orchestration/copy.cpp"}
    assert built.config.orchestration.name == "copy"


def test_a_program_without_the_assembler_says_why_it_cannot_run(tmp_path: Path) -> None:
    compiled = ir.compile(
        copy_program(), output_dir=tmp_path / "out", skip_ptoas=True, dump_passes=False
    )
    assert compiled.param_names == ("x", "out")
    for use in (compiled.complete, compiled.load, lambda: compiled(1, 2)):
        with pytest.raises(ArtifactError, match="skip_ptoas=True"):
            use()
    with pytest.raises(FileNotFoundError, match=r"compiled_meta\.json"):
        ir.CompiledProgram.from_dir(tmp_path / "out")


def test_the_checks_of_the_representation_can_be_left_out(tmp_path: Path) -> None:
    program = copy_program()
    function = program.functions["copy"]
    twice = dataclasses.replace(function, body=(function.body[0], *function.body))
    functions: MappingProxyType[str, Function] = MappingProxyType({"copy": twice})
    malformed = dataclasses.replace(program, functions=functions)
    with pytest.raises(ir.VerifyError):
        ir.compile(malformed, output_dir=tmp_path / "a", skip_ptoas=True)
    try:
        ir.compile(
            malformed,
            output_dir=tmp_path / "b",
            skip_ptoas=True,
            verification_level=ir.VerificationLevel.NONE,
        )
    except CompileError as error:
        assert not isinstance(error, ir.VerifyError)  # noqa: PT017 - it may also go through


def test_validate_ir_checks_what_is_at_hand(tmp_path: Path) -> None:
    compiled = ir.compile(copy_program(), output_dir=tmp_path / "out", skip_ptoas=True)
    compiled.validate_ir()
    function = copy_program().functions["copy"]
    twice = dataclasses.replace(function, body=(function.body[0], *function.body))
    compiled.program = dataclasses.replace(
        copy_program(), functions=MappingProxyType({"copy": twice})
    )
    with pytest.raises(ir.VerifyError):
        compiled.validate_ir()


@pytest.mark.conforms("entry.38")
@pytest.mark.parametrize(("onboard", "simulated"), [("a2a3", "a2a3sim"), ("a5", "a5sim")])
def test_code_generation_reads_the_architecture_alone(
    build: Build, tmp_path: Path, onboard: str, simulated: str
) -> None:
    trees = []
    for platform in (onboard, simulated):
        directory = tmp_path / platform
        build(copy_program(), directory, platform)
        sources = [p for p in directory.rglob("*") if p.suffix in (".pto", ".cpp", ".py")]
        trees.append({str(p.relative_to(directory)): p.read_bytes() for p in sources})
    assert trees[0] == trees[1]
    assert len(trees[0]) == 5
    assert RunConfig(execution_mode=ExecutionMode.ONBOARD).platform == "a2a3"
