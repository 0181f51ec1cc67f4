"""What the options of `ir.compile` come to: one checked value that a build reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pypto.backend import (
    DEFAULT_RUNTIME,
    BackendType,
    ExecutionMode,
    RuntimeKind,
    Target,
    target_for,
    target_of,
)
from pypto.compiler.pass_record import wants_dump
from pypto.ir.options import (
    DiagnosticPhase,
    MemoryPlanner,
    OptimizationStrategy,
    PassDumpLevel,
    VerificationLevel,
)
from pypto.runtime import field_checks as check
from pypto.runtime.options import refuse_distributed_config

LOCATIONS_VARIABLE = "PYPTO_EMIT_PTO_LOC"
RUNNER_VARIABLE = "PYPTO_EMIT_DEBUG_RUNNER"

_OFF = frozenset({"0", "false", "no"})


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How a program is built.

    ``assemble``         run the assembler; without, the ``.pto`` texts are the result
    ``dump_passes``      write the program after each pass
    ``profiling``        write how long each pass took
    ``verification``     how often the representation is checked
    ``source_locations`` say in the ``.pto`` texts where in the user's file a line comes from
    ``debug_runner``     write ``debug/run.py``
    """

    target: Target
    runtime: RuntimeKind = DEFAULT_RUNTIME
    assemble: bool = True
    dump_passes: bool = False
    profiling: bool = False
    verification: VerificationLevel = VerificationLevel.BASIC
    source_locations: bool = True
    debug_runner: bool = False


def switched_on(environ: Mapping[str, str], variable: str) -> bool:
    """Whether a switch of the environment is not turned off; 0, false and no do, in any case."""
    return environ.get(variable, "").lower() not in _OFF


def build_options(given: Mapping[str, Any], environ: Mapping[str, str]) -> BuildOptions:
    """The options of `ir.compile` by name, checked.

    Raises TypeError or ValueError naming the option that cannot be what it was given.
    """
    refuse_distributed_config(given["distributed_config"])
    check.member("strategy", given["strategy"], OptimizationStrategy)
    _optional("diagnostic_phase", given["diagnostic_phase"], DiagnosticPhase)
    _optional("memory_planner", given["memory_planner"], MemoryPlanner)
    check.names("disabled_diagnostics", given["disabled_diagnostics"])
    for name in ("dump_ptoas_passes", "analyze_auto_scopes_for_deps"):
        check.flag(name, given[name])
    _optional_flag("enable_pypto_l0c_double_buffer", given["enable_pypto_l0c_double_buffer"])
    dump = given["dump_passes"]
    if not isinstance(dump, PassDumpLevel):
        check.flag("dump_passes", dump)
    locations = _optional_flag("emit_source_loc", given["emit_source_loc"])
    level = given["verification_level"]
    return BuildOptions(
        target=_target(given["platform"], given["backend_type"]),
        runtime=_runtime(given["runtime"]),
        assemble=not check.flag("skip_ptoas", given["skip_ptoas"]),
        dump_passes=wants_dump(dump),
        profiling=check.flag("profiling", given["profiling"]),
        verification=(
            VerificationLevel.BASIC
            if level is None
            else check.member("verification_level", level, VerificationLevel)
        ),
        source_locations=(
            switched_on(environ, LOCATIONS_VARIABLE) if locations is None else locations
        ),
        debug_runner=switched_on(environ, RUNNER_VARIABLE),
    )


def _optional(name: str, value: object, enumeration: Any) -> None:
    if value is not None:
        check.member(name, value, enumeration)


def _optional_flag(name: str, value: object) -> bool | None:
    return None if value is None else check.flag(name, value)


def _target(platform: str | None, backend_type: BackendType) -> Target:
    if platform is not None:
        return target_of(platform)
    return target_for(backend_type, ExecutionMode.SIM)


def _runtime(runtime: RuntimeKind | str | None) -> RuntimeKind:
    if runtime is None:
        return DEFAULT_RUNTIME
    if isinstance(runtime, RuntimeKind):
        return runtime
    try:
        return RuntimeKind(runtime)
    except ValueError:
        names = ", ".join(kind.value for kind in RuntimeKind)
        raise ValueError(f"runtime must be one of {names}, got {runtime!r}") from None
