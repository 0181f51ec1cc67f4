"""Loops and the values they carry."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from pypto.ir.dtypes import BOOL, INDEX, TASK_ID, DataType
from pypto.ir.nodes import Carried, Const, For, Operand, ScalarType, Stmt, Var, While
from pypto.language.parser.arrays import scalar_value
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserError,
    UnsupportedFeatureError,
)
from pypto.language.parser.expressions import evaluate
from pypto.language.parser.frame import Frame
from pypto.language.parser.liveness import bound_names
from pypto.language.parser.loop_headers import (
    CountedHeader,
    UnrolledHeader,
    WhileHeader,
    read_header,
)
from pypto.language.parser.merging import (
    as_operand,
    check_same_kind,
    clash,
    meeting_dtype,
    same_memory,
    same_value,
)
from pypto.language.parser.scalars import coerce, condition_operand
from pypto.language.parser.unrolling import unroll
from pypto.language.parser.values import (
    Unbound,
    Value,
    is_number,
    is_scalar,
    is_task,
    is_tensor,
    is_tile,
    scalar_dtype,
    show_value,
)

_Header = CountedHeader | WhileHeader


@dataclass(slots=True)
class _Plan:
    """How each rebound name passes through the loop.

    The first attempt assumes that tensors stay the same memory and that scalars keep their type.
    An attempt that finds otherwise changes the plan, and the body is parsed again.
    """

    stable: set[str] = field(default_factory=set)
    expected: set[str] = field(
        default_factory=set
    )  # stable in an earlier attempt at a loop outside
    tensors: set[str] = field(default_factory=set)
    dtypes: dict[str, DataType] = field(default_factory=dict)


class _Again(Exception):
    """The plan has changed."""


def for_statement(frame: Frame, node: ast.For) -> None:
    """A loop of any kind."""
    if node.orelse:
        raise frame.error(UnsupportedFeatureError, node.orelse[0], "a loop cannot have an else")
    header = read_header(frame, node)
    if isinstance(header, UnrolledHeader):
        unroll(frame, header)
        return
    implicit = _implicit(frame, header)
    state = _State(frame)
    expected = frame.builder.unchanged.get(node, frozenset())
    plan = _Plan(stable=set(expected), expected=set(expected))
    try:
        while True:
            try:
                _attempt(frame, header, implicit, plan)
            except _Again:
                state.restore()
            else:
                frame.builder.unchanged[node] = frozenset(plan.stable)
                return
    except ParserError as error:
        # A number that the body rebinds in a dead branch only has to stay known: a shape may be
        # made of it. That is seen only where the body can be parsed, so assume it and look.
        known = {name for name in implicit if is_number(state.env[name])} - plan.stable
        if not known:
            raise
        state.restore()
        try:
            _attempt(frame, header, implicit, _Plan(stable=known | plan.stable))
        except (ParserError, _Again):
            raise error from None


@dataclass(slots=True, init=False)
class _State:
    """What an attempt changes in a frame, to begin again."""

    frame: Frame
    env: dict[str, Value]
    body: list[Stmt]
    length: int
    printed: int
    scope: int | None
    block: Sequence[ast.stmt] | None

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.env = dict(frame.env)
        self.body, self.length = frame.body, len(frame.body)
        self.printed = len(frame.builder.prints)
        self.scope, self.block = frame.scope, frame.block

    def restore(self) -> None:
        """Puts the frame back to where it was."""
        frame = self.frame
        frame.env, frame.body = dict(self.env), self.body
        frame.scope, frame.block = self.scope, self.block
        del frame.body[self.length :]
        del frame.builder.prints[self.printed :]


def _implicit(frame: Frame, header: _Header) -> list[str]:
    """Names bound before the loop that the body rebinds and somebody reads later."""
    explicit = {name for name, _ in header.inits} | set(_variables(header))
    explicit |= set(header.final.names if header.final else ())
    needed = frame.live_after[header.node.body[-1]]
    names = bound_names(header.body) - explicit
    return sorted(
        name
        for name in names
        if name in needed and not isinstance(frame.env.get(name, Unbound("")), Unbound)
    )


def _variables(header: _Header) -> tuple[str, ...]:
    return (header.var,) if isinstance(header, CountedHeader) else ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """One carried value: its name, its first value, and its variable in the body."""

    name: str
    init: Operand
    arg: Var
    explicit: bool  # by init_values: carried even where nothing changes it


def _attempt(frame: Frame, header: _Header, implicit: list[str], plan: _Plan) -> None:
    node, start = header.node, dict(frame.env)
    outer, inner = frame.body, list[Stmt]()
    explicit = {name for name, _ in header.inits}
    entering = [*header.inits, *((name, start[name]) for name in implicit)]
    entries = [
        entry
        for name, value in entering
        if (entry := _entry(frame, name, value, plan, node, name in explicit))
    ]
    carried = {entry.name: entry for entry in entries}
    for name, value in entering:
        frame.env[name] = carried[name].arg if name in carried else value
    loop_var = Var("", ScalarType(INDEX))
    if isinstance(header, CountedHeader):
        loop_var = frame.env[header.var] = frame.new_var(header.var, ScalarType(INDEX))
    condition_body: list[Stmt] = []
    condition: Operand | None = None
    with frame.nested(node):
        if isinstance(header, WhileHeader):
            frame.body = condition_body
            condition = _condition(frame, header)
        frame.body = inner
        frame.builder.block(frame, header.body)
        after = header.final.evaluate(frame) if header.final else []
    after += [frame.env[name] for name in implicit]
    yields: list[Operand] = []
    for (name, value), final in zip(entering, after, strict=True):
        if name in carried:
            yields.append(_next(frame, carried[name], value, final, plan, node))
        elif not same_value(frame, value, final):
            _needs_carrying(frame, name, value, final, plan, node)
    results = _results(frame, header, entries)
    if not frame.on_core:
        frame.values.memory.update(result for result in results.values() if is_tensor(result))
    _leave(frame, header, start, entering, results)
    frame.body = outer
    through = tuple(Carried(entry.init, entry.arg, results[entry.name]) for entry in entries)
    body, span = tuple(inner), frame.source.span(node)
    if isinstance(header, CountedHeader):
        kind, stage = header.kind, header.stage
        loop = For(loop_var, *header.bounds, through, body, tuple(yields), span, kind, stage)
        outer.append(loop)
    else:
        assert condition is not None
        outer.append(While(through, tuple(condition_body), condition, body, tuple(yields), span))


def _results(frame: Frame, header: _Header, entries: Sequence[_Entry]) -> dict[str, Var]:
    """What each carried value is after the loop, called what its ``pl.yield_`` is assigned to."""
    explicit = [name for name, _ in header.inits]
    names = dict(zip(explicit, header.final.names if header.final else (), strict=False))
    results: dict[str, Var] = {}
    for entry in entries:
        result = frame.new_var(names.get(entry.name) or entry.name, entry.arg.type)
        tensor = frame.values.named_by(entry.arg)
        if tensor is not None:
            frame.values.record_name(result, tensor)
        results[entry.name] = result
    return results


def _condition(frame: Frame, header: WhileHeader) -> Operand:
    """Translates what decides whether a while loop goes on."""
    before = dict(frame.env)
    frame.builder.block(frame, header.preparation)
    condition = condition_operand(frame, evaluate(frame, header.condition), header.condition)
    if condition is True:
        raise frame.error(
            InvalidOperationError,
            header.condition,
            "pl.cond: the condition is always true, so that the loop would not end",
        )
    frame.env = before
    for name in bound_names(header.preparation):
        frame.env[name] = Unbound("is bound before pl.cond, for the condition alone")
    return Const(False, BOOL) if condition is False else condition


def _entry(
    frame: Frame, name: str, value: Value, plan: _Plan, node: ast.For, explicit: bool
) -> _Entry | None:
    """How a value enters the loop, or ``None`` where it stays what it is."""
    if name in plan.stable:
        return None
    if value is None and plan.dtypes.get(name) == TASK_ID:
        none = scalar_value(frame, value, TASK_ID, node, repr(name))
        return _Entry(name, none, frame.new_var(name, ScalarType(TASK_ID)), explicit)
    if is_scalar(value):
        dtype = plan.dtypes.get(name, scalar_dtype(value))
        init = coerce(frame, value, dtype, node, repr(name))
        return _Entry(name, init, frame.new_var(name, ScalarType(dtype)), explicit)
    exact = explicit and frame.source.strict_ssa
    if is_tile(value) or (is_tensor(value) and (name in plan.tensors or exact)):
        arg = frame.new_var(name, value.type)
        if is_tensor(value) and name not in plan.tensors:
            frame.values.record_name(arg, value)  # as long as the body agrees
        if value in frame.values.products:
            frame.values.products.add(arg)
        if is_tensor(arg) and not frame.on_core:
            frame.values.memory.add(arg)
        return _Entry(name, value, arg, explicit)
    return None


def _next(
    frame: Frame, entry: _Entry, start: Value, final: Value, plan: _Plan, node: ast.For
) -> Operand:
    """The value that the next iteration gets."""
    where = "changes in this loop"
    if final is entry.arg and not entry.explicit and entry.name not in plan.tensors:
        plan.stable.add(entry.name)  # never really rebound
        raise _Again
    if isinstance(final, Unbound):
        raise clash(frame, entry.name, node, where, f"at its end it {final.reason}")
    if is_tensor(entry.arg) and entry.name not in plan.tensors:
        if same_memory(frame, entry.arg, final):
            return as_operand(final)
        plan.tensors.add(entry.name)
        raise _Again
    if not isinstance(entry.arg.type, ScalarType):
        check_same_kind(frame, entry.name, entry.arg, final, node, where)
        return as_operand(final)
    if entry.arg.type == ScalarType(TASK_ID):
        return scalar_value(frame, final, TASK_ID, node, f"{entry.name!r} after an iteration")
    if not is_scalar(final):
        detail = f"it starts as {show_value(start)} and becomes {show_value(final)}"
        raise clash(frame, entry.name, node, where, detail)
    dtype = meeting_dtype(frame, entry.name, entry.arg, final, node, where)
    if dtype != entry.arg.type.dtype:
        plan.dtypes[entry.name] = dtype
        raise _Again
    return coerce(frame, final, dtype, node, repr(entry.name))


def _needs_carrying(
    frame: Frame, name: str, start: Value, final: Value, plan: _Plan, node: ast.For
) -> None:
    """A name that was thought to stay the same does not."""
    where = "changes in this loop"
    if name in plan.expected:
        plan.expected.discard(name)
        plan.stable.discard(name)
        raise _Again
    if name in plan.stable:
        # It was stable only while the loop saw it as a run-time value.
        detail = f"it starts as {show_value(start)} and becomes {show_value(final)}"
        raise clash(frame, name, node, where, detail)
    if start is None and is_task(final):
        plan.dtypes[name] = TASK_ID
        raise _Again
    if is_tensor(start) and is_tensor(final) and not same_memory(frame, start, final):
        check_same_kind(frame, name, start, final, node, where)
        plan.tensors.add(name)
        raise _Again
    detail = f"it starts as {show_value(start)} and becomes {show_value(final)}"
    if isinstance(final, Unbound):
        detail = f"at its end it {final.reason}"
    raise clash(frame, name, node, where, detail)


def _leave(
    frame: Frame,
    header: _Header,
    start: dict[str, Value],
    entering: list[tuple[str, Value]],
    results: dict[str, Var],
) -> None:
    """The names after the loop."""
    line = frame.source.user_position(header.node)[0]
    gone = Unbound(f"is bound only inside the loop on line {line}; bind it before the loop")
    env = dict(start)
    explicit = [name for name, _ in header.inits]
    for name in (*bound_names([header.node]), *_variables(header)):
        if name not in start or name not in results:
            env[name] = gone if name not in explicit else start.get(name, gone)
    stays = {name: value for name, value in entering if name not in results}
    for name, value in entering:
        if name not in explicit:
            env[name] = results.get(name, value)
        elif name in start:
            env[name] = start[name]
    for target, name in zip(header.final.names if header.final else (), explicit, strict=False):
        env[target] = results.get(name, stays.get(name))
    frame.env = env
