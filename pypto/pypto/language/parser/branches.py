"""``if``: a branch taken now, or one of the program."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pypto.ir.dtypes import TASK_ID
from pypto.ir.nodes import If, Operand, Stmt, Var
from pypto.ir.typing_rules import type_of
from pypto.language.parser.arrays import scalar_value
from pypto.language.parser.expressions import evaluate
from pypto.language.parser.frame import Frame
from pypto.language.parser.liveness import bound_names
from pypto.language.parser.merging import (
    as_operand,
    both_scalars,
    check_same_kind,
    meeting_dtype,
    same_memory,
    same_value,
)
from pypto.language.parser.scalars import coerce, condition_operand
from pypto.language.parser.values import Unbound, Value, is_scalar, is_task, is_tensor
from pypto.language.parser.yields import branch_names, split_yield


def if_statement(frame: Frame, node: ast.If) -> None:
    """A branch: taken now where its condition is known, kept otherwise."""
    condition = condition_operand(frame, evaluate(frame, node.test), node.test)
    yielded = branch_names(frame, node)
    if isinstance(condition, bool):
        _arm_body(frame, node.body if condition else node.orelse)
        return
    start = dict(frame.env)
    then_env, then_body = _arm(frame, node, node.body, start)
    else_env, else_body = _arm(frame, node, node.orelse, start)
    frame.env = dict(start)
    results: list[Var] = []
    yields: list[tuple[Operand, Operand]] = []
    live = frame.live_after[node]
    explicit = tuple(name for name in yielded or () if name)
    names = bound_names([*node.body, *node.orelse])
    for name in (*explicit, *sorted(names - set(explicit))):
        absent = Unbound(f"is bound in one branch only of the if on line {_line(frame, node)}")
        left, right = then_env.get(name, absent), else_env.get(name, absent)
        exact = name in explicit and frame.source.strict_ssa
        if same_memory(frame, left, right) and not exact:
            assert is_tensor(left)
            assert is_tensor(right)
            frame.env[name] = _one_tensor(frame, left, right, node)
        elif same_value(frame, left, right) and name not in explicit:
            frame.env[name] = left
        elif isinstance(left, Unbound) or isinstance(right, Unbound):
            frame.env[name] = left if isinstance(left, Unbound) else right
        elif name in live or name in explicit:
            pair = _merge(frame, name, (left, then_body), (right, else_body), node)
            result = frame.new_var(name, type_of(pair[0]))
            if same_memory(frame, left, right):
                assert is_tensor(left)
                frame.values.record_name(result, left)
            frame.env[name] = result
            results.append(result)
            yields.append(pair)
            if is_tensor(result) and not frame.on_core:
                frame.values.memory.add(result)
            if left in frame.values.products and right in frame.values.products:
                frame.values.products.add(result)
        else:
            frame.env[name] = absent  # nobody reads it
    frame.body.append(
        If(
            condition,
            tuple(then_body),
            tuple(left for left, _ in yields),
            tuple(else_body),
            tuple(right for _, right in yields),
            tuple(results),
            frame.source.span(node),
        )
    )


def _arm_body(frame: Frame, body: Sequence[ast.stmt]) -> None:
    """The statements of one branch; what it yields is bound to the names that get it."""
    statements, final = split_yield(frame, body)
    frame.builder.block(frame, statements)
    if final is not None:
        frame.env.update(zip(final.names, final.evaluate(frame), strict=False))


def _line(frame: Frame, node: ast.AST) -> int:
    return frame.source.user_position(node)[0]


def _arm(
    frame: Frame, node: ast.If, body: list[ast.stmt], start: dict[str, Value]
) -> tuple[dict[str, Value], list[Stmt]]:
    """The names and the statements of one branch."""
    outer, inner = frame.body, list[Stmt]()
    frame.env, frame.body = dict(start), inner
    with frame.nested(node):
        _arm_body(frame, body)
    env, frame.body = frame.env, outer
    return env, inner


def _one_tensor(frame: Frame, left: Var, right: Var, node: ast.If) -> Value:
    """The tensor that both branches name, by a variable that was bound before them."""
    outer = frame.values.meeting(left, right)
    if outer.type == left.type == right.type:
        return outer
    return Unbound(f"is a view made in a branch of the if on line {_line(frame, node)}")


def _merge(
    frame: Frame,
    name: str,
    left: tuple[Value, list[Stmt]],
    right: tuple[Value, list[Stmt]],
    node: ast.If,
) -> tuple[Operand, Operand]:
    """The two values that the branches yield for a name, of one type."""
    where = "differs between the branches of this if"
    if is_task(left[0]) or is_task(right[0]):
        ids = []
        for value, body in (left, right):
            outer, frame.body = frame.body, body
            ids.append(scalar_value(frame, value, TASK_ID, node, f"{name!r} after this if"))
            frame.body = outer
        return ids[0], ids[1]
    if not both_scalars(left[0], right[0]):
        check_same_kind(frame, name, left[0], right[0], node, where)
        return as_operand(left[0]), as_operand(right[0])
    assert is_scalar(left[0])
    assert is_scalar(right[0])
    dtype = meeting_dtype(frame, name, left[0], right[0], node, where)
    operands = []
    for value, body in (left, right):
        assert is_scalar(value)
        outer, frame.body = frame.body, body
        operands.append(coerce(frame, value, dtype, node, repr(name)))
        frame.body = outer
    return operands[0], operands[1]
