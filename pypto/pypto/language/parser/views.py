"""Parts of a tensor in an orchestration function: the same memory, not a copy."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pypto.ir.nodes import AttrValue, DynDim, Scope, Stmt, TensorType, Var
from pypto.ir.typing_rules import is_whole, rank_of
from pypto.language.parser.diagnostics.exceptions import InvalidOperationError
from pypto.language.parser.frame import Frame
from pypto.language.parser.partial import declared_shape, inside, shaped_on_core, starts_inside
from pypto.language.parser.scalars import difference, index_operand, split_extents, tensor_extent
from pypto.language.parser.slices import Evaluate, bounds_of, subscripts_of
from pypto.language.parser.values import Value


def subscript_view(
    frame: Frame, tensor: Var, node: ast.Subscript, hint: str, evaluate: Evaluate
) -> Var:
    """``x[a:b, i]``, whose offsets and extents may be run-time values."""
    parts = subscripts_of(frame, tensor, node.slice)
    offsets: list[Value] = []
    extents: list[Value] = []
    for axis in range(rank_of(tensor)):
        whole: tuple[Value, Value] = (0, None)
        cut = axis < len(parts)
        start, extent = bounds_of(frame, parts[axis], evaluate) if cut else whole
        if extent is None:
            extent = _rest(frame, tensor, axis, start, node)
        offsets.append(start)
        extents.append(extent)
    drop = [axis for axis, part in enumerate(parts) if not isinstance(part, ast.Slice)]
    known = [e for e in extents if isinstance(e, int) and not isinstance(e, bool)]
    if declared_shape(frame, tensor) is None or len(known) != len(extents):
        return part_of_tensor(frame, tensor, offsets, extents, drop, node, hint)
    starts = [index_operand(frame, o, node, f"offset {axis}") for axis, o in enumerate(offsets)]
    valid = inside(frame, tensor, starts, known, node)
    starts = starts_inside(frame, tensor, starts, known, node)
    part = part_of_tensor(frame, tensor, starts, valid, drop, node, hint)
    frame.values.declared[part] = tuple(e for axis, e in enumerate(known) if axis not in drop)
    return part


def part_of_tensor(
    frame: Frame,
    tensor: Var,
    offsets: Sequence[Value],
    extents: Sequence[Value],
    drop: Sequence[int],
    node: ast.AST,
    hint: str = "",
) -> Var:
    """The part of ``tensor`` at ``offsets``, without the axes to drop."""
    starts = [index_operand(frame, o, node, f"offset {axis}") for axis, o in enumerate(offsets)]
    split = split_extents(frame, extents, node, lambda axis: f"extent {axis}")
    attrs: dict[str, AttrValue] = {
        "shape": split.shape,
        "symbols": split.symbols,
        "drop": tuple(sorted(drop)),
    }
    operands = [tensor, *starts, *split.sizes]
    part = frame.emit("tensor.view", operands, node, hint=hint, attrs=attrs)
    frame.values.memory.add(part)
    frame.values.wholes[part] = tensor
    return part


def assign_part(frame: Frame, part: Var, source: Var, node: ast.AST) -> None:
    """All of ``part`` takes the values of ``source``, by a task of its own."""
    frame.values.scopes += 1
    body: list[Stmt] = []
    outer, frame.body, frame.scope = frame.body, body, frame.values.scopes
    value = shaped_on_core(frame, source, node)
    result = frame.emit("tensor.assign", [part, value], node, hint=part.name)
    frame.body, frame.scope = outer, None
    frame.values.record_write(result, part)
    outer.append(Scope(f"{frame.source.name}_copy", tuple(body), frame.source.span(node)))


def extents_of(frame: Frame, tensor: Var, node: ast.AST) -> list[Value]:
    """The extents of a tensor, read where they are run-time values."""
    assert isinstance(tensor.type, TensorType)
    return [
        tensor_extent(frame, tensor, axis, node) if isinstance(dim, DynDim) else dim
        for axis, dim in enumerate(tensor.type.shape)
    ]


def _rest(frame: Frame, tensor: Var, axis: int, start: Value, node: ast.AST) -> Value:
    """How many elements an axis has from ``start`` on."""
    assert isinstance(tensor.type, TensorType)
    dim = (declared_shape(frame, tensor) or tensor.type.shape)[axis]
    if isinstance(dim, int) and is_whole(start):
        if start >= dim:
            raise frame.error(
                InvalidOperationError,
                node,
                f"the part has no elements along axis {axis}: it starts at {start}, and the axis "
                f"has {dim}",
            )
        return dim - start
    whole = tensor_extent(frame, tensor, axis, node) if isinstance(dim, DynDim) else dim
    if isinstance(start, int) and start == 0:
        return whole
    return difference(frame, whole, start, node)
