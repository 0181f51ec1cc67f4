"""``for i in pl.range(...)`` and the values it carries."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from pypto.ir.dtypes import INDEX, DataType
from pypto.ir.nodes import Carried, Const, For, Operand, ScalarType, Stmt, Var
from pypto.language import functions as pl
from pypto.language.parser.calls import call_site
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.expressions import evaluate
from pypto.language.parser.frame import Frame
from pypto.language.parser.liveness import bound_names
from pypto.language.parser.merging import (
    as_operand,
    check_same_kind,
    clash,
    meeting_dtype,
    same_memory,
    same_value,
)
from pypto.language.parser.scalars import coerce, index_operand
from pypto.language.parser.site import CallSite
from pypto.language.parser.values import (
    Unbound,
    Value,
    is_number,
    is_scalar,
    is_tensor,
    is_tile,
    scalar_dtype,
    show_value,
)


@dataclass(frozen=True, slots=True)
class _Header:
    """The first line of a loop, evaluated."""

    node: ast.For
    var: str
    bounds: tuple[Operand, Operand, Operand]
    inits: tuple[tuple[str, Value], ...]
    body: Sequence[ast.stmt]
    final: ast.Call | None  # the pl.yield_ that ends the body
    results: tuple[ast.expr, ...]  # what that pl.yield_ is assigned to


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
    """A counted loop."""
    if node.orelse:
        raise frame.error(UnsupportedFeatureError, node.orelse[0], "a loop cannot have an else")
    header = _header(frame, node)
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
    in_branch: bool

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.env = dict(frame.env)
        self.body, self.length = frame.body, len(frame.body)
        self.printed = len(frame.builder.prints)
        self.scope, self.in_branch = frame.scope, frame.in_branch

    def restore(self) -> None:
        """Puts the frame back to where it was."""
        frame = self.frame
        frame.env, frame.body = dict(self.env), self.body
        frame.scope, frame.in_branch = self.scope, self.in_branch
        del frame.body[self.length :]
        del frame.builder.prints[self.printed :]


def _header(frame: Frame, node: ast.For) -> _Header:
    iterator = node.iter
    if not isinstance(iterator, ast.Call):
        raise frame.error(
            UnsupportedFeatureError, iterator, "a loop runs over pl.range: for i in pl.range(n):"
        )
    callee = evaluate(frame, iterator.func)
    if callee is not pl.range:
        raise frame.error(
            UnsupportedFeatureError,
            iterator,
            f"a loop cannot run over {ast.unparse(iterator.func)}; use pl.range, as "
            "'for i in pl.range(n):'",
        )
    site = call_site(frame, iterator, pl.range, "")  # type: ignore[arg-type]
    bounds = _bounds(site)
    inits = site.sequence("init_values")
    body, final, results = _yield_at_end(frame, node)
    if not inits:
        if not isinstance(node.target, ast.Name):
            raise frame.error(
                ParserSyntaxError, node.target, "a loop over pl.range has one variable"
            )
        if final is not None:
            raise frame.error(
                ParserSyntaxError, final, "pl.yield_ needs init_values in this loop's pl.range"
            )
        return _Header(node, node.target.id, bounds, (), body, None, ())
    names = _carried_names(frame, node.target, len(inits))
    if final is None or len(final.args) != len(inits) or final.keywords:
        raise frame.error(
            ParserSyntaxError,
            node,
            f"the body must end in pl.yield_ with {len(inits)} values, one for each of init_values",
        )
    variable = node.target.elts[0]  # type: ignore[attr-defined]
    pairs = tuple(zip(names, inits, strict=True))
    return _Header(node, variable.id, bounds, pairs, body, final, results)


def _carried_names(frame: Frame, target: ast.expr, count: int) -> list[str]:
    """The names in ``for i, (a, b) in ...``."""
    match target:
        case ast.Tuple(elts=[ast.Name(), ast.Tuple(elts=names) | ast.List(elts=names)]):
            found = [name.id for name in names if isinstance(name, ast.Name)]
            if len(found) == len(names) == count:
                return found
    raise frame.error(
        ParserSyntaxError,
        target,
        f"with {count} init_values the loop is written 'for i, (a, b) in pl.range(...)', with "
        "one name for each",
    )


def _yield_at_end(
    frame: Frame, node: ast.For
) -> tuple[Sequence[ast.stmt], ast.Call | None, tuple[ast.expr, ...]]:
    last = node.body[-1]
    if not isinstance(last, ast.Expr | ast.Assign) or not isinstance(last.value, ast.Call):
        return node.body, None, ()
    function = last.value.func
    named = isinstance(function, ast.Attribute) and function.attr == "yield_"
    if not named and not isinstance(function, ast.Name):
        return node.body, None, ()
    if not named and frame.source.namespace.get(function.id) is not pl.yield_:  # type: ignore[attr-defined]
        return node.body, None, ()
    if isinstance(last, ast.Expr):
        return node.body[:-1], last.value, ()
    target = last.targets[0]
    results = tuple(target.elts) if isinstance(target, ast.Tuple) else (target,)
    if len(results) != len(last.value.args) or not all(isinstance(r, ast.Name) for r in results):
        raise frame.error(
            ParserSyntaxError, last, "pl.yield_ is assigned to one name for each of its values"
        )
    return node.body[:-1], last.value, results


def _bounds(site: CallSite) -> tuple[Operand, Operand, Operand]:
    given = site.values.get("bounds", ())
    assert isinstance(given, tuple)
    if not 1 <= len(given) <= 3:
        raise site.frame.error(
            ParserTypeError,
            site.node,
            f"pl.range: takes (stop), (start, stop) or (start, stop, step), got {len(given)} "
            "bounds",
        )
    names = ("stop",) if len(given) == 1 else ("start", "stop", "step")
    operands = [
        index_operand(site.frame, value, node, f"pl.range: {name}")
        for value, node, name in zip(given, site.node.args, names, strict=False)
    ]
    start, stop = (Const(0, INDEX), operands[0]) if len(operands) == 1 else operands[:2]
    step = operands[2] if len(operands) == 3 else Const(1, INDEX)
    if isinstance(step, Const) and step.value < 1:
        raise site.frame.error(
            InvalidOperationError, site.node, f"pl.range: step must be positive, not {step.value}"
        )
    return start, stop, step


def _implicit(frame: Frame, header: _Header) -> list[str]:
    """Names bound before the loop that the body rebinds and somebody reads later."""
    explicit = {name for name, _ in header.inits} | {header.var}
    explicit |= {result.id for result in header.results if isinstance(result, ast.Name)}
    needed = frame.live_after[header.node.body[-1]]
    names = bound_names(header.body) - explicit
    return sorted(
        name
        for name in names
        if name in needed and not isinstance(frame.env.get(name, Unbound("")), Unbound)
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """One carried value: its name, its first value, and its variable in the body."""

    name: str
    init: Operand
    arg: Var


def _attempt(frame: Frame, header: _Header, implicit: list[str], plan: _Plan) -> None:
    node, start = header.node, dict(frame.env)
    outer, inner, branch = frame.body, list[Stmt](), frame.in_branch
    entering = [*header.inits, *((name, start[name]) for name in implicit)]
    entries = [
        entry for name, value in entering if (entry := _entry(frame, name, value, plan, node))
    ]
    carried = {entry.name: entry for entry in entries}
    loop_var = frame.new_var(header.var, ScalarType(INDEX))
    for name, value in entering:
        frame.env[name] = carried[name].arg if name in carried else value
    frame.env[header.var] = loop_var
    frame.body, frame.in_branch = inner, False
    with frame.nested(node):
        frame.builder.block(frame, header.body)
    after = [evaluate(frame, value) for value in header.final.args] if header.final else []
    after += [frame.env[name] for name in implicit]
    yields: list[Operand] = []
    for (name, value), final in zip(entering, after, strict=True):
        if name in carried:
            yields.append(_next(frame, carried[name], value, final, plan, node))
        elif not same_value(frame, value, final):
            _needs_carrying(frame, name, value, final, plan, node)
    results = {entry.name: frame.new_var(entry.name, entry.arg.type) for entry in entries}
    _leave(frame, header, start, entering, results)
    frame.body, frame.in_branch = outer, branch
    outer.append(
        For(
            loop_var,
            *header.bounds,
            tuple(Carried(entry.init, entry.arg, results[entry.name]) for entry in entries),
            tuple(inner),
            tuple(yields),
            frame.source.span(node),
        )
    )


def _entry(frame: Frame, name: str, value: Value, plan: _Plan, node: ast.For) -> _Entry | None:
    """How a value enters the loop, or ``None`` where it stays what it is."""
    if name in plan.stable:
        return None
    if is_scalar(value):
        dtype = plan.dtypes.get(name, scalar_dtype(value))
        init = coerce(frame, value, dtype, node, repr(name))
        return _Entry(name, init, frame.new_var(name, ScalarType(dtype)))
    if is_tile(value) or (is_tensor(value) and name in plan.tensors):
        arg = frame.new_var(name, value.type)
        if value in frame.values.products:
            frame.values.products.add(arg)
        return _Entry(name, value, arg)
    return None


def _next(
    frame: Frame, entry: _Entry, start: Value, final: Value, plan: _Plan, node: ast.For
) -> Operand:
    """The value that the next iteration gets."""
    where = "changes in this loop"
    if final is entry.arg and entry.name not in plan.tensors:
        plan.stable.add(entry.name)  # never really rebound
        raise _Again
    if isinstance(final, Unbound):
        raise clash(frame, entry.name, node, where, f"at its end it {final.reason}")
    if not isinstance(entry.arg.type, ScalarType):
        check_same_kind(frame, entry.name, entry.arg, final, node, where)
        return as_operand(final)
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
    for name in (*bound_names([header.node]), header.var):
        if name not in start or name not in results:
            env[name] = gone if name not in explicit else start.get(name, gone)
    stays = {name: value for name, value in entering if name not in results}
    for name, value in entering:
        if name not in explicit:
            env[name] = results.get(name, value)
        elif name in start:
            env[name] = start[name]
    for target, name in zip(header.results, explicit, strict=False):
        assert isinstance(target, ast.Name)
        env[target.id] = results.get(name, stays.get(name))
    frame.env = env
