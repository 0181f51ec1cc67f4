"""Memory that InCore functions need beside their arguments.

An InCore function cannot create tensors, so whoever calls it does: each workspace is one more
parameter, an output, and every call creates a tensor for it first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType

from pypto.ir.nodes import (
    Call,
    Direction,
    Function,
    Op,
    Operand,
    Param,
    Program,
    Stmt,
    Var,
)
from pypto.ir.passes.rewrite import fresh, substitute, with_bodies


def with_workspaces(program: Program, needed: Mapping[str, Sequence[Op]]) -> Program:
    """The program in which callers create what their callees need.

    ``needed`` has, by function, operations that create tensors, and those that say how large
    they are, over nothing but the function's parameters. The created tensors become parameters.
    """
    if not any(needed.values()):
        return program
    functions = {
        name: _taking(
            replace(function, body=_calling(function.body, program.functions, needed)),
            _workspaces(needed.get(name, ())),
        )
        for name, function in program.functions.items()
    }
    return replace(program, functions=MappingProxyType(functions))


def _taking(function: Function, workspaces: Sequence[Var]) -> Function:
    """A function with further outputs, each of a name that no other parameter has."""
    taken = {param.name_hint for param in function.params}
    renamed: dict[Var, Operand] = {}
    params = list(function.params)
    for var in workspaces:
        name = next(n for n in _names(var.name) if n not in taken)
        taken.add(name)
        param = Var(name, var.type)
        renamed[var] = param
        params.append(Param(param, Direction.Out))
    return replace(function, params=tuple(params), body=substitute(function.body, renamed))


def _names(name: str) -> Iterator[str]:
    yield name
    for number in count(1):
        yield f"{name}_{number}"


def _workspaces(needed: Sequence[Op]) -> list[Var]:
    return [op.result for op in needed if op.op == "tensor.create" and op.result is not None]


def _calling(
    body: Sequence[Stmt], functions: Mapping[str, Function], needed: Mapping[str, Sequence[Op]]
) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Call):
            out.append(with_bodies(stmt, lambda inner: _calling(inner, functions, needed)))
            continue
        before = needed.get(stmt.callee, ())
        params = functions[stmt.callee].params
        arguments = zip((p.var for p in params), stmt.operands, strict=True)
        own: dict[Var, Operand] = {op.result: fresh(op.result) for op in before if op.result}
        created = substitute(before, {**dict(arguments), **own})
        out.extend(replace(op, span=stmt.span) for op in created if isinstance(op, Op))
        spaces = [own[var] for var in _workspaces(before)]
        results = [fresh(var) for var in spaces if isinstance(var, Var)]
        out.append(
            replace(
                stmt,
                operands=(*stmt.operands, *spaces),
                results=(*stmt.results, *results),
            )
        )
    return tuple(out)
