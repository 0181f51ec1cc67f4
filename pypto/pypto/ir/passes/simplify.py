"""Pass: what an InCore function computes for nothing, or more than once, goes.

Integer arithmetic and comparisons of constants are done now, equal index arithmetic is done once,
branches on constants become the arm that is taken, loops that run once or never become their body
or nothing, and what has no effect and no reader is dropped. What may end in a fault (accesses out
of range, divisions by zero) stays: a fault is what the kernel says. Every statement that stays
keeps its span.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.dtypes import BOOL, INDEX, INT8, INT16, INT32, INT64, DataType
from pypto.ir.nodes import (
    AttrValue,
    Const,
    For,
    FunctionKind,
    If,
    Op,
    Operand,
    Program,
    ScalarType,
    Stmt,
    TileType,
    Var,
)
from pypto.ir.ops import OPS, infer_result
from pypto.ir.passes.rewrite import operands, reads, substitute, with_bodies
from pypto.ir.passes.target import TargetLimits
from pypto.ir.typing_rules import type_of

_SIGNED = (INDEX, INT64, INT32, INT16, INT8)

_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "scalar.add": operator.add,
        "scalar.sub": operator.sub,
        "scalar.mul": operator.mul,
        "scalar.min": min,
        "scalar.max": max,
    }
)
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = MappingProxyType(
    {f"scalar.{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
)
_Key = tuple[str, tuple[Operand, ...], tuple[tuple[str, AttrValue], ...]]


def simplify(program: Program, target: TargetLimits) -> Program:
    """The program with InCore functions that do no more than they need to."""
    functions = {
        name: replace(function, body=_needed(_simpler(function.body)))
        if function.func_type is FunctionKind.INCORE
        else function
        for name, function in program.functions.items()
    }
    return replace(program, functions=MappingProxyType(functions))


def _simpler(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    return tuple(_Simplifier().body(body, {}))


class _Simplifier:
    """``_known`` has the values that variables turned out to have."""

    def __init__(self) -> None:
        self._known: dict[Var, Operand] = {}

    def body(self, body: Sequence[Stmt], seen: dict[_Key, Var]) -> Iterator[Stmt]:
        """The statements of a body; ``seen`` has the arithmetic done in and around it."""
        for stmt in body:
            match stmt:
                case Op():
                    yield from self._op(stmt, seen)
                case If():
                    yield from self._branch(stmt, seen)
                case For():
                    yield from self._loop(stmt, seen)
                case _:
                    (resolved,) = substitute((stmt,), self._reads_of(stmt))
                    yield with_bodies(resolved, lambda b: tuple(self.body(b, dict(seen))))

    def _reads_of(self, stmt: Stmt) -> dict[Var, Operand]:
        """What is known of the variables that a statement and its nested ones read."""
        return {var: self._known[var] for var in reads((stmt,)) if var in self._known}

    def _value(self, operand: Operand) -> Operand:
        return self._known.get(operand, operand) if isinstance(operand, Var) else operand

    def _values(self, values: Sequence[Operand]) -> tuple[Operand, ...]:
        return tuple(self._value(value) for value in values)

    def _op(self, op: Op, seen: dict[_Key, Var]) -> Iterator[Stmt]:
        known = replace(op, operands=self._values(op.operands))
        if not _is_same_everywhere(op):
            if _changes_type(op, known):
                yield from _with_run_time_counts(op, known)
            else:
                yield known
            return
        op = known
        assert op.result is not None
        folded = _folded(op)
        if folded is None:
            key = (op.op, op.operands, tuple(sorted(op.attrs.items())))
            folded = seen.setdefault(key, op.result)
        if folded is op.result:
            yield op
        else:
            self._known[op.result] = folded

    def _branch(self, branch: If, seen: dict[_Key, Var]) -> Iterator[Stmt]:
        condition = self._value(branch.condition)
        if isinstance(condition, Const):
            taken = branch.then_body if condition.value else branch.else_body
            yields = branch.then_yields if condition.value else branch.else_yields
            yield from self.body(taken, seen)
            self._known.update(zip(branch.results, self._values(yields), strict=True))
            return
        then_body = tuple(self.body(branch.then_body, dict(seen)))
        else_body = tuple(self.body(branch.else_body, dict(seen)))
        yield replace(
            branch,
            condition=condition,
            then_body=then_body,
            then_yields=self._values(branch.then_yields),
            else_body=else_body,
            else_yields=self._values(branch.else_yields),
        )

    def _loop(self, loop: For, seen: dict[_Key, Var]) -> Iterator[Stmt]:
        start, stop, step = self._values((loop.start, loop.stop, loop.step))
        inits = self._values([c.init for c in loop.carried])
        turns = _turns(start, stop, step)
        if turns == 0:
            self._known.update(zip((c.result for c in loop.carried), inits, strict=True))
        elif turns == 1:
            self._known[loop.var] = start
            self._known.update(zip((c.arg for c in loop.carried), inits, strict=True))
            yield from self.body(loop.body, seen)
            results = (c.result for c in loop.carried)
            self._known.update(zip(results, self._values(loop.yields), strict=True))
        else:
            body = tuple(self.body(loop.body, dict(seen)))
            yield replace(
                loop,
                start=start,
                stop=stop,
                step=step,
                carried=tuple(
                    replace(c, init=init) for c, init in zip(loop.carried, inits, strict=True)
                ),
                body=body,
                yields=self._values(loop.yields),
            )


def _is_same_everywhere(op: Op) -> bool:
    """Whether doing it again on the same operands gives the same scalar, wherever it stands."""
    return op.op.startswith("scalar.") or op.op == "tensor.dim" or OPS[op.op].place != ""


def _changes_type(op: Op, known: Op) -> bool:
    """Whether knowing its operands gives an operation another type: a valid region that is known.

    What reads the result was typed without knowing.
    """
    if op.result is None or not isinstance(op.result.type, TileType) or known == op:
        return False
    return None in op.result.type.valid and infer_result(known.op, known.operands, known.attrs) != (
        op.result.type
    )


def _with_run_time_counts(op: Op, known: Op) -> Iterator[Stmt]:
    """The operation with counts that are scalars still; they are its last operands."""
    assert op.result is not None
    for position in reversed(range(len(op.operands))):
        now = known.operands[position]
        if isinstance(op.operands[position], Var) and isinstance(now, Const):
            kept = Var("valid", ScalarType(now.dtype))
            yield Op("scalar.add", (now, Const(0, now.dtype)), kept, op.span)
            operands = (*known.operands[:position], kept, *known.operands[position + 1 :])
            known = replace(known, operands=operands)
            if infer_result(known.op, known.operands, known.attrs) == op.result.type:
                break
    yield known


def _folded(op: Op) -> Operand | None:
    """The value of an operation, where that is known."""
    if len(op.operands) != 2:
        return None
    left, right = op.operands
    dtype = type_of(left).dtype
    if dtype not in _SIGNED:
        return None
    if isinstance(left, Const) and isinstance(right, Const):
        first, second = int(left.value), int(right.value)
        if op.op in _COMPARISONS:
            return Const(_COMPARISONS[op.op](first, second), BOOL)
        if op.op in _ARITHMETIC:
            return _in_range(_ARITHMETIC[op.op](first, second), dtype)
    neutral_left, neutral_right = OPS[op.op].neutral
    if _is(right, neutral_right):
        return left
    return right if _is(left, neutral_left) else None


def _is(operand: Operand, value: int | None) -> bool:
    return isinstance(operand, Const) and value is not None and operand.value == value


def _in_range(value: int, dtype: DataType) -> Const | None:
    """A constant; None where the type would wrap it."""
    limit = 1 << (dtype.bits - 1)
    return Const(value, dtype) if -limit <= value < limit else None


def _turns(start: Operand, stop: Operand, step: Operand) -> int | None:
    """How often a loop runs, where that is known."""
    if not (isinstance(start, Const) and isinstance(stop, Const) and isinstance(step, Const)):
        return None
    if step.value <= 0:
        return None
    return len(range(int(start.value), int(stop.value), int(step.value)))


def _needed(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return _Readers(body).without_unread(body)


class _Readers:
    """How often each variable is read, by what is still there."""

    def __init__(self, body: Sequence[Stmt]) -> None:
        self._counts = Counter(reads(body))

    def without_unread(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The body without what nobody reads; readers come last, so one way back is enough."""
        kept: list[Stmt] = []
        for stmt in reversed(body):
            if self._is_unread(stmt):
                self._counts.subtract(o for o in operands(stmt) if isinstance(o, Var))
            else:
                kept.append(with_bodies(stmt, self.without_unread))
        return tuple(reversed(kept))

    def _is_unread(self, stmt: Stmt) -> bool:
        """An effect, and a fault, would be missed although nobody reads a result."""
        return (
            isinstance(stmt, Op)
            and stmt.result is not None
            and self._counts[stmt.result] == 0
            and not OPS[stmt.op].writes
            and not OPS[stmt.op].faults
        )
