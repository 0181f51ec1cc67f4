"""Differences of index expressions that are constant although the expressions are not."""

from __future__ import annotations

import ast
from collections import Counter

from pypto.ir.nodes import Const
from pypto.language.parser.frame import Frame

# How many of each part an expression is a sum of, by the part's text; "" counts ones.
_Sum = Counter[str]


def constant_difference(frame: Frame, left: ast.expr, right: ast.expr) -> int | None:
    """``left - right`` where it is known now, as for ``(k + 1) * 16`` and ``k * 16``."""
    rest = _sum(frame, left)
    rest.subtract(_sum(frame, right))
    ones = rest.pop("", 0)
    return ones if not any(rest.values()) else None


def _sum(frame: Frame, node: ast.expr) -> _Sum:
    number = _number(frame, node)
    if number is not None:
        return Counter({"": number})
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            first, second = _sum(frame, left), _sum(frame, right)
            sign = 1 if isinstance(node.op, ast.Add) else -1
            return Counter({k: first[k] + sign * second[k] for k in {*first, *second}})
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            first, second = _sum(frame, left), _sum(frame, right)
            for factor, other in ((first, second), (second, first)):
                if set(factor) <= {""}:
                    return Counter({k: factor[""] * count for k, count in other.items()})
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Counter({k: -count for k, count in _sum(frame, operand).items()})
        case _:
            pass
    return Counter({ast.dump(node): 1})


def _number(frame: Frame, node: ast.expr) -> int | None:
    """The int that a literal or a name is, if it is one."""
    value: object = None
    if isinstance(node, ast.Constant):
        value = node.value
    elif isinstance(node, ast.Name):
        value = frame.env.get(node.id, frame.source.namespace.get(node.id))
    if isinstance(value, Const):
        value = value.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None
