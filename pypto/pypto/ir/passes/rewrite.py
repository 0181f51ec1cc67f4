"""Walking and rebuilding bodies: what every pass needs and no pass owns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pypto.ir.dtypes import INDEX
from pypto.ir.nodes import (
    Call,
    Carried,
    Const,
    For,
    If,
    ManualScope,
    Op,
    Operand,
    Return,
    Schedule,
    Scope,
    Stmt,
    Var,
    While,
)

Substitution = Mapping[Var, Operand]


def index(value: int) -> Const:
    """A constant offset, count or extent."""
    return Const(value, INDEX)


ZERO = index(0)


def operands(stmt: Stmt) -> tuple[Operand, ...]:
    """What a statement reads by itself, not counting what its nested bodies read."""
    match stmt:
        case Op():
            return stmt.operands
        case Call():
            return (*stmt.operands, *scheduling(stmt.schedule))
        case For():
            return (stmt.start, stmt.stop, stmt.step, *(c.init for c in stmt.carried))
        case While():
            return tuple(c.init for c in stmt.carried)
        case If():
            return (stmt.condition,)
        case Return():
            return stmt.values
        case Scope():
            return scheduling(stmt.schedule)
        case ManualScope():
            return ()


def scheduling(schedule: Schedule) -> tuple[Operand, ...]:
    """What a schedule reads."""
    blocks = () if schedule.blocks is None else (schedule.blocks,)
    return (*blocks, *schedule.deps, *schedule.no_deps, *schedule.dumps)


def results(stmt: Stmt) -> tuple[Var, ...]:
    """What a statement binds in the body that holds it."""
    match stmt:
        case Op():
            return () if stmt.result is None else (stmt.result,)
        case Call():
            return (*stmt.results, *_task(stmt.schedule))
        case For() | While():
            return tuple(c.result for c in stmt.carried)
        case If():
            return stmt.results
        case Scope():
            return _task(stmt.schedule)
        case ManualScope() | Return():
            return ()


def _task(schedule: Schedule) -> tuple[Var, ...]:
    return () if schedule.task is None else (schedule.task,)


@dataclass(frozen=True, slots=True)
class Block:
    """A nested body: what it binds on entry and what it hands on at its end.

    The second block of a ``While`` sees the arguments of the first too.
    """

    arguments: tuple[Var, ...]
    body: tuple[Stmt, ...]
    yields: tuple[Operand, ...]


def blocks(stmt: Stmt) -> tuple[Block, ...]:
    """The nested bodies of a statement."""
    match stmt:
        case For():
            arguments = (stmt.var, *(c.arg for c in stmt.carried))
            return (Block(arguments, stmt.body, stmt.yields),)
        case While():
            return (
                Block(tuple(c.arg for c in stmt.carried), stmt.condition_body, (stmt.condition,)),
                Block((), stmt.body, stmt.yields),
            )
        case If():
            return (
                Block((), stmt.then_body, stmt.then_yields),
                Block((), stmt.else_body, stmt.else_yields),
            )
        case Scope() | ManualScope():
            return (Block((), stmt.body, ()),)
        case _:
            return ()


def with_bodies(stmt: Stmt, rewrite: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """The statement with each of its nested bodies rewritten, and all else as it was."""
    match stmt:
        case For() | Scope() | ManualScope():
            return replace(stmt, body=rewrite(stmt.body))
        case While():
            condition_body, body = rewrite(stmt.condition_body), rewrite(stmt.body)
            return replace(stmt, condition_body=condition_body, body=body)
        case If():
            then_body, else_body = rewrite(stmt.then_body), rewrite(stmt.else_body)
            return replace(stmt, then_body=then_body, else_body=else_body)
        case _:
            return stmt


def walk(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Every statement of a body in program order, each before its nested ones."""
    for stmt in body:
        yield stmt
        for block in blocks(stmt):
            yield from walk(block.body)


