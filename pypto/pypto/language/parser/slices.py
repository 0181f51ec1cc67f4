"""Subscripts of tensors: what they select, and reading it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from pypto.ir.nodes import AttrValue, Operand, TensorType, Var
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserSyntaxError,
    UnsupportedFeatureError,
)
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import difference, index_operand
from pypto.language.parser.values import Value

# The value of an expression; the module that defines it imports this one.
Evaluate = Callable[[Frame, ast.expr], Value]


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a tensor; ``drop`` lists the axes that numbers select."""

    offsets: list[Operand]
    shape: tuple[int, ...]
    drop: tuple[int, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of a value that fills it."""
        return tuple(extent for axis, extent in enumerate(self.shape) if axis not in self.drop)


def sliced(frame: Frame, tensor: Var, node: ast.Subscript, hint: str, evaluate: Evaluate) -> Var:
    """``x[a:b, i]`` read."""
    region = region_of(frame, tensor, node.slice, evaluate)
    if not region.extents:
        raise frame.error(
            UnsupportedFeatureError,
            node,
            "one element cannot be read into a scalar; read a region, as in x[i : i + 1]",
        )
    attrs: dict[str, AttrValue] = {
        "shape": region.shape,
        "drop": region.drop,
        "has_valid": False,
        "pad": "zero",
    }
    operands = [tensor, *region.offsets]
    return frame.emit("tensor.slice", operands, node, hint=hint, attrs=attrs)


def region_of(frame: Frame, tensor: Var, index: ast.expr, evaluate: Evaluate) -> Region:
    """What a subscript selects: slices keep their axis, numbers drop it, the rest is whole."""
    assert isinstance(tensor.type, TensorType)
    parts = subscripts_of(frame, tensor, index)
    drop = tuple(axis for axis, part in enumerate(parts) if not isinstance(part, ast.Slice))
    offsets: list[Operand] = []
    shape: list[int] = []
    for axis, dim in enumerate(tensor.type.shape):
        start, extent = part_of(frame, parts[axis], evaluate) if axis < len(parts) else (0, None)
        if extent is None:
            if not isinstance(dim, int) or isinstance(start, bool) or not isinstance(start, int):
                raise frame.error(
                    ParserSyntaxError,
                    index,
                    f"the extent of axis {axis} must be known when the kernel is compiled; write "
                    "a : a + 16",
                )
            extent = dim - start
        if extent < 1:
            raise frame.error(
                InvalidOperationError, index, f"the region has no elements along axis {axis}"
            )
        shape.append(extent)
        offsets.append(index_operand(frame, start, index, f"the start of axis {axis}"))
    return Region(offsets, tuple(shape), drop)


def subscripts_of(frame: Frame, tensor: Var, index: ast.expr) -> list[ast.expr]:
    """What a subscript says of the first axes; the rest are whole."""
    assert isinstance(tensor.type, TensorType)
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    rank = len(tensor.type.shape)
    if len(parts) > rank:
        raise frame.error(
            InvalidOperationError, index, f"{len(parts)} indices for a tensor of {rank} dimensions"
        )
    for part in parts:
        if isinstance(part, ast.Constant) and (part.value is Ellipsis or part.value is None):
            raise frame.error(
                UnsupportedFeatureError, part, "a kernel's tensors are indexed by a : b and numbers"
            )
    return parts


def needs_core(frame: Frame, node: ast.AST, what: str) -> None:
    """Refuses to touch a part of a tensor in an orchestration function."""
    if not frame.on_core:
        raise frame.error(
            UnsupportedFeatureError,
            node,
            f"{what} can be used on a core only; put it into a "
            "'with pl.at(level=pl.Level.CORE_GROUP):' block",
        )


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
    start: Value = 0 if part.lower is None else evaluate(frame, part.lower)
    if part.upper is None:
        return start, None
    upper = part.upper
    # ``k : k + 16`` has a known extent although k is a run-time value.
    if (
        isinstance(upper, ast.BinOp)
        and isinstance(upper.op, ast.Add)
        and part.lower is not None
        and ast.dump(upper.left) == ast.dump(part.lower)
    ):
        return start, evaluate(frame, upper.right)
    stop = evaluate(frame, upper)
    if isinstance(start, int) and (isinstance(stop, int) or start == 0):
        return start, stop - start if isinstance(stop, int) else stop
    return start, difference(frame, stop, start, part)
