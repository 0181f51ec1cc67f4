"""The passes as an object, for those who want to run them without a compiler around."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.backend import BackendType
from pypto.ir.nodes import Program
from pypto.ir.options import OptimizationStrategy, VerificationLevel
from pypto.ir.passes.pipeline import PASSES, run_passes
from pypto.ir.passes.target import limits_of


@dataclass(frozen=True, slots=True)
class PassManager:
    """The passes of one strategy for one architecture."""

    strategy: OptimizationStrategy
    backend_type: BackendType

    @classmethod
    def get_strategy(
        cls,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        *,
        backend_type: BackendType = BackendType.Ascend910B,
    ) -> PassManager:
        """The passes of ``strategy``. Raises TypeError for what is no strategy."""
        if not isinstance(strategy, OptimizationStrategy):
            raise TypeError(
                "PassManager.get_strategy takes an ir.OptimizationStrategy such as "
                f"ir.OptimizationStrategy.Default, not {strategy!r}"
            )
        return cls(strategy, backend_type)

    @property
    def pass_names(self) -> tuple[str, ...]:
        """The names of the passes, in the order in which they run."""
        return tuple(item.__name__ for item in PASSES)

    def run_passes(
        self, program: Program, *, verification_level: VerificationLevel = VerificationLevel.BASIC
    ) -> Program:
        """The lowered form of a program in frontend form.

        Raises CompileError for a program that cannot be compiled.
        """
        if not isinstance(program, Program):
            raise TypeError(f"run_passes takes an ir.Program, not {type(program).__name__}")
        return run_passes(program, limits_of(self.backend_type), verification=verification_level)
