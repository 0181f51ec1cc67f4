"""Loops and branches as `.pto` text.

Scalars are carried as values. A tile that is carried is a buffer, in which copying passes put what
each way leaves there, so here it is only checked to be one buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto.ir.errors import CompileError
from pypto.ir.nodes import Carried, For, If, Operand, ScalarType, Span, TileType, Var, While

if TYPE_CHECKING:
    from pypto.codegen.pto_kernel import KernelWriter


def write_loop(writer: KernelWriter, loop: For) -> None:
    """Write a counted loop."""
    scalars, types = _carried_scalars(loop)
    bounds = [writer.scalar(o) for o in (loop.start, loop.stop, loop.step)]
    inits = [writer.scalar(c.init) for c, _ in scalars]
    _bind_carried_tiles(writer, loop.carried)
    variable = writer.bind(loop.var)
    head = f"scf.for {variable} = {bounds[0]} to {bounds[1]} step {bounds[2]}"
    if scalars:
        given = _initial(writer, scalars, inits)
        results = ", ".join(writer.bind(c.result) for c, _ in scalars)
        head = f"{results} = {head} iter_args({given}) -> ({', '.join(types)})"
    writer.text.line(f"{head} {{")
    with writer.text.block():
        writer.write(loop.body)
        _check_carried(writer, loop)
        _write_yield(writer, [y for _, y in scalars], types)
    writer.text.line("}", loop.span)


def write_while(writer: KernelWriter, loop: While) -> None:
    """Write a loop that runs while its condition holds."""
    scalars, types = _carried_scalars(loop)
    inits = [writer.scalar(c.init) for c, _ in scalars]
    _bind_carried_tiles(writer, loop.carried)
    listed = ", ".join(types)
    head = f"scf.while : ({listed}) -> ({listed}) {{"
    if scalars:
        given = _initial(writer, scalars, inits)
        results = ", ".join(writer.bind(c.result) for c, _ in scalars)
        head = f"{results} = scf.while ({given}) : ({listed}) -> ({listed}) {{"
    writer.text.line(head)
    with writer.text.block():
        writer.write(loop.condition_body)
        handed = f"scf.condition({writer.scalar(loop.condition)})"
        if scalars:
            handed += f" {', '.join(writer.scalar(c.arg) for c, _ in scalars)} : {listed}"
        writer.text.line(handed)
    writer.text.line("} do {")
    if scalars:
        # The body's arguments are what the condition hands on, under names of their own.
        names = [writer.bind(c.arg) for c, _ in scalars]
        arguments = [f"{name}: {type_}" for name, type_ in zip(names, types, strict=True)]
        writer.text.line(f"^body({', '.join(arguments)}):")
    with writer.text.block():
        writer.write(loop.body)
        _check_carried(writer, loop)
        _write_yield(writer, [y for _, y in scalars], types)
    writer.text.line("}", loop.span)


def write_branch(writer: KernelWriter, branch: If) -> None:
    """Write a branch."""
    condition = writer.scalar(branch.condition)
    positions = [i for i, r in enumerate(branch.results) if isinstance(r.type, ScalarType)]
    results = [branch.results[i] for i in positions]
    types = [r.type.dtype.pto for r in results]
    head = f"scf.if {condition}"
    if results:
        named = ", ".join(writer.bind(r) for r in results)
        head = f"{named} = {head} -> ({', '.join(types)})"
    writer.text.line(f"{head} {{")
    with writer.text.block():
        writer.write(branch.then_body)
        _write_yield(writer, [branch.then_yields[i] for i in positions], types)
    if branch.else_body or results:
        writer.text.line("} else {")
        with writer.text.block():
            writer.write(branch.else_body)
            _write_yield(writer, [branch.else_yields[i] for i in positions], types)
    writer.text.line("}", branch.span)
    _bind_branch_tiles(writer, branch)


def _carried_scalars(loop: For | While) -> tuple[list[tuple[Carried, Operand]], list[str]]:
    """The scalars that a loop carries, each with its next value, and their types."""
    pairs = zip(loop.carried, loop.yields, strict=True)
    scalars = [(c, after) for c, after in pairs if isinstance(c.arg.type, ScalarType)]
    return scalars, [c.arg.type.dtype.pto for c, _ in scalars]


def _initial(
    writer: KernelWriter, scalars: Sequence[tuple[Carried, Operand]], inits: Sequence[str]
) -> str:
    """`%x = %init, %y = %other`."""
    names = [writer.bind(c.arg) for c, _ in scalars]
    return ", ".join(f"{name} = {init}" for name, init in zip(names, inits, strict=True))


def _write_yield(writer: KernelWriter, values: Sequence[Operand], types: Sequence[str]) -> None:
    if values:
        names = ", ".join(writer.scalar(v) for v in values)
        writer.text.line(f"scf.yield {names} : {', '.join(types)}")


def _bind_carried_tiles(writer: KernelWriter, carried: Sequence[Carried]) -> None:
    """A carried tile is the buffer that it starts in, all the way."""
    for c in carried:
        if isinstance(c.arg.type, TileType):
            assert isinstance(c.init, Var)
            writer.alias(c.arg, c.init)
            writer.alias(c.result, c.init)


def _check_carried(writer: KernelWriter, loop: For | While) -> None:
    for c, after in zip(loop.carried, loop.yields, strict=True):
        if not isinstance(c.arg.type, TileType):
            continue
        assert isinstance(after, Var)
        assert writer.address_of(after) == writer.address_of(c.arg), c.arg.name
        _same_valid(writer, c.arg, after, c.arg.name, loop.span)


def _same_valid(writer: KernelWriter, first: Var, second: Var, name: str, span: Span) -> None:
    if writer.valid(first) != writer.valid(second):
        raise CompileError(
            f"the valid region of {name} is another run-time value on another way here; "
            "compute it once, before the loop or branch",
            span,
        )


def _bind_branch_tiles(writer: KernelWriter, branch: If) -> None:
    pairs = zip(branch.results, branch.then_yields, branch.else_yields, strict=True)
    for result, first, second in pairs:
        if not isinstance(result.type, TileType):
            continue
        assert isinstance(first, Var) and isinstance(second, Var)
        assert writer.address_of(first) == writer.address_of(second), result.name
        if None in result.type.valid:
            _same_valid(writer, first, second, result.name, branch.span)
        rows, cols = writer.valid(first)
        writer.define(result, writer.address_of(first), (rows, cols))
