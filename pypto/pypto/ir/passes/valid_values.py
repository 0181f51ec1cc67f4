"""How much of a tensor-level value is valid.

A tensor's type has no valid region, its values do: a slice of which only a part is read, and what
is computed of it. Operations carry the region through, axis by axis of the matrix that a tile
holds; padding ends it, and a reduction counts what is valid and ends it along its own axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pypto.ir.nodes import Const, For, If, Op, Operand, Stmt, TensorType, Var, While
from pypto.ir.op_spec import Role
from pypto.ir.ops import OPS
from pypto.ir.passes.rewrite import walk
from pypto.ir.passes.tensor_values import computed_values
from pypto.ir.typing_rules import rank_of

Axis = tuple[Var, int]
# For each axis of a result, the axes of operands whose valid extents it has.
Origins = tuple[tuple[Axis, ...], tuple[Axis, ...]]

BOTH = frozenset((0, 1))


def origins(op: Op) -> Origins | None:
    """Where the valid region of a result comes from; None where its operands' says nothing."""
    assert op.result is not None
    tensors = [o for o in op.operands if isinstance(o, Var) and isinstance(o.type, TensorType)]
    extents = matrix(op.result)
    spec = OPS[op.op]
    if spec.pads or spec.role is Role.FILL:
        return (), ()
    if spec.reduces is not None:
        kept = 1 - spec.reduces.axis
        rest: list[tuple[Axis, ...]] = [(), ()]
        rest[kept] = ((tensors[0], kept),)
        return rest[0], rest[1]
    if spec.role is Role.MAP:
        rows, cols = (
            tuple((v, axis) for v in tensors if matrix(v)[axis] == extents[axis]) for axis in (0, 1)
        )
        return rows, cols
    if spec.writes:
        source = tensors[1] if op.op == "tensor.assign" else tensors[0]
        return ((source, 0),), ((source, 1),)
    if op.op == "tensor.reshape":
        return _moved(matrix(tensors[0]), extents, tensors[0])
    if any(rank_of(var) > 2 for var in (*tensors, op.result)):
        return None
    if spec.role is Role.TRANSPOSE:
        return ((tensors[0], 1),), ((tensors[0], 0),)
    if spec.role is Role.PRODUCT:
        *start, left, right = tensors
        return (*((v, 0) for v in start), (left, 0)), (*((v, 1) for v in start), (right, 1))
    return None


def own_region(op: Op) -> tuple[Operand, Operand] | None:
    """The valid region that an operation gives its result whatever its operands are."""
    if op.op == "tensor.set_validshape":
        return op.operands[-2], op.operands[-1]
    if op.op == "tensor.slice" and op.attrs["has_valid"] and not op.attrs["pad"]:
        assert op.result is not None
        shape, rows, cols = op.attrs["shape"], op.operands[-2], op.operands[-1]
        assert isinstance(shape, tuple)
        column = len(shape) > 1 and shape[-1] == 1 and matrix(op.result)[1] != 1
        return (cols, rows) if column else (rows, cols)
    return None


def cuts_valid_part(op: Op, partly: Mapping[Var, frozenset[int]]) -> bool:
    """Whether this is a slice of a value that is valid in part: of it may be valid anything."""
    return op.op == "tensor.slice" and op.operands[0] in partly


def is_whole(bound: Operand | None, var: Var, axis: int) -> bool:
    """Whether a valid extent is all of an axis."""
    return isinstance(bound, Const) and bound.value == matrix(var)[axis]


def partly_valid(body: Sequence[Stmt]) -> Mapping[Var, frozenset[int]]:
    """The values that may be valid in part, with the axes of their matrices that may."""
    values = computed_values(body)
    partly: dict[Var, frozenset[int]] = {}

    def add(var: Var, axes: frozenset[int]) -> bool:
        known = partly.get(var, frozenset())
        if not axes <= known:
            partly[var] = known | axes
        return not axes <= known

    def of(value: Operand) -> frozenset[int]:
        return partly.get(value, frozenset()) if isinstance(value, Var) else frozenset()

    changed = True
    while changed:
        changed = False
        for stmt in walk(body):
            match stmt:
                case Op() if stmt.op.startswith("tensor.") and stmt.result in values:
                    assert stmt.result is not None
                    changed |= add(stmt.result, _axes_of(stmt, partly))
                case For() | While():
                    for carried, after in zip(stmt.carried, stmt.yields, strict=True):
                        axes = of(carried.init) | of(after)
                        changed |= add(carried.arg, axes) | add(carried.result, axes)
                case If():
                    arms = zip(stmt.results, stmt.then_yields, stmt.else_yields, strict=True)
                    for result, first, second in arms:
                        changed |= add(result, of(first) | of(second))
                case _:
                    pass
    return MappingProxyType({var: axes for var, axes in partly.items() if axes})


def _axes_of(op: Op, partly: Mapping[Var, frozenset[int]]) -> frozenset[int]:
    assert op.result is not None
    if cuts_valid_part(op, partly):
        return BOTH
    region = own_region(op)
    if region is not None:
        return frozenset(a for a in (0, 1) if not is_whole(region[a], op.result, a))
    come_from = origins(op)
    if come_from is not None:
        return frozenset(
            axis
            for axis, sources in enumerate(come_from)
            if any(a in partly.get(var, ()) for var, a in sources)
        )
    if op.op == "tensor.slice" and op.attrs["has_valid"]:
        return frozenset()
    return BOTH if any(o in partly for o in op.operands if isinstance(o, Var)) else frozenset()


def matrix(var: Var) -> tuple[object, object]:
    """The extents of a tensor as a matrix; leading axes that are run-time values stay apart."""
    assert isinstance(var.type, TensorType)
    *lead, last = (1, *var.type.shape)
    static = [extent for extent in lead if isinstance(extent, int)]
    if len(static) == len(lead):
        return math.prod(static), last
    return (lead[1] if len(lead) == 2 else tuple(lead)), last


def _moved(old: tuple[object, object], new: tuple[object, object], source: Var) -> Origins | None:
    if old == new:
        return ((source, 0),), ((source, 1),)
    if old == new[::-1] and 1 in old:
        return ((source, 1),), ((source, 0),)
    return None
