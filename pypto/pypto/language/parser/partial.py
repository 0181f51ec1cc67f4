"""Parts of tensors of which less is valid than their extents say.

``pl.slice(x, shape, offset, valid_shape=...)`` outside a core names memory: the view has the
extents of what is valid, and the extents that were asked for are remembered here. On a core, what
is loaded of the part and computed with it has those extents and that valid region.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pypto.ir.dtypes import INDEX
from pypto.ir.nodes import AttrValue, Const, DynDim, Operand, TensorType, Var
from pypto.language.parser.diagnostics.exceptions import InvalidOperationError
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import named_scalar, tensor_extent
from pypto.language.parser.values import Value, is_tensor


def declared_shape(frame: Frame, tensor: Var) -> tuple[int, ...] | None:
    """The extents that a part was asked for with, where less of it may be valid."""
    root = frame.values.root(tensor)
    same = isinstance(root.type, TensorType) and isinstance(tensor.type, TensorType)
    if not same or root.type.shape != tensor.type.shape:  # type: ignore[union-attr]
        return None
    return frame.values.declared.get(root)


def on_core(frame: Frame, value: Value, node: ast.AST) -> Value:
    """What to compute with, whatever kind of value it is."""
    return shaped_on_core(frame, value, node) if isinstance(value, Var) else value


def shaped_on_core(frame: Frame, value: Var, node: ast.AST) -> Var:
    """A value to compute with: of a part that is valid in part, a copy that knows its region."""
    shape = declared_shape(frame, value) if is_tensor(value) and frame.on_core else None
    if shape is None:
        return value
    zero = Const(0, INDEX)
    valid = [_extent(frame, value, axis, node) for axis in range(len(shape))]
    bounds = valid[-2:] if len(shape) > 1 else [Const(1, INDEX), *valid]
    attrs: dict[str, AttrValue] = {"shape": shape, "drop": (), "has_valid": True, "pad": ""}
    operands = [value, *[zero] * len(shape), *bounds]
    return frame.emit("tensor.slice", operands, node, hint=value.name, attrs=attrs)


def inside(
    frame: Frame,
    tensor: Var,
    offsets: Sequence[Operand],
    shape: Sequence[int],
    node: ast.AST,
) -> list[Operand]:
    """For each of the last axes of a region, of these extents, how much lies inside the tensor."""
    rank = len(offsets)
    valid: list[Operand] = []
    for axis, size in zip(range(rank - len(shape), rank), shape, strict=True):
        limit, offset = _extent(frame, tensor, axis, node), offsets[axis]
        if isinstance(limit, Const) and isinstance(offset, Const):
            rest = max(0, min(size, int(limit.value) - int(offset.value)))
            valid.append(Const(rest, INDEX))
            continue
        left = frame.emit("scalar.sub", [limit, offset], node)
        bounded = frame.emit("scalar.min", [left, Const(size, INDEX)], node)
        valid.append(frame.emit("scalar.max", [bounded, Const(0, INDEX)], node, hint="valid"))
    return valid


def starts_inside(
    frame: Frame,
    tensor: Var,
    offsets: Sequence[Operand],
    shape: Sequence[int],
    node: ast.AST,
) -> list[Operand]:
    """The offsets of a region of these extents, none of them behind the end of an axis.

    What begins behind what is valid is empty, and is nowhere. A region that reaches outside of what
    the tensor was declared with is an error, where that is known.
    """
    declared, starts = declared_shape(frame, tensor), list[Operand]()
    lead = len(offsets) - len(shape)
    for axis, offset in enumerate(offsets):
        start = int(offset.value) if isinstance(offset, Const) else 0
        stop = start + (shape[axis - lead] if axis >= lead else 1)
        if declared is not None and stop > declared[axis]:
            raise frame.error(
                InvalidOperationError,
                node,
                f"takes elements {start} to {stop} of axis {axis}, which has {declared[axis]}: out "
                "of range",
            )
        first = isinstance(offset, Const) and offset.value == 0
        starts.append(offset if first else _least(frame, tensor, axis, offset, node))
    return starts


def _least(frame: Frame, tensor: Var, axis: int, offset: Operand, node: ast.AST) -> Operand:
    return smaller(frame, offset, _extent(frame, tensor, axis, node), node)


def smaller(frame: Frame, first: Operand, second: Operand, node: ast.AST) -> Operand:
    """The smaller of two extents."""
    if isinstance(first, Const) and isinstance(second, Const):
        return first if first.value <= second.value else second
    return named_scalar(frame, "min", first, second, node, "min", "valid")


def _extent(frame: Frame, tensor: Var, axis: int, node: ast.AST) -> Operand:
    assert isinstance(tensor.type, TensorType)
    dim = tensor.type.shape[axis]
    return (
        tensor_extent(frame, tensor, axis, node) if isinstance(dim, DynDim) else Const(dim, INDEX)
    )
