"""The passes, in order."""

from __future__ import annotations

from collections.abc import Callable

from pypto.ir.nodes import Program
from pypto.ir.passes.copy_carried import copy_carried_tiles
from pypto.ir.passes.directions import upgrade_directions
from pypto.ir.passes.lower_tensors import lower_tensor_operations
from pypto.ir.passes.outline_scopes import outline_scopes
from pypto.ir.passes.place_operands import place_operands
from pypto.ir.passes.plan_memory import plan_memory
from pypto.ir.passes.target import TargetLimits

Pass = Callable[[Program, TargetLimits], Program]

PASSES: tuple[Pass, ...] = (
    lower_tensor_operations,
    outline_scopes,
    upgrade_directions,
    place_operands,
    copy_carried_tiles,
    plan_memory,
)


def run_passes(program: Program, target: TargetLimits) -> Program:
    """The lowered form of a program in frontend form.

    Raises CompileError, at the user's span, for a program that cannot be compiled.
    """
    for apply in PASSES:
        program = apply(program, target)
    return program
