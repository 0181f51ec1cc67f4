"""Subscripts of tensors and tiles: what they select, and reading it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pypto.ir.dtypes import INDEX
from pypto.ir.nodes import Const, Op, Operand, ScalarType, Stmt, TensorType, TileType, Var
from pypto.ir.regions import slice_attrs, tile_slice_attrs
from pypto.ir.typing_rules import is_whole, rank_of
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserSyntaxError,
    UnsupportedFeatureError,
)
from pypto.language.parser.frame import Frame
from pypto.language.parser.linear import constant_distance
from pypto.language.parser.partial import declared_shape, inside, starts_inside
from pypto.language.parser.scalars import difference, index_operand
from pypto.language.parser.values import Value

# The value of an expression; the module that defines it imports this one.
Evaluate = Callable[[Frame, ast.expr], Value]


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a tensor or a tile; ``drop`` lists the axes that numbers select."""

    offsets: list[Operand]
    shape: tuple[int, ...]
    drop: tuple[int, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of a value that fills it."""
        return tuple(extent for axis, extent in enumerate(self.shape) if axis not in self.drop)


def sliced(frame: Frame, source: Var, node: ast.Subscript, hint: str, evaluate: Evaluate) -> Var:
    """``x[a:b, i]`` read on a core."""
    region = region_of(frame, source, node.slice, evaluate)
    operands = [source, *region.offsets]
    if isinstance(source.type, TileType):
        return _tile_slice(frame, operands, region, node, hint)
    partly = declared_shape(frame, source) is not None
    if partly:
        bounds = inside(frame, source, region.offsets, region.shape[-2:], node)
        operands[1:] = starts_inside(frame, source, region.offsets, region.shape, node)
        operands += bounds if len(region.shape) > 1 else [Const(1, INDEX), *bounds]
    attrs = slice_attrs(region.shape, drop=region.drop, has_valid=partly)
    return frame.emit("tensor.slice", operands, node, hint=hint, attrs=attrs)


def _tile_slice(
    frame: Frame, operands: list[Operand], region: Region, node: ast.AST, hint: str
) -> Var:
    """Tiles stay matrices: what is left of one axis is a row."""
    attrs = tile_slice_attrs(region.shape)
    part = frame.emit("tile.slice", operands, node, hint=hint, attrs=attrs)
    if 1 in region.drop and region.shape[0] != 1:
        row = (1, region.shape[0])
        return frame.emit("tile.reshape", [part], node, hint=hint, attrs={"shape": row})
    return part


def element_of(
    frame: Frame, source: Var, index: ast.expr, evaluate: Evaluate
) -> list[Operand] | None:
    """The indices of the one element that a subscript selects; ``None`` where it is a region."""
    parts = subscripts_of(frame, source, index)
    if len(parts) < rank_of(source) or any(isinstance(part, ast.Slice) for part in parts):
        return None
    return [
        index_operand(frame, evaluate(frame, part), part, f"index {axis}")
        for axis, part in enumerate(parts)
    ]


def region_of(frame: Frame, source: Var, index: ast.expr, evaluate: Evaluate) -> Region:
    """What a subscript selects: slices keep their axis, numbers drop it, the rest is whole."""
    assert isinstance(source.type, TensorType | TileType)
    parts = subscripts_of(frame, source, index)
    drop = tuple(axis for axis, part in enumerate(parts) if not isinstance(part, ast.Slice))
    offsets: list[Operand] = []
    shape: list[int] = []
    whole = declared_shape(frame, source) or source.type.shape
    for axis, dim in enumerate(whole):
        start, extent = part_of(frame, parts[axis], evaluate) if axis < len(parts) else (0, None)
        known = is_whole(start)
        if known and start < 0:  # type: ignore[operator]
            raise frame.error(
                InvalidOperationError,
                index,
                f"axis {axis} of the region starts at {start}; indices count from 0 and cannot be "
                "negative",
            )
        if extent is None:
            if not isinstance(dim, int) or not known:
                raise frame.error(
                    ParserSyntaxError,
                    index,
                    f"the extent of axis {axis} must be known when the kernel is compiled; write "
                    "a : a + 16",
                )
            assert isinstance(start, int)
            extent = dim - start
        if extent < 1:
            raise frame.error(
                InvalidOperationError, index, f"the region has no elements along axis {axis}"
            )
        shape.append(extent)
        offsets.append(index_operand(frame, start, index, f"the start of axis {axis}"))
    return Region(offsets, tuple(shape), drop)


def subscripts_of(frame: Frame, source: Var, index: ast.expr) -> list[ast.expr]:
    """What a subscript says of the first axes; the rest are whole."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if len(parts) > rank_of(source):
        what = "tensor" if isinstance(source.type, TensorType) else "tile"
        raise frame.error(
            InvalidOperationError,
            index,
            f"{len(parts)} indices for a {what} of {rank_of(source)} dimensions",
        )
    for part in parts:
        if isinstance(part, ast.Constant) and (part.value is Ellipsis or part.value is None):
            raise frame.error(
                UnsupportedFeatureError, part, "a kernel's tensors are indexed by a : b and numbers"
            )
    return parts


def part_of(frame: Frame, part: ast.expr, evaluate: Evaluate) -> tuple[Value, int | None]:
    """Start and extent of one axis of a subscript; no extent where the slice is open."""
    start, extent = bounds_of(frame, part, evaluate)
    if isinstance(extent, bool) or not isinstance(extent, int | None):
        raise frame.error(
            ParserSyntaxError,
            part,
            "the extent of a slice must be known when the kernel is compiled; write a : a + 16",
        )
    return start, extent


def bounds_of(frame: Frame, part: ast.expr, evaluate: Evaluate) -> tuple[Value, Value]:
    """Start and extent of one axis, which may be run-time values; None where the slice is open."""
    if not isinstance(part, ast.Slice):
        return evaluate(frame, part), 1
    if part.step is not None:
        raise frame.error(UnsupportedFeatureError, part, "a slice cannot have a step in a kernel")
    opening = len(frame.body)
    start: Value = 0 if part.lower is None else evaluate(frame, part.lower)
    if part.upper is None:
        return start, None
    first = index_operand(frame, start, part, "the start of a slice")
    before = len(frame.body)
    stop = evaluate(frame, part.upper)
    last = index_operand(frame, stop, part, "the end of a slice")
    # ``k : k + 16`` has a known extent although k is a run-time value, and so has
    # ``x[0] : x[0] + 16``: nothing is written between the ends of a slice.
    twins = _equal_reads(frame.body[opening:])
    distance = constant_distance(frame.values.definitions, first, last, twins)
    if distance is not None:
        if all(isinstance(s, Op) and _only_computes(s) for s in frame.body[before:]):
            del frame.body[before:]  # the end itself is not needed
    elif isinstance(first, Const) and first.value == 0:
        return start, stop
    extent = difference(frame, last, first, part) if distance is None else distance
    return start if isinstance(start, int) else first, extent


def _only_computes(op: Op) -> bool:
    """Whether it reads or computes a scalar, and changes nothing."""
    return op.result is not None and isinstance(op.result.type, ScalarType)


def _equal_reads(body: Sequence[Stmt]) -> Mapping[Var, Var]:
    """For each element that is read again, and for what is computed of it again, the first one."""
    first: dict[object, Var] = {}
    twins: dict[Var, Var] = {}
    for op in body:
        if not isinstance(op, Op) or not _only_computes(op):
            return {}
        assert op.result is not None
        operands = tuple(twins.get(o, o) if isinstance(o, Var) else o for o in op.operands)
        known = first.setdefault((op.op, operands, tuple(op.attrs.items())), op.result)
        if known is not op.result:
            twins[op.result] = known
    return twins
