"""RunConfig: one immutable value that drives compilation and dispatch.

Every field belongs to exactly one group of `FIELD_GROUPS`; a test pins that the groups are total.
The target is two fields, ``arch`` and ``execution_mode``. ``platform`` is their serialisation and
``backend_type`` the compiler's name of ``arch``; neither is stored, so a configuration whose token
and architecture disagree cannot be made.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pypto.backend import BackendType, ExecutionMode, Target, target_for, target_of
from pypto.ir.options import DiagnosticPhase, MemoryPlanner, OptimizationStrategy, PassDumpLevel
from pypto.runtime import field_checks as check
from pypto.runtime.options import CompileOptions, DfxOptions, RingSize, RunOptions
from pypto_store import CacheConfig

# Who reads a field. A field that several read (the target) stands in a group of its own.
FIELD_GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "target": ("arch", "execution_mode"),
        "compile": (
            "strategy",
            "dump_passes",
            "dump_ptoas_passes",
            "compile_profiling",
            "diagnostic_phase",
            "disabled_diagnostics",
            "analyze_auto_scopes_for_deps",
            "save_kernels_dir",
            "memory_planner",
            "distributed_config",
        ),
        "run": (
            "device_id",
            "aicpu_thread_num",
            "ring_task_window",
            "ring_heap",
            "ring_dep_pool",
        ),
        "dfx": (
            "enable_chip_swimlane",
            "enable_dump_args",
            "enable_pmu",
            "enable_dep_gen",
            "enable_scope_stats",
        ),
        "harness": ("rtol", "atol", "golden_data_dir", "save_kernels", "codegen_only"),
        "jit_policy": ("cache_config",),
    }
)

_RING_DEPTHS = 4
_INT32_MAX = 2**31 - 1
_FULL_SWIMLANE = 4


# No slots: the class that slots=True makes answers an assignment to a property with a TypeError
# about super() instead of the error of a frozen class.
@dataclass(init=False, frozen=True)
class RunConfig:
    """How to compile a program and how to run it.

    Target: ``arch`` and ``execution_mode``, or ``backend_type=`` for ``arch``; ``platform="a5"``
    sets both, wins over them and is deprecated. The target decides code generation (architecture
    only), assembly and the worker.

    Tolerances, ``golden_data_dir``, ``save_kernels`` and ``codegen_only`` are read by test
    harnesses. ``cache_config`` replaces the JIT's cache policy for requests with this object.
    Any diagnostic of a dispatch turns ``save_kernels`` on, because it writes beside the kernels.

    Raises ValueError or TypeError naming the field that cannot be what it was given.
    """

    arch: BackendType
    execution_mode: ExecutionMode
    device_id: int
    rtol: float
    atol: float
    strategy: OptimizationStrategy
    dump_passes: bool | PassDumpLevel
    save_kernels: bool
    save_kernels_dir: str | Path | None
    codegen_only: bool
    enable_chip_swimlane: int
    enable_dump_args: int
    enable_pmu: int
    enable_dep_gen: bool
    enable_scope_stats: bool
    compile_profiling: bool
    diagnostic_phase: DiagnosticPhase | None
    disabled_diagnostics: frozenset[str] | None
    golden_data_dir: str | Path | None
    aicpu_thread_num: int | None
    ring_task_window: RingSize | None
    ring_heap: RingSize | None
    ring_dep_pool: RingSize | None
    distributed_config: object | None
    analyze_auto_scopes_for_deps: bool
    memory_planner: MemoryPlanner | None
    dump_ptoas_passes: bool
    cache_config: CacheConfig | None

    # Written by hand: with platform as an InitVar, `replace(config, arch=...)` would hand the old
    # token to the new object and undo the change.
    def __init__(
        self,
        *,
        arch: BackendType | None = None,
        execution_mode: ExecutionMode | None = None,
        platform: str | None = None,
        backend_type: BackendType | None = None,
        device_id: int = 0,
        rtol: float = 1e-5,
        atol: float = 1e-5,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        dump_passes: bool | PassDumpLevel = False,
        save_kernels: bool = False,
        save_kernels_dir: str | Path | None = None,
        codegen_only: bool = False,
        enable_chip_swimlane: bool | int = 0,
        enable_dump_args: bool | int = 0,
        enable_pmu: bool | int = 0,
        enable_dep_gen: bool = False,
        enable_scope_stats: bool = False,
        compile_profiling: bool = False,
        diagnostic_phase: DiagnosticPhase | None = None,
        disabled_diagnostics: Iterable[str] | None = None,
        golden_data_dir: str | Path | None = None,
        aicpu_thread_num: int | None = None,
        ring_task_window: int | Sequence[int] | None = None,
        ring_heap: int | Sequence[int] | None = None,
        ring_dep_pool: int | Sequence[int] | None = None,
        distributed_config: object | None = None,
        analyze_auto_scopes_for_deps: bool = False,
        memory_planner: MemoryPlanner | None = None,
        dump_ptoas_passes: bool = False,
        cache_config: CacheConfig | None = None,
        enable_l2_swimlane: bool | int | None = None,
    ) -> None:
        if enable_l2_swimlane is not None:
            _deprecated("RunConfig(enable_l2_swimlane=)", "enable_chip_swimlane=")
            enable_chip_swimlane = enable_l2_swimlane
        target = _target(arch, execution_mode, platform, backend_type)
        dfx = DfxOptions(
            enable_chip_swimlane=_swimlane_level(enable_chip_swimlane),
            enable_dump_args=check.level("enable_dump_args", enable_dump_args),
            enable_pmu=check.level("enable_pmu", enable_pmu),
            enable_dep_gen=check.flag("enable_dep_gen", enable_dep_gen),
            enable_scope_stats=check.flag("enable_scope_stats", enable_scope_stats),
        )
        values: dict[str, object] = {
            "arch": target.backend_type,
            "execution_mode": target.mode,
            "device_id": check.integer("device_id", device_id, minimum=0),
            "rtol": check.tolerance("rtol", rtol),
            "atol": check.tolerance("atol", atol),
            "strategy": check.member("strategy", strategy, OptimizationStrategy),
            "dump_passes": (
                dump_passes
                if isinstance(dump_passes, PassDumpLevel)
                else check.flag("dump_passes", dump_passes)
            ),
            "save_kernels": check.flag("save_kernels", save_kernels) or dfx.any_enabled(),
            "save_kernels_dir": check.directory("save_kernels_dir", save_kernels_dir),
            "codegen_only": check.flag("codegen_only", codegen_only),
            "enable_chip_swimlane": dfx.enable_chip_swimlane,
            "enable_dump_args": dfx.enable_dump_args,
            "enable_pmu": dfx.enable_pmu,
            "enable_dep_gen": dfx.enable_dep_gen,
            "enable_scope_stats": dfx.enable_scope_stats,
            "compile_profiling": check.flag("compile_profiling", compile_profiling),
            "diagnostic_phase": (
                None
                if diagnostic_phase is None
                else check.member("diagnostic_phase", diagnostic_phase, DiagnosticPhase)
            ),
            "disabled_diagnostics": check.names("disabled_diagnostics", disabled_diagnostics),
            "golden_data_dir": check.directory("golden_data_dir", golden_data_dir),
            "aicpu_thread_num": _thread_count(aicpu_thread_num),
            "ring_task_window": _ring("ring_task_window", ring_task_window),
            "ring_heap": _ring("ring_heap", ring_heap),
            "ring_dep_pool": _ring("ring_dep_pool", ring_dep_pool),
            "distributed_config": distributed_config,
            "analyze_auto_scopes_for_deps": check.flag(
                "analyze_auto_scopes_for_deps", analyze_auto_scopes_for_deps
            ),
            "memory_planner": (
                None
                if memory_planner is None
                else check.member("memory_planner", memory_planner, MemoryPlanner)
            ),
            "dump_ptoas_passes": check.flag("dump_ptoas_passes", dump_ptoas_passes),
            "cache_config": _policy(cache_config),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def platform(self) -> str:
        """The target's token, such as ``"a2a3sim"``: what sidecars and workers carry."""
        return target_for(self.arch, self.execution_mode).token

    @property
    def backend_type(self) -> BackendType:
        """The architecture under the compiler's name."""
        return self.arch

    def any_dfx_enabled(self) -> bool:
        """Whether a dispatch with this configuration records diagnostics."""
        return self.dfx_options().any_enabled()

    def compile_options(self) -> CompileOptions:
        """The part that `ir.compile` reads."""
        return CompileOptions(
            platform=self.platform,
            strategy=self.strategy,
            dump_passes=self.dump_passes,
            dump_ptoas_passes=self.dump_ptoas_passes,
            profiling=self.compile_profiling,
            diagnostic_phase=self.diagnostic_phase,
            disabled_diagnostics=self.disabled_diagnostics,
            analyze_auto_scopes_for_deps=self.analyze_auto_scopes_for_deps,
            output_dir=self.save_kernels_dir,
            memory_planner=self.memory_planner,
            distributed_config=self.distributed_config,
        )

    def run_options(self) -> RunOptions:
        """The part that a dispatch reads."""
        return RunOptions(
            platform=self.platform,
            device_id=self.device_id,
            aicpu_thread_num=self.aicpu_thread_num,
            ring_task_window=self.ring_task_window,
            ring_heap=self.ring_heap,
            ring_dep_pool=self.ring_dep_pool,
            dfx=self.dfx_options(),
        )

    def dfx_options(self) -> DfxOptions:
        """The part that a dispatch's diagnostics read."""
        return DfxOptions(
            enable_chip_swimlane=self.enable_chip_swimlane,
            enable_dump_args=self.enable_dump_args,
            enable_pmu=self.enable_pmu,
            enable_dep_gen=self.enable_dep_gen,
            enable_scope_stats=self.enable_scope_stats,
        )

    def compile_kwargs(self) -> dict[str, Any]:
        """`compile_options` as keyword arguments of `ir.compile`; the only mapping onto them."""
        return self.compile_options().as_compile_kwargs()


