"""What a tensor-level operation does to the axes of its operands.

A tensor is seen as a matrix here, as one tile would hold it: one axis becomes a row, three or
more collapse onto the last.
"""

from __future__ import annotations

import math

from pypto.ir.nodes import Dim, Op, Operand, TensorType, Var
from pypto.ir.op_spec import Reduction, Role
from pypto.ir.ops import OPS
from pypto.ir.passes.tensor_values import region_of
from pypto.ir.typing_rules import rank_of

Extents = tuple[Dim, Dim]


def matrix_of(var: Operand) -> Extents | None:
    """The extents of a tensor as a matrix; None where leading axes are run-time values."""
    assert isinstance(var, Var) and isinstance(var.type, TensorType)
    shape = var.type.shape
    if len(shape) == 1:
        return 1, shape[0]
    if len(shape) == 2:
        return shape[0], shape[1]
    lead = [extent for extent in shape[:-1] if isinstance(extent, int)]
    return (math.prod(lead), shape[-1]) if len(lead) == len(shape) - 1 else None


def tensors_of(op: Op) -> tuple[Var, ...]:
    """The operands that are tensors."""
    return tuple(o for o in op.operands if isinstance(o, Var) and isinstance(o.type, TensorType))


def role_of(op: Op) -> Role:
    """What an operation of ``tensor.*`` does, as far as blocks of it can be made."""
    role = OPS[op.op].role
    matrices = [matrix_of(var) for var in tensors_of(op)]
    assert op.result is not None
    result = matrix_of(op.result)
    if result is None or None in matrices:
        return Role.WHOLE
    match role:
        case Role.MAP:
            fits = all(broadcasts(m, result) for m in matrices if m is not None)
        case Role.READ:
            fits = not op.attrs["has_valid"] and region_of(op) == result
        case Role.WRITE if op.op == "tensor.assemble":
            fits = region_of(op) == matrices[-1]
        case Role.PRODUCT | Role.TRANSPOSE:
            # A condition says at run time whether a product is added.
            fits = len(tensors_of(op)) == len(op.operands) and all(
                rank_of(var) == 2 for var in (*tensors_of(op), op.result)
            )
        case _:
            fits = True
    return role if fits else Role.WHOLE


def reduction_of(op: Op) -> Reduction | None:
    """What an operation does to the axis that it makes 1, if it does."""
    return OPS[op.op].reduces


def domain_of(op: Op) -> Extents:
    """The extents that a loop over an operation runs through; none for what is only read."""
    if role_of(op) is Role.READ:
        return (1, 1)
    source = tensors_of(op)[-1] if role_of(op) is Role.WRITE else op.result
    if reduction_of(op) is not None:
        source = tensors_of(op)[0]
    assert source is not None
    extents = matrix_of(source)
    assert extents is not None
    return extents


def joined(first: Extents, second: Extents) -> Extents | None:
    """The extents that both broadcast to, if there are any."""
    rows, cols = (
        a if a == b or b == 1 else b if a == 1 else None for a, b in zip(first, second, strict=True)
    )
    return None if rows is None or cols is None else (rows, cols)


def broadcasts(part: Extents, whole: Extents) -> bool:
    """Whether a matrix is as large as another one, or 1, along each axis."""
    return all(a in (b, 1) for a, b in zip(part, whole, strict=True))
