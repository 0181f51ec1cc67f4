"""Which names there are, where they are, and what importing them loads."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pypto
import pypto.runtime
import pytest
from pypto import ir
from pypto.backend import BackendType
from pypto.ir import distributed_compiled_program
from pypto.runtime import ChipWorker, DistributedWorker, Worker, runner
from pypto.runtime.options import RunOptions

# Names without any guarantee, wherever they are.
INTERNAL = {
    "build_orch_args",
    "build_call_config",
    "RunOptions",
    "KernelCompiler",
    "compile_incore",
    "dispatcher",
    "dispatcher_for",
}


def _in_a_fresh_process(script: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def _modules() -> list[str]:
    found = pkgutil.walk_packages(pypto.__path__, "pypto.")
    return [
        module.name
        for module in found
        if not module.name.endswith("__main__") and "._sdk" not in module.name
    ]


@pytest.mark.conforms("entry.10")
def test_workers_are_workers_and_passes_are_not() -> None:
    assert issubclass(ChipWorker, Worker) and issubclass(DistributedWorker, Worker)
    assert inspect.isabstract(Worker)
    assert not issubclass(ir.PassManager, Worker)


@pytest.mark.conforms("entry.9", "entry.42")
def test_programs_for_several_chips_are_refused_by_name() -> None:
    config = ir.DistributedConfig(device_ids=[0, 1], num_sub_workers=1)
    assert (config.device_ids, config.num_sub_workers) == ((0, 1), 1)
    for refused in (
        DistributedWorker,
        ir.DistributedCompiledProgram,
        pypto.runtime.DistributedRunHandle,
        pypto.runtime.StackedDeviceTensor,
    ):
        with pytest.raises(ir.DistributedUnavailable, match=f"{refused.__name__}: only programs"):
            refused()
    for wrong in ([], [0, 0], [-1], [True]):
        with pytest.raises(ValueError, match="device_ids"):
            ir.DistributedConfig(device_ids=wrong)


@pytest.mark.conforms("entry.43")
def test_a_directory_for_several_chips_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ir.DistributedUnavailable, match="CompiledProgram"):
        ir.DistributedCompiledProgram.from_dir(
            tmp_path, platform="a2a3sim", distributed_config=ir.DistributedConfig()
        )
    (tmp_path / "orchestration").mkdir()
    (tmp_path / "orchestration/host_orch.py").write_text("")
    with pytest.raises(ir.DistributedUnavailable, match="several chips"):
        ir.CompiledProgram.from_dir(tmp_path)


@pytest.mark.conforms("entry.11")
def test_the_artifact_types_have_one_place() -> None:
    from pypto.ir import CompiledProgram, DistributedCompiledProgram, DistributedConfig
    from pypto.runtime.compiled_program import CompiledProgram as Defined

    assert CompiledProgram is Defined
    assert DistributedCompiledProgram is distributed_compiled_program.DistributedCompiledProgram
    assert DistributedConfig is distributed_compiled_program.DistributedConfig


@pytest.mark.conforms("entry.12")
@pytest.mark.parametrize(
    "order",
    [
        ", ".join(names)
        for names in itertools.permutations(
            ["pypto.compiler.entry", "pypto.ir", "pypto.runtime.debug.replay"]
        )
    ],
)
def test_compile_is_the_function_in_every_order(order: str) -> None:
    script = (
        f"import {order}\nfrom pypto import ir\nfrom pypto.ir import compile as c\n"
        "assert ir.compile is c and c.__module__ == 'pypto.compiler.entry', c"
    )
    _in_a_fresh_process(script)


@pytest.mark.conforms("entry.13")
def test_what_a_caller_can_hand_somewhere_is_exported() -> None:
    assert {"CompileOptions", "DfxOptions", "RunConfig"} <= set(pypto.runtime.__all__)
    assert "RunOptions" not in pypto.runtime.__all__
    assert not hasattr(pypto.runtime, "RunOptions")
    assert runner.RunOptions is RunOptions


@pytest.mark.conforms("entry.14")
def test_nothing_internal_is_exported() -> None:
    for name in _modules():
        exported = set(getattr(importlib.import_module(name), "__all__", ()))
        assert not exported & INTERNAL, name
        assert not {item for item in exported if item.startswith("_") and item != "__version__"}


@pytest.mark.conforms("entry.15", "entry.16")
def test_the_representation_loads_nothing_of_the_runtime() -> None:
    loaded = _in_a_fresh_process(
        "import pypto.ir, pypto.ir.param_info, pypto.ir.distributed_compiled_program, sys\n"
        "print(sorted(name for name in sys.modules if name.startswith('pypto.')))"
    )
    modules = ast.literal_eval(loaded)
    assert "pypto.ir.param_info" in modules
    above = ("pypto.runtime", "pypto.compiler", "pypto.jit", "pypto.language")
    assert not [name for name in modules if name.startswith(above)]


@pytest.mark.conforms("entry.17")
def test_marshalling_is_reached_through_the_worker() -> None:
    for name in ("run", "register"):
        assert inspect.isfunction(getattr(ChipWorker, name))
    for name in ("chip_callable", "runtime_name", "runtime_config"):
        assert isinstance(getattr(ir.CompiledProgram, name), property)
    for name in ("build_orch_args", "build_call_config"):
        assert not hasattr(ir.CompiledProgram, name)


def test_every_public_name_is_there() -> None:
    for module in (ir, pypto.runtime):
        for name in module.__all__:
            assert getattr(module, name) is not None
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            module.nothing  # noqa: B018


# What programs that were written for another implementation import.
EXPORTS = """
    run benchmark compile_program execute_compiled execute_distributed_compiled
    configure_log log_level ensure_pto_isa_root pto_isa_include_dir BenchmarkStats
    TraceInvocation TraceSpan ChipWorker DeviceTensor StackedDeviceTensor DistributedWorker
    DistributedRunHandle RegistrationHandle RunConfig RunResult ScalarSpec TensorSpec Worker
