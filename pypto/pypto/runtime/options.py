"""The three vocabularies under RunConfig: what compilation, a dispatch and its diagnostics read.

They are plain values. `RunConfig` validates and normalises each field once and builds them from
fields that are already good, so they only hold what they are given.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pypto.ir.options import DiagnosticPhase, MemoryPlanner, OptimizationStrategy, PassDumpLevel

RingSize = int | tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """What `ir.compile` reads, under the names that it gives its parameters.

    ``platform`` is a platform token. ``output_dir`` is the directory to write to, or ``None`` for
    a fresh one. ``disabled_diagnostics`` are names of diagnostics to leave out.
    """

    platform: str = "a2a3sim"
    strategy: OptimizationStrategy = OptimizationStrategy.Default
    dump_passes: bool | PassDumpLevel = False
    dump_ptoas_passes: bool = False
    profiling: bool = False
    diagnostic_phase: DiagnosticPhase | None = None
    disabled_diagnostics: frozenset[str] | None = None
    analyze_auto_scopes_for_deps: bool = False
    output_dir: str | Path | None = None
    memory_planner: MemoryPlanner | None = None
    distributed_config: object | None = None

    def as_compile_kwargs(self) -> dict[str, Any]:
        """The options as keyword arguments of `ir.compile`."""
        return {option.name: getattr(self, option.name) for option in fields(self)}


def refuse_distributed_config(distributed_config: object | None) -> None:
    """ValueError for any distributed settings: nothing compiles for several chips yet."""
    if distributed_config is not None:
        raise ValueError("distributed_config: only programs for a single chip can be compiled")


@dataclass(frozen=True, slots=True, kw_only=True)
class DfxOptions:
    """Diagnostics of a dispatch; a level of 0 is off."""

    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False

    def as_kwargs(self) -> dict[str, Any]:
        """The options as keyword arguments of `RunConfig`."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    def any_enabled(self) -> bool:
        """Whether a dispatch with these options records anything."""
        return bool(
            self.enable_chip_swimlane
            or self.enable_dump_args
            or self.enable_pmu
            or self.enable_dep_gen
            or self.enable_scope_stats
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What one dispatch reads. Internal: every public entry point takes a `RunConfig`.

    ``aicpu_thread_num`` of ``None`` or 0 leaves the number of scheduler threads to the runtime.
    A ring size is one number for all four scope depths or one for each.
    """

    platform: str
    device_id: int = 0
    aicpu_thread_num: int | None = None
    ring_task_window: RingSize | None = None
    ring_heap: RingSize | None = None
    ring_dep_pool: RingSize | None = None
    dfx: DfxOptions = field(default_factory=DfxOptions)
