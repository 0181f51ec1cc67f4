"""Expressions: folded where every part is known, emitted as operations otherwise."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pypto.ir.nodes import DynDim, TensorType, TileType, Var
from pypto.ir.typing_rules import is_whole
from pypto.language import markers
from pypto.language.parser.arrays import read_from_array
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from pypto.language.parser.elements import read_element
from pypto.language.parser.elementwise import (
    is_shaped,
    matrix_product,
    missing_operator,
    negated,
    on_shaped,
)
from pypto.language.parser.folding import BINARY, COMPARE, MAX_BITS, SYMBOLS, UNARY
from pypto.language.parser.frame import Frame, did_you_mean
from pypto.language.parser.partial import declared_shape, on_core
from pypto.language.parser.scalars import (
    binary_scalar,
    condition_operand,
    fold,
    scalar_operand,
    tensor_extent,
    unary_scalar,
)
from pypto.language.parser.slices import element_of, sliced
from pypto.language.parser.values import (
    Value,
    holds_runtime,
    is_array,
    is_tensor,
    is_tile,
    show_value,
)
from pypto.language.parser.views import subscript_view

_MARKERS = (markers.Tensor, markers.Tile, markers.Scalar, markers.Array, markers.Out, markers.InOut)


def evaluate(frame: Frame, node: ast.expr, hint: str = "") -> Value:
    """The value of an expression. ``hint`` names the variable it will be bound to."""
    handler = _EXPRESSIONS.get(type(node))
    if handler is None:
        raise frame.error(
            UnsupportedFeatureError,
            node,
            f"{_NAMES.get(type(node), type(node).__name__)} cannot be used in a kernel",
        )
    return _bounded(frame, node, handler(frame, node, hint))


def _bounded(frame: Frame, node: ast.expr, value: Value) -> Value:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise frame.error(
            InvalidOperationError,
            node,
            f"an integer of {value.bit_length()} bits cannot be used in a kernel",
        )
    return value


def _constant(frame: Frame, node: ast.Constant, hint: str) -> Value:
    value = node.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise frame.error(
        UnsupportedFeatureError, node, f"the literal {value!r} cannot be used in a kernel"
    )


def _name(frame: Frame, node: ast.Name, hint: str) -> Value:
    return frame.lookup(node)


def _attribute(frame: Frame, node: ast.Attribute, hint: str) -> Value:
    base = evaluate(frame, node.value)
    if is_tensor(base) or is_tile(base):
        return _shaped_attribute(frame, base, node)
    if isinstance(base, Var):
        raise frame.error(
            InvalidOperationError, node, f"{show_value(base)} has no attribute {node.attr!r}"
        )
    try:
        return frame.builder.attributes.read(base, node.attr)
    except AttributeError:
        names = [name for name in dir(base) if not name.startswith("_")]
        hint = did_you_mean(node.attr, names)
        where = ast.unparse(node.value)
        raise frame.error(
            UndefinedVariableError, node, f"{where!r} has no attribute {node.attr!r}{hint}"
        ) from None
    except RecursionError:
        raise
    except Exception as error:  # whatever the user's own class raises
        reason = f"cannot read {ast.unparse(node)!r}: {type(error).__name__}: {error}"
        raise frame.error(InvalidOperationError, node, reason) from error


def _shaped_attribute(frame: Frame, base: Var, node: ast.Attribute) -> Value:
    assert isinstance(base.type, TensorType | TileType)
    if node.attr == "dtype":
        return base.type.dtype
    if node.attr == "shape":
        declared = declared_shape(frame, base)
        return declared or tuple(
            tensor_extent(frame, base, axis, node) if isinstance(dim, DynDim) else dim
            for axis, dim in enumerate(base.type.shape)
        )
    raise frame.error(
        InvalidOperationError,
        node,
        f"{show_value(base)} has no attribute {node.attr!r}; it has shape and dtype, and "
        "operations on it are functions, such as pl.add",
    )


def _subscript(frame: Frame, node: ast.Subscript, hint: str) -> Value:
    # ``x.shape[i]`` reads that extent alone.
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        base = evaluate(frame, node.value.value)
        if is_tensor(base):
            return _one_extent(frame, base, node)
    base = evaluate(frame, node.value)
    if is_tensor(base) or is_tile(base):
        indices = element_of(frame, base, node.slice, evaluate)
        if indices is not None:
            return read_element(frame, base, indices, node, hint)
        take = sliced if frame.on_core else subscript_view
        return take(frame, base, node, hint, evaluate)
    if is_array(base):
        return read_from_array(frame, base, evaluate(frame, node.slice), node, hint)
    if holds_runtime(base) and not isinstance(base, tuple | list):
        raise frame.error(InvalidOperationError, node, f"cannot index {show_value(base)}")
    index = _index(frame, node.slice)
    if holds_runtime(index):
        raise frame.error(
            InvalidOperationError,
            node.slice,
            "an index into a Python sequence must be known when the kernel is compiled, but is "
            f"{show_value(index)}",
        )
    if isinstance(base, type):
        return _marker(frame, base, index, node)
    try:
        return base[index]  # type: ignore[index]
    except (TypeError, LookupError) as error:
        raise frame.error(
            InvalidOperationError, node, f"cannot index {show_value(base)}: {error}"
        ) from None


def _one_extent(frame: Frame, tensor: Var, node: ast.Subscript) -> Value:
    assert isinstance(tensor.type, TensorType)
    shape = tensor.type.shape
    axis = evaluate(frame, node.slice)
    if not is_whole(axis):
        raise frame.error(
            ParserTypeError, node.slice, f"an axis must be an int, not {show_value(axis)}"
        )
    if not -len(shape) <= axis < len(shape):
        raise frame.error(
            InvalidOperationError,
            node.slice,
            f"axis {axis} is out of range for {show_value(tensor)}",
        )
    axis %= len(shape)
    dim = (declared_shape(frame, tensor) or shape)[axis]
    return tensor_extent(frame, tensor, axis, node) if isinstance(dim, DynDim) else dim


def _marker(frame: Frame, base: type, index: Value, node: ast.Subscript) -> Value:
    if base not in _MARKERS:
        raise frame.error(InvalidOperationError, node, f"cannot index {show_value(base)}")
    try:
        return base[index]  # type: ignore[index]
    except (TypeError, ValueError) as error:
        raise frame.error(ParserTypeError, node, str(error)) from None


def _index(frame: Frame, node: ast.expr) -> Value:
    if isinstance(node, ast.Slice):
        parts = [
            None if p is None else evaluate(frame, p) for p in (node.lower, node.upper, node.step)
        ]
        if holds_runtime(parts):
            return tuple(parts)
        return slice(*parts)
    return evaluate(frame, node)


def _sequence(frame: Frame, node: ast.Tuple | ast.List, hint: str) -> Value:
    items: list[Value] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            unpacked = evaluate(frame, item.value)
            if not isinstance(unpacked, tuple | list):
                raise frame.error(
                    ParserTypeError, item, f"cannot unpack {show_value(unpacked)} with *"
                )
            items.extend(unpacked)
        else:
            items.append(evaluate(frame, item))
    return tuple(items) if isinstance(node, ast.Tuple) or holds_runtime(items) else items


def _binary(frame: Frame, node: ast.BinOp, hint: str) -> Value:
    # A sum of many terms is a chain to the left, which is as deep as it is long.
    chain = [node]
    while isinstance(chain[-1].left, ast.BinOp):
        chain.append(chain[-1].left)
    value = evaluate(frame, chain[-1].left)
    for link in reversed(chain):
        right = evaluate(frame, link.right)
        name = hint if link is node else ""
        value = _bounded(frame, link, combine(frame, link.op, value, right, link, name))
    return value


def combine(
    frame: Frame, operator: ast.operator, left: Value, right: Value, node: ast.AST, hint: str = ""
) -> Value:
    """``left <operator> right`` for values of any kind."""
    left, right = on_core(frame, left, node), on_core(frame, right, node)
    shaped = [v for v in (left, right) if is_tensor(v) or is_tile(v)]
    if shaped:
        if isinstance(operator, ast.MatMult):
            return matrix_product(frame, left, right, node, hint)
        return on_shaped(frame, operator, left, right, node, hint)
    if not holds_runtime((left, right)) and not _is_dynamic(left, right):
        function = BINARY.get(type(operator))
        if function is None:
            raise frame.error(
                UnsupportedFeatureError,
                node,
                f"{SYMBOLS[type(operator)]!r} does not work on {show_value(left)}",
            )
        return fold(frame, function, (left, right), node, repr(SYMBOLS[type(operator)]))
    return _on_scalars(frame, operator, left, right, node, hint)


def _on_scalars(
    frame: Frame,
    operator: ast.operator | ast.cmpop,
    left: Value,
    right: Value,
    node: ast.AST,
    hint: str,
) -> Value:
    what = f"operand of {SYMBOLS[type(operator)]!r}"
    first, second = (scalar_operand(frame, side, node, what) for side in (left, right))
    return binary_scalar(frame, operator, first, second, node, hint)


def _is_dynamic(*values: Value) -> bool:
    return any(isinstance(value, markers.DynVar) for value in values)


def _unary(frame: Frame, node: ast.UnaryOp, hint: str) -> Value:
    operand = on_core(frame, evaluate(frame, node.operand), node)
    symbol = SYMBOLS[type(node.op)]
    if is_tensor(operand) or is_tile(operand):
        if isinstance(node.op, ast.USub):
            return negated(frame, operand, node, hint)
        if isinstance(node.op, ast.UAdd):
            return operand
        raise missing_operator(frame, node.op, node)
    if not holds_runtime(operand) and not _is_dynamic(operand):
        return fold(frame, UNARY[type(node.op)], (operand,), node, repr(symbol))
    if isinstance(node.op, ast.Not):
        condition = condition_operand(frame, operand, node)
        if isinstance(condition, bool):
            return not condition
        return frame.emit("scalar.not", [condition], node, hint=hint)
    scalar = scalar_operand(frame, operand, node, f"operand of {symbol!r}")
    return unary_scalar(frame, node.op, scalar, node, hint)


def _compare(frame: Frame, node: ast.Compare, hint: str) -> Value:
    operands = [evaluate(frame, side) for side in (node.left, *node.comparators)]
    result: Value = True
    for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
        one = _compare_pair(frame, operator, left, right, node, hint)
        result = _both(frame, "and", result, one, node, hint)
    return result


def _compare_pair(
    frame: Frame, operator: ast.cmpop, left: Value, right: Value, node: ast.Compare, hint: str
) -> Value:
    symbol = SYMBOLS[type(operator)]
    if isinstance(operator, ast.Is | ast.IsNot) and (left is None or right is None):
        return (left is right) == isinstance(operator, ast.Is)
    if not holds_runtime((left, right)) and not _is_dynamic(left, right):
        return fold(frame, COMPARE[type(operator)], (left, right), node, repr(symbol))
    if is_shaped(left) or is_shaped(right):
        raise missing_operator(frame, operator, node)
    return _on_scalars(frame, operator, left, right, node, hint)


def _boolean(frame: Frame, node: ast.BoolOp, hint: str) -> Value:
    word = "and" if isinstance(node.op, ast.And) else "or"
    result = evaluate(frame, node.values[0])
    for part in node.values[1:]:
        # A side known now decides, or vanishes, without the other being looked at, as in Python.
        if not isinstance(result, Var) and bool(result) == (word == "or"):
            return result
        result = _both(frame, word, result, evaluate(frame, part), part, hint)
    return result


def _both(frame: Frame, word: str, left: Value, right: Value, node: ast.AST, hint: str) -> Value:
    """``left and right`` or ``left or right``."""
    if not isinstance(left, Var):
        return right if bool(left) == (word == "and") else left
    if is_shaped(left) or is_shaped(right):
        raise missing_operator(frame, ast.And() if word == "and" else ast.Or(), node)
    a, b = condition_operand(frame, left, node), condition_operand(frame, right, node)
    if isinstance(b, bool):
        return a if b == (word == "and") else b
    assert not isinstance(a, bool)
    return frame.emit(f"scalar.{word}", [a, b], node, hint=hint or word)


def _conditional(frame: Frame, node: ast.IfExp, hint: str) -> Value:
    condition = condition_operand(frame, evaluate(frame, node.test), node.test)
    if isinstance(condition, bool):
        return evaluate(frame, node.body if condition else node.orelse, hint)
    raise frame.error(
        UnsupportedFeatureError,
        node,
        "'a if c else b' needs a condition known when the kernel is compiled; write an if "
        "statement that binds the name in both branches",
    )


def _formatted(frame: Frame, node: ast.JoinedStr, hint: str) -> Value:
    parts = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            if part.conversion != -1 or part.format_spec is not None:
                raise frame.error(
                    UnsupportedFeatureError, part, "formats in an f-string are not supported"
                )
            value = evaluate(frame, part.value)
            parts.append(
                show_value(value)
                if isinstance(value, Var)
                else str(fold(frame, str, (value,), part, "str"))
            )
        else:
            assert isinstance(part, ast.Constant)
            parts.append(str(part.value))
    return "".join(parts)


def _call(frame: Frame, node: ast.Call, hint: str) -> Value:
    return frame.builder.call(frame, node, hint)


_EXPRESSIONS: Mapping[type[ast.AST], Callable[[Frame, Any, str], Value]] = MappingProxyType(
    {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Tuple: _sequence,
        ast.List: _sequence,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.Compare: _compare,
        ast.BoolOp: _boolean,
        ast.IfExp: _conditional,
        ast.JoinedStr: _formatted,
        ast.Call: _call,
    }
)

_NAMES: Mapping[type[ast.AST], str] = MappingProxyType(
    {
        ast.Lambda: "a lambda",
        ast.ListComp: "a list comprehension",
        ast.SetComp: "a set comprehension",
        ast.DictComp: "a dict comprehension",
        ast.GeneratorExp: "a generator expression",
        ast.Await: "await",
        ast.Yield: "yield (did you mean pl.yield_?)",
        ast.YieldFrom: "yield from",
        ast.NamedExpr: "':='",
        ast.Dict: "a dict",
        ast.Set: "a set",
        ast.Starred: "unpacking with *",
        ast.Slice: "a slice",
    }
)


def static_value(frame: Frame, node: ast.expr, what: str) -> Value:
    """The value of an expression that must be known when the kernel is compiled."""
    value = evaluate(frame, node)
    if holds_runtime(value):
        raise frame.error(
            ParserTypeError,
            node,
            f"{what} must be known when the kernel is compiled, not {show_value(value)}",
        )
    return value