"""
REPRESENTATION = """
    Program Function PassManager PassContext OptimizationStrategy PassDumpLevel serialize
    deserialize assert_structural_equal python_print CompiledProgram
    DistributedCompiledProgram compile
"""


def test_the_promised_names_are_exported() -> None:
    assert set(EXPORTS.split()) - set(pypto.runtime.__all__) == set()
    assert set(REPRESENTATION.split()) - set(ir.__all__) == set()


def test_compile_has_the_promised_parameters_with_their_defaults() -> None:
    given = inspect.signature(ir.compile).parameters.values()
    assert {p.name: p.default for p in given if p.name != "program"} == {
        "output_dir": None,
        "strategy": ir.OptimizationStrategy.Default,
        "dump_passes": True,
        "backend_type": BackendType.Ascend910B,
        "skip_ptoas": False,
        "verification_level": None,
        "diagnostic_phase": None,
        "disabled_diagnostics": None,
        "memory_planner": None,
        "enable_pypto_l0c_double_buffer": None,
        "profiling": False,
        "platform": None,
        "distributed_config": None,
        "analyze_auto_scopes_for_deps": False,
        "emit_source_loc": None,
        "dump_ptoas_passes": False,
        "runtime": None,
    }


@pytest.mark.parametrize(
    "script",
    [
        "from pypto.runtime.debug import replay\nassert callable(replay)",
        "import pypto.runtime.debug.replay\nfrom pypto.runtime.debug import replay\n"
        "assert callable(replay) and replay.__name__ == 'pypto.runtime.debug.replay'",
        "from pypto.runtime.debug import invalidate_binary_cache, replay\n"
        "from pypto.runtime.debug import rebuild_kernel_cpp_from_pto\nassert callable(replay)",
    ],
)
def test_replay_can_be_called_in_any_import_order(script: str) -> None:
    _in_a_fresh_process(script)


def test_the_log_has_six_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    from pypto.runtime import configure_log, log_level

    monkeypatch.delenv("PYPTO_RUNTIME_LOG", raising=False)
    assert log_level() is None
    monkeypatch.setenv("PYPTO_RUNTIME_LOG", "timing")
    assert log_level() == "timing"
    configure_log("error")
    try:
        assert log_level() == "error"
        with pytest.raises(ValueError, match="debug, info, timing, warn, error, null"):
            configure_log("loud")
    finally:
        configure_log(None)
    monkeypatch.setenv("PYPTO_RUNTIME_LOG", "verbose")
    with pytest.raises(ValueError, match="PYPTO_RUNTIME_LOG is 'verbose'"):
        log_level()


def test_the_instruction_set_is_where_kernels_include_it() -> None:
    include = pypto.runtime.pto_isa_include_dir()
    assert include == pypto.runtime.ensure_pto_isa_root() / "include"
    assert (include / "pto/pto-inst.hpp").is_file()


def test_the_instruction_set_of_a_wrong_root_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path))
    with pytest.raises(Exception, match=r"has no include/.*PTO_ISA_ROOT"):
        pypto.runtime.ensure_pto_isa_root()


def test_a_result_has_an_error_exactly_if_it_failed() -> None:
    assert pypto.runtime.RunResult(True, "a", execution_time=0.5).error is None
    with pytest.raises(ValueError, match="did not pass"):
        pypto.runtime.RunResult(True, "a", "broken")
    with pytest.raises(ValueError, match="did not pass"):
        pypto.runtime.RunResult(False, "a")
