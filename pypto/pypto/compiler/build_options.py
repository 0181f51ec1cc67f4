"""What the options of `ir.compile` come to: one checked value that a build reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
from pypto.compiler.pass_record import dump_level
from pypto.compiler.perf_hints import HintOptions
from pypto.ir.options import (
    DiagnosticPhase,
    MemoryPlanner,
    OptimizationStrategy,
    PassDumpLevel,
    VerificationLevel,
)
from pypto.ir.performance import HINT_NAMES
from pypto.runtime import field_checks as check
from pypto.runtime.options import refuse_distributed_config
from pypto.runtime.switches import switched_on

LOCATIONS_VARIABLE = "PYPTO_EMIT_PTO_LOC"
RUNNER_VARIABLE = "PYPTO_EMIT_DEBUG_RUNNER"


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How a program is built.

    ``assemble``         run the assembler; without, the ``.pto`` texts are the result
    ``dump_passes``      how much to write of the program after each pass
    ``profiling``        write how long each pass took
    ``verification``     how often the representation is checked
    ``source_locations`` say in the ``.pto`` texts where in the user's file a line comes from
    ``debug_runner``     write ``debug/run.py``
    ``hints``            what to tell of slow code, if anything; it names the user's files
    """

    target: Target
    runtime: RuntimeKind = DEFAULT_RUNTIME
    assemble: bool = True
    dump_passes: PassDumpLevel = PassDumpLevel.NONE
    profiling: bool = False
    verification: VerificationLevel = VerificationLevel.BASIC
    source_locations: bool = True
    debug_runner: bool = False
    hints: HintOptions | None = None


def build_options(given: Mapping[str, Any], environ: Mapping[str, str]) -> BuildOptions:
    """The options of `ir.compile` by name, checked.

    Raises TypeError or ValueError naming the option that cannot be what it was given.
    """
    refuse_distributed_config(given["distributed_config"])
    check.member("strategy", given["strategy"], OptimizationStrategy)
    _optional("memory_planner", given["memory_planner"], MemoryPlanner)
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
        dump_passes=dump_level(dump),
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
        hints=hint_options(given["diagnostic_phase"], given["disabled_diagnostics"]),
    )


def hint_options(phase: DiagnosticPhase | None, disabled: Collection[str] | None) -> HintOptions:
    """Which hints two options ask for.

    Raises TypeError or ValueError where one cannot be what it was given.
    """
    _optional("diagnostic_phase", phase, DiagnosticPhase)
    names = check.names("disabled_diagnostics", disabled) or frozenset()
    unknown = sorted(names - HINT_NAMES)
    if unknown:
        raise ValueError(
            f"disabled_diagnostics: there is no diagnostic {unknown[0]!r}; use one of "
            f"{', '.join(sorted(HINT_NAMES))}"
        )
    return HintOptions(phase or DiagnosticPhase.POST_PIPELINE, names)


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
