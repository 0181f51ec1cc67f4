"""The first line of a loop: what it runs over, from where to where, and what it carries."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pypto.ir.dtypes import INDEX
from pypto.ir.nodes import Const, LoopKind, Operand
from pypto.ir.typing_rules import is_whole
from pypto.language import functions as pl
from pypto.language.parser.calls import call_site
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.expressions import evaluate
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import index_operand
from pypto.language.parser.site import CallSite
from pypto.language.parser.values import Value, show_value
from pypto.language.parser.yields import Yield, is_call_of, split_yield

_KINDS: Mapping[object, LoopKind] = MappingProxyType(
    {
        pl.range: LoopKind.SEQUENTIAL,
        pl.parallel: LoopKind.PARALLEL,
        pl.pipeline: LoopKind.PIPELINE,
    }
)


@dataclass(frozen=True, slots=True)
class Header:
    """What all loops have: the values that they carry by ``init_values``, and a body."""

    node: ast.For
    inits: tuple[tuple[str, Value], ...]
    body: Sequence[ast.stmt]
    final: Yield | None


@dataclass(frozen=True, slots=True)
class CountedHeader(Header):
    """``for i in pl.range(..)``, ``pl.parallel`` or ``pl.pipeline``."""

    var: str
    bounds: tuple[Operand, Operand, Operand]
    kind: LoopKind
    stage: int


@dataclass(frozen=True, slots=True)
class WhileHeader(Header):
    """``for (x,) in pl.while_(..)``. ``preparation`` stands before ``pl.cond(condition)``."""

    preparation: Sequence[ast.stmt]
    condition: ast.expr


@dataclass(frozen=True, slots=True)
class UnrolledHeader:
    """``for i in pl.unroll(..)``, whose bounds are known."""

    node: ast.For
    var: str
    values: range


def read_header(frame: Frame, node: ast.For) -> CountedHeader | WhileHeader | UnrolledHeader:
    """The header of a ``for`` statement."""
    iterator = node.iter
    if not isinstance(iterator, ast.Call):
        raise frame.error(
            UnsupportedFeatureError, iterator, "a loop runs over pl.range: for i in pl.range(n):"
        )
    callee = evaluate(frame, iterator.func)
    if callee is pl.while_:
        return _while(frame, node, iterator)
    if callee is pl.unroll:
        return _unrolled(frame, node, iterator)
    if callee not in _KINDS:
        raise frame.error(
            UnsupportedFeatureError,
            iterator,
            f"a loop cannot run over {ast.unparse(iterator.func)}; use pl.range, as "
            "'for i in pl.range(n):'",
        )
    site = call_site(frame, iterator, callee, "")  # type: ignore[arg-type]
    bounds = _bounds(site)
    stage = _stage(site) if callee is pl.pipeline else 0
    inits = site.sequence("init_values")
    body, final = split_yield(frame, node.body)
    if inits:
        variable, names = _targets(frame, node.target, site.name, len(inits))
        _check_yield(frame, node, final, len(inits))
    else:
        variable, names = _variable(frame, node.target, site.name), []
        _refuse_yield(frame, final, site.name)
    pairs = tuple(zip(names, inits, strict=True))
    return CountedHeader(node, pairs, body, final, variable, bounds, _KINDS[callee], stage)


def _variable(frame: Frame, target: ast.expr, name: str) -> str:
    if isinstance(target, ast.Name):
        return target.id
    raise frame.error(ParserSyntaxError, target, f"a loop over {name} has one variable")


def _refuse_yield(frame: Frame, final: Yield | None, name: str) -> None:
    if final is not None:
        raise frame.error(
            ParserSyntaxError, final.call, f"pl.yield_ needs init_values in this loop's {name}"
        )


def _check_yield(frame: Frame, node: ast.For, final: Yield | None, count: int) -> None:
    if final is None or len(final.call.args) != count:
        raise frame.error(
            ParserSyntaxError,
            node,
            f"the body must end in pl.yield_ with {count} values, one for each of init_values",
        )


def _targets(frame: Frame, target: ast.expr, name: str, count: int) -> tuple[str, list[str]]:
    """The names in ``for i, (a, b) in ...``."""
    match target:
        case ast.Tuple(elts=[ast.Name(id=var), ast.Tuple(elts=names) | ast.List(elts=names)]):
            found = _distinct(frame, target, names, (var,))
            if len(found) == count:
                return var, found
    raise frame.error(
        ParserSyntaxError,
        target,
        f"with {count} init_values the loop is written 'for i, (a, b) in {name}(...)', with "
        "one name for each",
    )


def _distinct(
    frame: Frame, target: ast.expr, names: Sequence[ast.expr], taken: tuple[str, ...] = ()
) -> list[str]:
    """The names of a tuple, or none where one of its items is something else."""
    found = [name.id for name in names if isinstance(name, ast.Name)]
    if len({*found, *taken}) < len(found) + len(taken):
        raise frame.error(ParserSyntaxError, target, "each name of a loop stands for one value")
    return found if len(found) == len(names) else []


def _bounds(site: CallSite) -> tuple[Operand, Operand, Operand]:
    values, names = _given_bounds(site)
    operands = [
        index_operand(site.frame, value, node, f"{site.name}: {name}")
        for value, node, name in zip(values, site.node.args, names, strict=False)
    ]
    start, stop = (Const(0, INDEX), operands[0]) if len(operands) == 1 else operands[:2]
    step = operands[2] if len(operands) == 3 else Const(1, INDEX)
    if isinstance(step, Const):
        _check_step(site, int(step.value))
    return start, stop, step


def _given_bounds(site: CallSite) -> tuple[tuple[Value, ...], tuple[str, ...]]:
    given = site.values.get("bounds", ())
    assert isinstance(given, tuple)
    if not 1 <= len(given) <= 3:
        raise site.frame.error(
            ParserTypeError,
            site.node,
            f"{site.name}: takes (stop), (start, stop) or (start, stop, step), got {len(given)} "
            "bounds",
        )
    return given, ("stop",) if len(given) == 1 else ("start", "stop", "step")


def _check_step(site: CallSite, step: int) -> None:
    if step < 1:
        raise site.frame.error(
            InvalidOperationError, site.node, f"{site.name}: step must be positive, not {step}"
        )


def _stage(site: CallSite) -> int:
    stage = site.values["stage"]
    if stage is None:
        raise site.wrong(
            "stage", "stage is missing: how many iterations may overlap, as in stage=2"
        )
    if not is_whole(stage):
        raise site.wrong(
            "stage",
            f"stage must be an int known when the kernel is compiled, not {show_value(stage)}",
        )
    if stage < 1:
        raise site.wrong("stage", f"stage must be at least 1, not {stage}", InvalidOperationError)
    return stage


def _unrolled(frame: Frame, node: ast.For, iterator: ast.Call) -> UnrolledHeader:
    site = call_site(frame, iterator, pl.unroll, "")  # type: ignore[arg-type]
    if site.values["init_values"] not in ((), [], None):
        raise site.wrong(
            "init_values",
            "has no init_values: each iteration is written out, so rebind a name that was bound "
            "before the loop",
            ParserSyntaxError,
        )
    bounds: list[int] = []
    values, names = _given_bounds(site)
    for value, at, name in zip(values, iterator.args, names, strict=False):
        if isinstance(value, Const) and isinstance(value.value, int):
            value = value.value
        if not is_whole(value):
            raise frame.error(
                ParserTypeError,
                at,
                f"pl.unroll: {name} must be an int known when the kernel is compiled, not "
                f"{show_value(value)}; a loop over pl.range takes any bound",
            )
        bounds.append(value)
    if len(bounds) == 3:
        _check_step(site, bounds[2])
    _refuse_final(frame, node)
    return UnrolledHeader(node, _variable(frame, node.target, site.name), range(*bounds))


def _refuse_final(frame: Frame, node: ast.For) -> None:
    final = split_yield(frame, node.body)[1]
    if final is not None:
        raise frame.error(
            ParserSyntaxError,
            final.call,
            "pl.yield_ has no place in a loop over pl.unroll, which carries nothing: rebind a name "
            "that was bound before the loop",
        )


def _while(frame: Frame, node: ast.For, iterator: ast.Call) -> WhileHeader:
    site = call_site(frame, iterator, pl.while_, "")  # type: ignore[arg-type]
    inits = site.sequence("init_values")
    names: list[str] = []
    if isinstance(node.target, ast.Tuple | ast.List):
        names = _distinct(frame, node.target, node.target.elts)
    if len(names) != len(inits) or not isinstance(node.target, ast.Tuple | ast.List):
        raise frame.error(
            ParserSyntaxError,
            node.target,
            f"with {len(inits)} init_values the loop is written 'for (x,) in pl.while_(...)', with "
            "one name for each",
        )
    at = _condition_at(frame, node)
    call = node.body[at].value  # type: ignore[attr-defined]
    condition = call_site_condition(frame, call)
    body, final = split_yield(frame, node.body[at + 1 :])
    if inits:
        _check_yield(frame, node, final, len(inits))
    else:
        _refuse_yield(frame, final, site.name)
    pairs = tuple(zip(names, inits, strict=True))
    return WhileHeader(node, pairs, body, final, node.body[:at], condition)


def _condition_at(frame: Frame, node: ast.For) -> int:
    """Where ``pl.cond`` stands; before it only names may be bound, for the condition."""
    for index, statement in enumerate(node.body):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            if is_call_of(frame, statement.value, pl.cond):
                return index
        named = isinstance(statement, ast.Assign) and all(
            isinstance(target, ast.Name) for target in statement.targets
        )
        if not named and not isinstance(statement, ast.AnnAssign):
            break
    raise frame.error(
        ParserSyntaxError,
        node.body[0],
        "the body of a loop over pl.while_ begins with pl.cond(condition)",
    )


def call_site_condition(frame: Frame, call: ast.Call) -> ast.expr:
    """The argument of ``pl.cond``, not evaluated yet."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    named = all(keyword.arg == "condition" for keyword in call.keywords)
    if len(given) != 1 or not named or isinstance(given[0], ast.Starred):
        raise frame.error(ParserTypeError, call, "pl.cond: takes one condition")
    return given[0]
