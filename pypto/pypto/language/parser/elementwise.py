"""Operators on tiles and tensors: which operation fits the operands."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeGuard

from pypto.ir.dtypes import BOOL, FP32, INT16, INT32, INT64, DataType
from pypto.ir.nodes import AttrValue, Dim, Operand, TensorType, TileType, Var
from pypto.ir.ops import OPS
from pypto.language.parser.diagnostics.exceptions import (
    ParserError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.folding import SYMBOLS
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import check_shift, coerce, scalar_operand
from pypto.language.parser.values import Value, is_tensor, is_tile, literal, show_value

_OPERATORS: Mapping[type[ast.operator], str] = MappingProxyType(
    {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
)

# What to write in the place of an operator that tiles and tensors do not have.
_REMEDIES: Mapping[type[ast.AST], str] = MappingProxyType(
    {
        ast.Pow: "write pl.mul(x, x) for a square, and pl.exp(pl.mul(pl.log(x), y)) for other "
        "powers of what is positive",
        ast.FloorDiv: "write pl.div(x, y), which rounds whole numbers towards zero",
        ast.Mod: "write pl.fmod(x, y), whose result has the sign of x",
        ast.BitAnd: "write pl.and_(x, y)",
        ast.BitOr: "write pl.or_(x, y)",
        ast.BitXor: "write pl.xor(x, y)",
        ast.LShift: "write pl.shl(x, y)",
        ast.RShift: "write pl.shr(x, y)",
        ast.Invert: "write pl.not_(x)",
        ast.Eq: "write pl.cmp(x, y, cmp_type=0), which gives a mask",
        ast.NotEq: "write pl.cmp(x, y, cmp_type=1), which gives a mask",
        ast.Lt: "write pl.cmp(x, y, cmp_type=2), which gives a mask",
        ast.LtE: "write pl.cmp(x, y, cmp_type=3), which gives a mask",
        ast.Gt: "write pl.cmp(x, y, cmp_type=4), which gives a mask",
        ast.GtE: "write pl.cmp(x, y, cmp_type=5), which gives a mask",
        ast.And: "write pl.and_(x, y)",
        ast.Or: "write pl.or_(x, y)",
        ast.Not: "write pl.cmp(x, 0), which gives a mask",
    }
)


def family(value: Var) -> str:
    """The prefix of the operations on a value: ``tile`` or ``tensor``."""
    return "tile" if is_tile(value) else "tensor"


def element(value: Var) -> DataType:
    """The element type of a tile or a tensor."""
    return value.type.dtype


def on_shaped(
    frame: Frame, operator: ast.operator, left: Value, right: Value, node: ast.AST, hint: str
) -> Value:
    """A Python operator of which at least one side is a tile or a tensor."""
    name = _OPERATORS.get(type(operator))
    if name is None:
        raise missing_operator(frame, operator, node)
    return elementwise(frame, name, left, right, node, hint)


def missing_operator(frame: Frame, operator: ast.AST, node: ast.AST) -> ParserError:
    """The error, to be raised by the caller, of an operator that tiles and tensors do not have."""
    words: Mapping[type[ast.AST], str] = {**SYMBOLS, ast.And: "and", ast.Or: "or"}
    symbol = words[type(operator)]
    remedy = _REMEDIES.get(type(operator))
    return frame.error(
        UnsupportedFeatureError,
        node,
        f"{symbol!r} does not work on tiles and tensors{f'; {remedy}' if remedy else ''}",
    )


def elementwise(
    frame: Frame,
    name: str,
    left: Value,
    right: Value,
    node: ast.AST,
    hint: str,
    attrs: Mapping[str, AttrValue] | None = None,
) -> Value:
    """An operation on two values, such as ``add``, in the form that fits them."""
    if is_shaped(left) and is_shaped(right):
        left, right = promoted(frame, left, right, node)
        return _pair(frame, name, left, right, node, hint, attrs)
    on_the_right, on_the_left = OPS[f"tile.{name}"].scalar_forms
    if is_shaped(left):
        return with_scalar(frame, on_the_right, left, right, node, hint, attrs)
    if is_shaped(right) and on_the_left:
        return with_scalar(frame, on_the_left, right, left, node, hint)
    if is_shaped(right):
        raise frame.error(
            ParserTypeError,
            node,
            f"pl.{name}: lhs must be a tile or a tensor, not {show_value(left)}; pl.full makes a "
            "tile that holds a number everywhere",
        )
    shown = f"{show_value(left)} and {show_value(right)}"
    raise frame.error(ParserTypeError, node, f"pl.{name}: takes tiles or tensors, not {shown}")


def is_shaped(value: Value) -> TypeGuard[Var]:
    """Whether it is a tile or a tensor."""
    return is_tile(value) or is_tensor(value)


def with_scalar(
    frame: Frame,
    form: str,
    shaped: Var,
    scalar: Value,
    node: ast.AST,
    hint: str,
    attrs: Mapping[str, AttrValue] | None = None,
) -> Value:
    """The operation ``form`` on every element and one scalar."""
    what = f"the scalar beside {show_value(shaped)}"
    operand = scalar_operand(frame, scalar, node, what)
    typed = coerce(frame, operand, element(shaped), node, what)
    if form in ("shls", "shrs"):
        check_shift(frame, scalar, element(shaped), node, f"pl.{form[:-1]}")
    return frame.emit(f"{family(shaped)}.{form}", [shaped, typed], node, hint=hint, attrs=attrs)


def promoted(frame: Frame, left: Var, right: Var, node: ast.AST) -> tuple[Var, Var]:
    """Two operands, each converted to the type that holds the values of both, if there is one."""
    dtype = _common(element(left), element(right))
    if dtype is None or is_tile(left) != is_tile(right):
        return left, right
    return widened(frame, left, dtype, node), widened(frame, right, dtype, node)


_WIDER: Mapping[int, DataType] = MappingProxyType({8: INT16, 16: INT32, 32: INT64})


def _common(a: DataType, b: DataType) -> DataType | None:
    """The narrowest type for the values of two; floats and integers do not meet by themselves."""
    if a == b:
        return a
    if BOOL in (a, b) or a.is_float != b.is_float:
        return None
    if a.is_float:
        return FP32
    wide, narrow = (a, b) if a.bits >= b.bits else (b, a)
    if wide.is_unsigned == narrow.is_unsigned or (wide.bits > narrow.bits and narrow.is_unsigned):
        return wide
    return _WIDER.get(wide.bits)  # an unsigned type beside a signed one that does not hold it


def widened(frame: Frame, value: Var, dtype: DataType, node: ast.AST) -> Var:
    """A value converted to a type that holds all of its own."""
    if element(value) == dtype:
        return value
    attrs: dict[str, AttrValue] = {"dtype": dtype, "mode": "none"}
    return frame.emit(f"{family(value)}.cast", [value], node, hint=value.name, attrs=attrs)


def _pair(
    frame: Frame,
    name: str,
    left: Var,
    right: Var,
    node: ast.AST,
    hint: str,
    attrs: Mapping[str, AttrValue] | None = None,
) -> Value:
    assert isinstance(left.type, TensorType | TileType)
    assert isinstance(right.type, TensorType | TileType)
    a, b = left.type.shape, right.type.shape
    if (len(a), len(b)) == (2, 1) and isinstance(b[0], int):
        return _pair(frame, name, left, _as_row(frame, right, node), node, hint, attrs)
    if (len(a), len(b)) == (1, 2) and isinstance(a[0], int):
        return _pair(frame, name, _as_row(frame, left, node), right, node, hint, attrs)
    operands: list[Operand] = [left, right]
    if a == b or len(a) != 2 or len(b) != 2 or is_tile(left) != is_tile(right):
        return frame.emit(f"{family(left)}.{name}", operands, node, hint=hint, attrs=attrs)
    form, spec = _expansion(a, b), OPS[f"{family(left)}.{name}"]
    if form is not None and spec.line_form:
        return frame.emit(f"{family(left)}.{form}_{spec.line_form}", operands, node, hint=hint)
    if form is not None:
        repeated = frame.emit(f"{family(left)}.{form}", operands, node, hint=right.name)
        return frame.emit(f"{family(left)}.{name}", [left, repeated], node, hint=hint, attrs=attrs)
    crossed = _crossed(a, b)
    if _expansion(b, a) is None and crossed is not None:
        left, right = (_repeated(frame, side, crossed, node) for side in (left, right))
        return frame.emit(f"{family(left)}.{name}", [left, right], node, hint=hint, attrs=attrs)
    if _expansion(b, a) is None:
        return frame.emit(f"{family(left)}.{name}", operands, node, hint=hint, attrs=attrs)
    if spec.commutes:
        return _pair(frame, name, right, left, node, hint, attrs)
    form = _expansion(b, a)
    repeated = frame.emit(f"{family(left)}.{form}", [right, left], node, hint=left.name)
    return frame.emit(f"{family(left)}.{name}", [repeated, right], node, hint=hint, attrs=attrs)


def _crossed(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[int, int] | None:
    """The shape that a column and a row, in any order, make together."""
    rows, cols = (a[0], b[1]) if b[0] == 1 else (b[0], a[1])
    fits = {a, b} == {(rows, 1), (1, cols)}
    return (rows, cols) if fits and isinstance(rows, int) and isinstance(cols, int) else None


def broadcast(frame: Frame, values: Sequence[Var], node: ast.AST) -> list[Var]:
    """Matrices repeated to the shape that they make together, where they make one.

    A tensor of one axis is a row beside matrices. Values that do not fit stay as they are: the
    operation says what is wrong with them.
    """
    ranks = [len(_extents(value)) for value in values]
    if 2 not in ranks or any(is_tile(value) != is_tile(values[0]) for value in values):
        return list(values)
    rows = [
        _as_row(frame, value, node) if rank == 1 and isinstance(_extents(value)[0], int) else value
        for value, rank in zip(values, ranks, strict=True)
    ]
    shapes = [_extents(value) for value in rows]
    if any(len(shape) != 2 for shape in shapes) or len(set(shapes)) == 1:
        return rows
    whole = tuple(next((s[axis] for s in shapes if s[axis] != 1), 1) for axis in (0, 1))
    if any(shape[axis] not in (1, whole[axis]) for shape in shapes for axis in (0, 1)):
        return rows
    return [_spread(frame, value, whole, node) for value in rows]


def _extents(value: Var) -> tuple[Dim, ...]:
    assert isinstance(value.type, TensorType | TileType)
    return value.type.shape


def _spread(frame: Frame, value: Var, shape: tuple[Dim, ...], node: ast.AST) -> Var:
    """A value repeated to a shape along its axes of one element."""
    rows, cols = shape
    have = _extents(value)
    if not isinstance(rows, int) or not isinstance(cols, int) or have == shape:
        return value
    if have == (1, 1) and rows != 1 and cols != 1:
        value = _repeated(frame, value, (1, cols), node)
    return _repeated(frame, value, (rows, cols), node)


def _repeated(frame: Frame, value: Var, shape: tuple[int, int], node: ast.AST) -> Var:
    """A column or a row repeated to a shape."""
    attrs: dict[str, AttrValue] = {
        "shape": shape,
        "dtype": element(value),
        "value": literal(0, element(value)).value,
    }
    whole = frame.emit(f"{family(value)}.full", [], node, attrs=attrs)
    form = "row_expand" if _extents(value)[0] == shape[0] else "col_expand"
    return frame.emit(f"{family(value)}.{form}", [whole, value], node, hint=value.name)


def _as_row(frame: Frame, value: Var, node: ast.AST) -> Var:
    """A tensor of one axis as a matrix of one row."""
    assert isinstance(value.type, TensorType)
    shape = tuple(extent for extent in value.type.shape if isinstance(extent, int))
    attrs: dict[str, AttrValue] = {"shape": (1, *shape)}
    row = frame.emit("tensor.reshape", [value], node, hint=value.name, attrs=attrs)
    frame.values.record_name(row, value)
    return row


def _expansion(full: tuple[object, ...], vector: tuple[object, ...]) -> str | None:
    if vector == (full[0], 1):
        return "row_expand"
    return "col_expand" if vector == (1, full[1]) else None


def negated(frame: Frame, value: Var, node: ast.AST, hint: str) -> Value:
    """``-x``."""
    return frame.emit(f"{family(value)}.neg", [value], node, hint=hint)


def matrix_product(frame: Frame, left: Value, right: Value, node: ast.AST, hint: str) -> Var:
    """``left @ right``."""
    if not is_shaped(left) or not is_shaped(right):
        shown = f"{show_value(left)} and {show_value(right)}"
        raise frame.error(
            ParserTypeError, node, f"pl.matmul: takes two tiles or two tensors, not {shown}"
        )
    result = frame.emit(f"{family(left)}.matmul", [left, right], node, hint=hint)
    frame.values.products.add(result)
    return result
