"""Pass: tiles that meet, in loops and branches, are copied to where they meet.

A tile is a mutable buffer, so a value that a loop carries lives in one buffer through all its
iterations. This pass makes each such place a copy of its own: one before the loop, one at the end
of the body, one at the end of each arm of a branch. Memory planning then gives the copies that
meet one buffer and drops every copy that turns out to copy a buffer to itself.

A value handed to another carried name (`a, b = b, a`) is first copied to a tile of its own, since
the copy into the other name's buffer may come before it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    Carried,
    For,
    FunctionKind,
    If,
    Op,
    Operand,
    Program,
    Span,
    Stmt,
    TileType,
    Type,
    Var,
    While,
)
from pypto.ir.passes.target import TargetLimits


def copy_carried_tiles(program: Program, target: TargetLimits) -> Program:
    """The program in which every tile that meets another is a copy made for that purpose."""
    functions = {
        name: replace(function, body=_copied(function.body))
        if function.func_type is FunctionKind.INCORE
        else function
        for name, function in program.functions.items()
    }
    return replace(program, functions=MappingProxyType(functions))


def _copied(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For() | While():
                out.extend(_loop(stmt))
            case If():
                out.append(_branch(stmt))
            case _:
                out.append(stmt)
    return tuple(out)


def _loop(loop: For | While) -> list[Stmt]:
    before: list[Stmt] = []
    carried: list[Carried] = []
    for c in loop.carried:
        init: Operand = c.init
        if isinstance(init, Var) and isinstance(init.type, TileType):
            _agree(c.arg, init.type, loop.span)
            init = _copy(before, init, c.arg.name, c.arg.type, loop.span)
        carried.append(replace(c, init=init))
    body = list(_copied(loop.body))
    arguments = {c.arg for c in loop.carried}
    yields = list(loop.yields)
    for index, value in enumerate(yields):
        if value in arguments and value is not loop.carried[index].arg and _is_tile(value):
            assert isinstance(value, Var)
            yields[index] = _copy(body, value, value.name, value.type, loop.span)
    for index, (value, c) in enumerate(zip(yields, loop.carried, strict=True)):
        if isinstance(value, Var) and isinstance(value.type, TileType) and value is not c.arg:
            _agree(c.arg, value.type, loop.span)
            yields[index] = _copy(body, value, c.arg.name, c.arg.type, loop.span)
    return [
        *before,
        replace(loop, carried=tuple(carried), body=tuple(body), yields=tuple(yields)),
    ]


def _branch(branch: If) -> If:
    then_body, else_body = list(_copied(branch.then_body)), list(_copied(branch.else_body))
    then_yields, else_yields = list(branch.then_yields), list(branch.else_yields)
    for index, result in enumerate(branch.results):
        for body, yields in ((then_body, then_yields), (else_body, else_yields)):
            value = yields[index]
            if isinstance(value, Var) and isinstance(value.type, TileType):
                _agree(result, value.type, branch.span)
                yields[index] = _copy(body, value, result.name, result.type, branch.span)
    return replace(
        branch,
        then_body=tuple(then_body),
        then_yields=tuple(then_yields),
        else_body=tuple(else_body),
        else_yields=tuple(else_yields),
    )


def _is_tile(operand: Operand) -> bool:
    return isinstance(operand, Var) and isinstance(operand.type, TileType)


def _copy(body: list[Stmt], source: Var, name: str, type_: Type, span: Span) -> Var:
    assert isinstance(type_, TileType)
    result = Var(name, type_)
    attrs = MappingProxyType({"space": type_.space})
    body.append(Op("tile.move", (source,), result, span, attrs))
    return result


def _agree(var: Var, other: TileType, span: Span) -> None:
    type_ = var.type
    assert isinstance(type_, TileType)
    if type_ == other:
        return
    raise CompileError(
        f"{var.name} is a {type_.dtype} tile {list(type_.shape)} with valid region "
        f"{list(type_.valid)} in {type_.space.name} on one way and a {other.dtype} tile "
        f"{list(other.shape)} with valid region {list(other.valid)} in {other.space.name} on "
        "another; a tile keeps its type where loops and branches meet",
        span,
    )