def reads(body: Sequence[Stmt]) -> Iterator[Var]:
    """Every variable that a body reads, once for each time it does; yields count as reads."""
    for stmt in walk(body):
        yield from (o for o in operands(stmt) if isinstance(o, Var))
        for block in blocks(stmt):
            yield from (o for o in block.yields if isinstance(o, Var))


def bindings(body: Sequence[Stmt]) -> Iterator[Var]:
    """Every variable that a body binds, nested ones too."""
    for stmt in walk(body):
        yield from results(stmt)
        for block in blocks(stmt):
            yield from block.arguments


def free_variables(body: Sequence[Stmt]) -> tuple[Var, ...]:
    """What a body reads and does not bind, in order of first use."""
    bound = set(bindings(body))
    return tuple(dict.fromkeys(v for v in reads(body) if v not in bound))


def substitute(body: Sequence[Stmt], mapping: Substitution) -> tuple[Stmt, ...]:
    """The body with each variable of `mapping`, bound or read, replaced.

    Only a variable may take the place of one that the body binds.
    """
    if not mapping:
        return tuple(body)
    return tuple(_substituted(stmt, mapping) for stmt in body)


def _substituted(stmt: Stmt, mapping: Substitution) -> Stmt:
    def read(operand: Operand) -> Operand:
        return operand if isinstance(operand, Const) else mapping.get(operand, operand)

    def all_read(values: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(read(value) for value in values)

    def bound(var: Var) -> Var:
        new = mapping.get(var, var)
        if not isinstance(new, Var):
            raise TypeError(f"a constant cannot bind {var.name}")
        return new

    def carried_on(carried: tuple[Carried, ...]) -> tuple[Carried, ...]:
        return tuple(Carried(read(c.init), bound(c.arg), bound(c.result)) for c in carried)

    def scheduled(schedule: Schedule) -> Schedule:
        return Schedule(
            blocks=None if schedule.blocks is None else read(schedule.blocks),
            deps=all_read(schedule.deps),
            no_deps=tuple(bound(v) for v in schedule.no_deps),
            dumps=tuple(bound(v) for v in schedule.dumps),
            task=None if schedule.task is None else bound(schedule.task),
        )

    match stmt:
        case Op():
            result = None if stmt.result is None else bound(stmt.result)
            return replace(stmt, operands=all_read(stmt.operands), result=result)
        case Call():
            return replace(
                stmt,
                operands=all_read(stmt.operands),
                results=tuple(bound(v) for v in stmt.results),
                schedule=scheduled(stmt.schedule),
            )
        case For():
            return replace(
                stmt,
                var=bound(stmt.var),
                start=read(stmt.start),
                stop=read(stmt.stop),
                step=read(stmt.step),
                carried=carried_on(stmt.carried),
                body=substitute(stmt.body, mapping),
                yields=all_read(stmt.yields),
            )
        case While():
            return replace(
                stmt,
                carried=carried_on(stmt.carried),
                condition_body=substitute(stmt.condition_body, mapping),
                condition=read(stmt.condition),
                body=substitute(stmt.body, mapping),
                yields=all_read(stmt.yields),
            )
        case If():
            return replace(
                stmt,
                condition=read(stmt.condition),
                then_body=substitute(stmt.then_body, mapping),
                then_yields=all_read(stmt.then_yields),
                else_body=substitute(stmt.else_body, mapping),
                else_yields=all_read(stmt.else_yields),
                results=tuple(bound(v) for v in stmt.results),
            )
        case Scope():
            body = substitute(stmt.body, mapping)
            return replace(stmt, body=body, schedule=scheduled(stmt.schedule))
        case ManualScope():
            return replace(stmt, body=substitute(stmt.body, mapping))
        case Return():
            return replace(stmt, values=all_read(stmt.values))


def fresh(var: Var) -> Var:
    """Another variable of the same name and type."""
    return Var(var.name, var.type)