def _target(
    arch: BackendType | None,
    mode: ExecutionMode | None,
    platform: str | None,
    backend_type: BackendType | None,
) -> Target:
    if platform is not None:
        _deprecated("RunConfig(platform=)", "arch=BackendType.…, execution_mode=ExecutionMode.…")
        return target_of(platform)
    if arch is not None and backend_type is not None and arch is not backend_type:
        raise ValueError(
            f"arch={arch} and backend_type={backend_type} disagree; they are two names of one "
            "choice, so pass only arch= (to dataclasses.replace too)"
        )
    chosen = arch if arch is not None else backend_type
    return target_for(
        BackendType.Ascend910B if chosen is None else chosen,
        ExecutionMode.SIM if mode is None else mode,
    )


def _deprecated(spelling: str, instead: str) -> None:
    # The frame to blame is the first outside this file and dataclasses.replace.
    own = {__name__, "dataclasses", "copy"}
    level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__") in own:
        frame = frame.f_back
        level += 1
    warnings.warn(f"{spelling} is deprecated; use {instead}", DeprecationWarning, stacklevel=level)


def _swimlane_level(value: object) -> int:
    if value is True:
        return _FULL_SWIMLANE
    chosen = check.level("enable_chip_swimlane", value)
    if chosen > _FULL_SWIMLANE:
        raise ValueError(f"enable_chip_swimlane must be 0 to {_FULL_SWIMLANE}, got {chosen}")
    return chosen


