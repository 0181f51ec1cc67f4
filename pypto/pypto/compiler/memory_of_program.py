"""From a program whose tiles have addresses to the record of what memory they take, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pypto.compiler.memory_record import (
    FunctionMemory,
    MemoryRecord,
    Place,
    RecordedStatement,
    RecordedTile,
)
from pypto.ir.nodes import (
    Call,
    Const,
    For,
    Function,
    FunctionKind,
    If,
    Op,
    Operand,
    Program,
    Span,
    Stmt,
    While,
)
from pypto.ir.passes.liveness import Liveness
from pypto.ir.passes.memory_plan import PlacedTile, memory_plan
from pypto.ir.passes.rewrite import blocks, operands, results, walk
from pypto.ir.passes.target import TargetLimits


def is_planned(program: Program) -> bool:
    """Whether memory has been planned: some tile has an address."""
    return any(
        isinstance(stmt, Op) and "addr" in stmt.attrs
        for function in program.functions.values()
        for stmt in walk(function.body)
    )


def memory_of(program: Program, target: TargetLimits) -> MemoryRecord:
    """The record of a planned program, with the lines of the user's files as far as it has them."""
    functions = tuple(
        _function(function)
        for function in program.functions.values()
        if function.func_type is FunctionKind.INCORE and function.external is None
    )
    units = {place.unit for function in functions for place in _places(function)}
    return MemoryRecord(
        program=program.name,
        arch=target.arch,
        capacity={space.name: size for space, size in target.capacity.items()},
        functions=functions,
        sources={unit: program.sources[unit] for unit in sorted(units & program.sources.keys())},
    )


def _places(function: FunctionMemory) -> Iterator[Place]:
    yield from (statement.place for statement in function.statements)
    yield from (tile.place for tile in function.tiles)


def _function(function: Function) -> FunctionMemory:
    timeline = Liveness.of(function.body)
    depths = dict(_depths(function.body, 0))
    return FunctionMemory(
        name=function.name,
        unit=function.span.unit,
        positions=timeline.positions,
        statements=tuple(
            RecordedStatement(position, depths[id(stmt)], _text(stmt), _place(stmt.span))
            for position, stmt in sorted(timeline.statements.items())
        ),
        tiles=tuple(map(_tile, memory_plan(function))),
    )


def _tile(tile: PlacedTile) -> RecordedTile:
    return RecordedTile(
        name=tile.name,
        space=tile.space.name,
        shape=tile.shape,
        dtype=str(tile.dtype),
        offset=tile.offset,
        bytes=tile.size,
        first=tile.first,
        last=tile.last,
        place=_place(tile.span),
    )


def _depths(body: Sequence[Stmt], depth: int) -> Iterator[tuple[int, int]]:
    """From a statement's identity to how deep it is nested."""
    for stmt in body:
        yield id(stmt), depth
        for block in blocks(stmt):
            yield from _depths(block.body, depth + 1)


def _place(span: Span) -> Place:
    return Place(span.unit, span.line)


def _text(stmt: Stmt) -> str:
    """A statement on one line: what it makes from what, without its body and its attributes."""
    read = ", ".join(map(_name, operands(stmt)))
    bound = ", ".join(var.name for var in results(stmt))
    match stmt:
        case Op(op=op):
            text = f"{op}({read})"
        case Call(callee=callee):
            text = f"{callee}({read})"
        case For(var=var, start=start, stop=stop, step=step):
            bounds = ", ".join(map(_name, (start, stop, step)))
            return f"for {var.name} in range({bounds})"
        case While():
            return "while"
        case If(condition=condition):
            return f"if {_name(condition)}"
        case _:
            return f"{type(stmt).__name__.lower()} {read}".strip()
    return f"{bound} = {text}" if bound else text


def _name(operand: Operand) -> str:
    return repr(operand.value) if isinstance(operand, Const) else operand.name
