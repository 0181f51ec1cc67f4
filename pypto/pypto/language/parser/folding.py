"""Arithmetic on values that are known when a kernel is compiled."""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

# More than any element type has, and little enough to be written into a message.
MAX_BITS = 1024
_MAX_ITEMS = 65536


def _power(base: Any, exponent: Any) -> object:
    if isinstance(base, int) and isinstance(exponent, int):
        _within(base.bit_length() * exponent if abs(base) > 1 else 0, MAX_BITS, "bits")
    return operator.pow(base, exponent)


def _shifted(value: Any, count: Any) -> object:
    if isinstance(value, int) and isinstance(count, int):
        _within(value.bit_length() + count if value else 0, MAX_BITS, "bits")
    return operator.lshift(value, count)


def _times(left: Any, right: Any) -> object:
    for items, count in ((left, right), (right, left)):
        if isinstance(items, str | list | tuple) and isinstance(count, int):
            _within(len(items) * count, _MAX_ITEMS, "items")
    return operator.mul(left, right)


def _within(size: int, limit: int, what: str) -> None:
    """Before Python computes for hours, or takes all the memory there is."""
    if size > limit:
        raise ValueError(f"the result has more than {limit} {what}")


BINARY: Mapping[type[ast.AST], Callable[[Any, Any], object]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: _times,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
        ast.Pow: _power,
        ast.LShift: _shifted,
        ast.RShift: operator.rshift,
        ast.BitAnd: operator.and_,
        ast.BitOr: operator.or_,
        ast.BitXor: operator.xor,
    }
)

UNARY: Mapping[type[ast.AST], Callable[[Any], object]] = MappingProxyType(
    {
        ast.USub: operator.neg,
        ast.UAdd: operator.pos,
        ast.Not: operator.not_,
        ast.Invert: operator.invert,
    }
)

COMPARE: Mapping[type[ast.AST], Callable[[Any, Any], object]] = MappingProxyType(
    {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Is: operator.is_,
        ast.IsNot: operator.is_not,
        ast.In: lambda left, right: operator.contains(right, left),
        ast.NotIn: lambda left, right: not operator.contains(right, left),
    }
)

# Every operator with two sides.
FOLDED: Mapping[type[ast.AST], Callable[[Any, Any], object]] = MappingProxyType(
    {**BINARY, **COMPARE}
)

SYMBOLS: Mapping[type[ast.AST], str] = MappingProxyType(
    {
        ast.Add: "+",
        ast.Sub: "-",
        ast.Mult: "*",
        ast.Div: "/",
        ast.FloorDiv: "//",
        ast.Mod: "%",
        ast.Pow: "**",
        ast.MatMult: "@",
        ast.LShift: "<<",
        ast.RShift: ">>",
        ast.BitAnd: "&",
        ast.BitOr: "|",
        ast.BitXor: "^",
        ast.USub: "-",
        ast.UAdd: "+",
        ast.Not: "not",
        ast.Invert: "~",
        ast.Eq: "==",
        ast.NotEq: "!=",
        ast.Lt: "<",
        ast.LtE: "<=",
        ast.Gt: ">",
        ast.GtE: ">=",
        ast.Is: "is",
        ast.IsNot: "is not",
        ast.In: "in",
        ast.NotIn: "not in",
    }
)

# Python functions that a kernel may call on compile-time values: pure, and part of no module that
# could change under a stored artifact.
PURE_BUILTINS: frozenset[object] = frozenset(
    {
        builtins.abs,
        builtins.bool,
        builtins.float,
        builtins.int,
        builtins.len,
        builtins.list,
        builtins.max,
        builtins.min,
        builtins.round,
        builtins.sum,
        builtins.tuple,
    }
)


def is_pure(function: object) -> bool:
    """Whether a Python function may be evaluated while a kernel is compiled."""
    try:
        if function in PURE_BUILTINS:
            return True
    except TypeError:  # not hashable
        return False
    return getattr(function, "__module__", None) == "math" and (
        getattr(math, getattr(function, "__name__", ""), None) is function
    )