def _thread_count(value: object) -> int | None:
    if value is None:
        return None
    count = check.integer("aicpu_thread_num", value, minimum=0)
    if count == 1:
        raise ValueError("aicpu_thread_num must be 0 (automatic) or at least 2, got 1")
    return count


# Per ring: the smallest size, the largest, whether only powers of two are sizes, and in words.
_RING_RULES: Mapping[str, tuple[int, int | None, bool, str]] = MappingProxyType(
    {
        "ring_task_window": (4, None, True, "a power of two, at least 4"),
        "ring_heap": (1024, None, True, "a power of two, at least 1024"),
        "ring_dep_pool": (4, _INT32_MAX, False, f"from 4 to {_INT32_MAX}"),
    }
)


def _ring(name: str, value: object) -> RingSize | None:
    if value is None:
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        sizes = tuple(_ring_size(name, item) for item in value)
        if len(sizes) != _RING_DEPTHS:
            raise ValueError(
                f"{name} must be one size or {_RING_DEPTHS}, one a scope depth; got {len(sizes)}"
            )
        return sizes[0], sizes[1], sizes[2], sizes[3]
    return _ring_size(name, value)


def _ring_size(name: str, value: object) -> int:
    smallest, largest, power_of_two, words = _RING_RULES[name]
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < smallest
        or (largest is not None and value > largest)
        or (power_of_two and value & (value - 1))
    ):
        raise ValueError(f"{name} must be {words}; got {value!r}")
    return value


def _policy(value: object) -> CacheConfig | None:
    if value is not None and not isinstance(value, CacheConfig):
        raise TypeError(f"cache_config must be a pypto.CacheConfig or None, got {value!r}")
    return value
