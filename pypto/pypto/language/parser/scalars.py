"""Scalars: literals, run-time values, and what happens when they meet."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pypto.ir.dtypes import BOOL, FP32, INDEX, INT32, INT64, INT_RANGES, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import Const, DynDim, Operand, TensorType, TileType, Var
from pypto.language.markers import DynVar
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.folding import FOLDED, SYMBOLS
from pypto.language.parser.frame import Frame
from pypto.language.parser.values import (
    Value,
    is_number,
    is_runtime_scalar,
    is_scalar,
    literal,
    scalar_dtype,
    show_value,
)

_ARITHMETIC: Mapping[type[ast.AST], str] = MappingProxyType(
    {
        ast.Add: "add",
        ast.Sub: "sub",
        ast.Mult: "mul",
        ast.FloorDiv: "floordiv",
        ast.Mod: "mod",
        ast.Div: "truediv",
        ast.Pow: "pow",
        ast.BitAnd: "bitand",
        ast.BitOr: "bitor",
        ast.BitXor: "bitxor",
        ast.LShift: "shl",
        ast.RShift: "shr",
    }
)
_COMPARISONS: Mapping[type[ast.AST], str] = MappingProxyType(
    {
        ast.Eq: "eq",
        ast.NotEq: "ne",
        ast.Lt: "lt",
        ast.LtE: "le",
        ast.Gt: "gt",
        ast.GtE: "ge",
    }
)

Scalar = Operand | bool | int | float


def scalar_operand(frame: Frame, value: Value, node: ast.AST, what: str) -> Scalar:
    """A scalar, or an error that calls it ``what``. A ``pl.dynamic`` is read from its tensor."""
    if isinstance(value, DynVar):
        return dynamic_extent(frame, value, node)
    if is_scalar(value):
        return value
    raise frame.error(
        ParserTypeError, node, f"{what} must be a number or a scalar, not {show_value(value)}"
    )


def dynamic_extent(frame: Frame, extent: DynVar, node: ast.AST) -> Operand:
    """The run-time value of a ``pl.dynamic`` that some tensor parameter has as an extent."""
    for param in frame.values.params:
        type_ = param.var.type
        dim = DynDim(extent.name, extent.limit)
        if isinstance(type_, TensorType) and dim in type_.shape:
            return tensor_extent(frame, param.var, type_.shape.index(dim), node)
    raise frame.error(
        ParserTypeError, node, f"no tensor parameter has the extent {extent!r}, so it has no value"
    )


def tensor_extent(frame: Frame, tensor: Operand, axis: int, node: ast.AST) -> Operand:
    """The run-time extent of an axis."""
    result = frame.emit("tensor.dim", [tensor], node, attrs={"axis": axis})
    assert not isinstance(tensor, Const)
    assert isinstance(tensor.type, TensorType)
    dim = tensor.type.shape[axis]
    assert isinstance(dim, DynDim)
    frame.values.symbols[result] = dim
    return result


def extent_symbol(frame: Frame, extent: Operand, given: Value) -> str:
    """The name of a run-time extent: that of the dimension it was read from, or a new one.

    ``given`` is the value that ``extent`` was made of. One value has one name.
    """
    if isinstance(given, DynVar):
        return given.name
    source = given if isinstance(given, Var) else extent
    definitions = frame.values.definitions
    while source in definitions and definitions[source].op == "scalar.cast":
        source = definitions[source].operands[0]
    assert isinstance(source, Var)
    known = frame.values.symbols.get(source)
    if known is None:
        known = DynDim(f"{source.name}${len(frame.values.symbols)}")
        frame.values.symbols[source] = known
    return known.symbol


@dataclass(frozen=True, slots=True)
class Extents:
    """The extents of a tensor as an operation takes them.

    ``shape`` has ``None`` for each that is known only when the kernel runs; ``sizes`` are these,
    in order, and ``symbols`` their names.
    """

    shape: tuple[int | None, ...]
    sizes: tuple[Operand, ...]
    symbols: tuple[str, ...]


def split_extents(
    frame: Frame, extents: Iterable[Value], node: ast.AST, what: Callable[[int], str]
) -> Extents:
    """Extents of any kind; ``what`` names one by its axis, for messages."""
    shape: list[int | None] = []
    sizes: list[Operand] = []
    symbols: list[str] = []
    for axis, extent in enumerate(extents):
        size = index_operand(frame, extent, node, what(axis))
        if isinstance(size, Const):
            shape.append(int(size.value))
            continue
        shape.append(None)
        sizes.append(size)
        symbols.append(extent_symbol(frame, size, extent))
    return Extents(tuple(shape), tuple(sizes), tuple(symbols))


def difference(frame: Frame, left: Value, right: Value, node: ast.AST) -> Operand:
    """How many indices there are from ``right`` to ``left``."""
    first, second = (scalar_operand(frame, side, node, "a bound") for side in (left, right))
    return named_scalar(frame, "sub", first, second, node, "-")


def coerce(frame: Frame, value: Scalar, dtype: DataType, node: ast.AST, what: str) -> Operand:
    """A scalar as ``dtype``: literals must fit it, run-time values are converted.

    A float never becomes an integer by itself.
    """
    if is_number(value) or isinstance(value, Const):
        number = value.value if isinstance(value, Const) else value
        if isinstance(value, Const) and value.dtype == dtype:
            return value
        try:
            return literal(number, dtype)
        except IrTypeError as error:
            raise frame.error(ParserTypeError, node, f"{what}: {error}") from None
    assert is_runtime_scalar(value)
    source = scalar_dtype(value)
    if source == dtype:
        return value
    if (source.is_float and dtype.is_int) or BOOL in (source, dtype):
        remedy = f"write pl.cast(x, {dtype!r})"
        if source == BOOL:
            remedy = "bind a number in both branches of an if statement"
        elif dtype == BOOL:
            remedy = "compare it, as in x != 0"
        raise frame.error(
            ParserTypeError,
            node,
            f"{what}: a {source} scalar does not become {dtype} by itself; {remedy}",
        )
    return frame.emit("scalar.cast", [value], node, hint=value.name, attrs={"dtype": dtype})


def common_dtype(left: Scalar, right: Scalar) -> DataType:
    """The type in which two scalars meet. Plain literals follow the other side."""
    a, b = scalar_dtype(left), scalar_dtype(right)
    if a == b:
        return a
    if is_number(left) and not (a.is_float and b.is_int) and a != BOOL:
        return b
    if is_number(right) and not (b.is_float and a.is_int) and b != BOOL:
        return a
    if a.is_float and b.is_float:
        return a if a.bits > b.bits else b if b.bits > a.bits else FP32
    if a.is_float or b.is_float:
        return a if a.is_float else b
    if INDEX in (a, b):
        return INDEX
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return INT64 if a.bits >= 32 else INT32  # one of them is unsigned


def binary_scalar(
    frame: Frame, operator: ast.AST, left: Scalar, right: Scalar, node: ast.AST, hint: str = ""
) -> Value:
    """An arithmetic operator or a comparison on two scalars."""
    kind = type(operator)
    symbol = SYMBOLS[kind]
    if is_number(left) and is_number(right):
        return fold(frame, FOLDED[kind], (left, right), node, symbol)
    name = _ARITHMETIC.get(kind) or _COMPARISONS.get(kind)
    if name is None:
        raise frame.error(
            UnsupportedFeatureError,
            node,
            f"{symbol!r} works on values known when the kernel is compiled only, but one side is "
            f"{show_value(left if not is_number(left) else right)}",
        )
    return named_scalar(frame, name, left, right, node, symbol, hint)


def unary_scalar(
    frame: Frame, operator: ast.unaryop, value: Scalar, node: ast.AST, hint: str = ""
) -> Value:
    """A sign, or ``~``, on a scalar."""
    dtype = scalar_dtype(value)
    if isinstance(operator, ast.UAdd):
        return value
    if isinstance(operator, ast.USub) and is_runtime_scalar(value):
        return frame.emit("scalar.neg", [value], node, hint=hint)
    if isinstance(operator, ast.USub):
        return named_scalar(frame, "sub", 0, value, node, "-", hint)
    if isinstance(operator, ast.Invert) and not dtype.is_float:
        ones = True if dtype == BOOL else INT_RANGES[dtype.name][1] if dtype.is_unsigned else -1
        return named_scalar(frame, "bitxor", value, Const(ones, dtype), node, "~", hint)
    raise frame.error(
        UnsupportedFeatureError,
        node,
        f"{SYMBOLS[type(operator)]!r} does not work on {show_value(value)}",
    )


def named_scalar(
    frame: Frame,
    name: str,
    left: Scalar,
    right: Scalar,
    node: ast.AST,
    symbol: str,
    hint: str = "",
) -> Operand:
    """``scalar.<name>`` with both sides brought to one type."""
    dtype = common_dtype(left, right)
    if name == "truediv" and not dtype.is_float:
        dtype = FP32
    what = f"operand of {symbol!r}"
    operands = [coerce(frame, side, dtype, node, what) for side in (left, right)]
    if name in ("shl", "shr"):
        check_shift(frame, right, dtype, node, repr(symbol))
    return frame.emit(f"scalar.{name}", operands, node, hint=hint)


def check_shift(frame: Frame, count: Value, dtype: DataType, node: ast.AST, symbol: str) -> None:
    """Refuses to shift by a plain number of bits that the type does not have.

    What becomes a number only when a program is simplified is no mistake of its author.
    """
    if is_number(count) and dtype.is_int and not 0 <= count < dtype.bits:
        raise frame.error(
            InvalidOperationError,
            node,
            f"{symbol}: cannot shift by {count}, as {dtype} has {dtype.bits} bits; shift by 0 to "
            f"{dtype.bits - 1}",
        )


def absolute_scalar(
    frame: Frame, value: Scalar, node: ast.AST, symbol: str, hint: str = ""
) -> Operand:
    """The size of a number; the lowest of a type, which has none, stays what it is."""
    dtype = scalar_dtype(value)
    if dtype.name in INT_RANGES and INT_RANGES[dtype.name][0] == 0:
        return coerce(frame, value, dtype, node, symbol)
    negative = named_scalar(frame, "sub", 0, value, node, symbol, hint)
    return named_scalar(frame, "max", value, negative, node, symbol, hint)


def fold(
    frame: Frame, function: object, operands: tuple[Value, ...], node: ast.AST, what: str
) -> Value:
    """Evaluates a pure Python function now."""
    assert callable(function)
    try:
        result: Value = function(*operands)
    except RecursionError:
        raise
    except Exception as error:  # operators of the user's own classes raise what they like
        shown = ", ".join(show_value(operand) for operand in operands)
        raise frame.error(
            InvalidOperationError, node, f"cannot evaluate {what} on {shown}: {error}"
        ) from error
    return result


def index_operand(frame: Frame, value: Value, node: ast.AST, what: str) -> Operand:
    """A size or an offset."""
    scalar = scalar_operand(frame, value, node, what)
    dtype = scalar_dtype(scalar)
    if not dtype.is_int:
        raise frame.error(
            ParserTypeError, node, f"{what} must be a whole number, not {show_value(value)}"
        )
    return coerce(frame, scalar, INDEX, node, what)


def condition_operand(frame: Frame, value: Value, node: ast.AST) -> Operand | bool:
    """A condition: known now, or a run-time truth value."""
    if isinstance(value, Const):
        return bool(value.value)
    if is_runtime_scalar(value):
        if scalar_dtype(value) == BOOL:
            return value
        return named_scalar(frame, "ne", value, 0, node, "!=")
    if is_number(value) or value is None or isinstance(value, str | list | tuple):
        return bool(value)
    remedy = ""
    if isinstance(value, Var) and isinstance(value.type, TensorType | TileType):
        remedy = (
            "; read one element, as in x[0, 0], or choose among elements with pl.cmp and pl.sel"
        )
    raise frame.error(
        ParserTypeError,
        node,
        f"a condition must be a scalar or known when the kernel is compiled, not "
        f"{show_value(value)}{remedy}",
    )
