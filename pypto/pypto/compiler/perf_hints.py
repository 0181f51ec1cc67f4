"""``report/perf_hints.log``: one line a hint, written where there are any.

::

    [perf_hint PH001] TileInnermostDimGranularity: tile.load has ... at <file>:<line>:<column>
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.nodes import Program
from pypto.ir.options import DiagnosticPhase
from pypto.ir.passes.pipeline import PASSES
from pypto.ir.passes.target import TargetLimits
from pypto.ir.performance import Hint, hints_of
from pypto.runtime.errors import SourceMap, locate

FILE_NAME = "report/perf_hints.log"


@dataclass(frozen=True, slots=True)
class HintOptions:
    """When hints are looked for, and which not at all."""

    phase: DiagnosticPhase = DiagnosticPhase.POST_PIPELINE
    disabled: frozenset[str] = frozenset()


class HintRecord:
    """An observer of the passes; ``files`` fills while they run."""

    def __init__(self, options: HintOptions, limits: TargetLimits) -> None:
        self.files: dict[str, str] = {}
        self._options = options
        self._limits = limits
        # Without doubles: several passes, and several blocks of a loop, may show the same.
        self._lines: dict[str, None] = {}

    def __call__(self, index: int, name: str, program: Program) -> None:
        if not self._looks_at(index):
            return
        for hint in hints_of(program, self._limits, self._options.disabled):
            self._lines[_line(hint, program.sources)] = None
        if self._lines:
            self.files[FILE_NAME] = "\n".join(self._lines) + "\n"

    def _looks_at(self, index: int) -> bool:
        match self._options.phase:
            case DiagnosticPhase.PRE_PIPELINE:
                return index == 0
            case DiagnosticPhase.POST_PASS:
                return index > 0
            case DiagnosticPhase.POST_PIPELINE:
                return index == len(PASSES)


def _line(hint: Hint, sources: SourceMap) -> str:
    span = hint.span
    place = locate(sources, span.unit, span.line, span.column)
    where = f"{span.unit}:{span.line}:{span.column + 1}" if place is None else str(place)
    return f"[perf_hint {hint.code}] {hint.name}: {hint.message} at {where}"
