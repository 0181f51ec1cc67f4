"""Whether a piece of a core's program fits into on-chip memory: memory planning is asked."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from pypto.ir.nodes import Function, FunctionKind, Program, Span, Stmt
from pypto.ir.passes.copy_carried import copy_carried_tiles
from pypto.ir.passes.place_operands import place_operands
from pypto.ir.passes.plan_memory import CapacityError, plan_memory
from pypto.ir.passes.target import TargetLimits

_NAME = "trial"


def fits(body: Sequence[Stmt], target: TargetLimits) -> bool:
    """Whether the tiles of a body of tile operations find their places."""
    function = Function(
        name=_NAME,
        func_type=FunctionKind.INCORE,
        params=(),
        body=tuple(body),
        return_types=(),
        span=Span("", 0, 0),
    )
    program = Program(_NAME, MappingProxyType({_NAME: function}), _NAME)
    placed = copy_carried_tiles(place_operands(program, target), target)
    try:
        plan_memory(placed, target)
    except CapacityError:
        return False
    return True
