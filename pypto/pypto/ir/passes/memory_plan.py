"""What memory planning decided, as a table: every tile of a function, where it lies and when.

Reads the result of :func:`pypto.ir.passes.plan_memory.plan_memory`; reports and tools use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto.ir.dtypes import DataType
from pypto.ir.nodes import (
    For,
    Function,
    If,
    MemorySpace,
    Op,
    Operand,
    Span,
    Stmt,
    TileType,
    Var,
    While,
)
from pypto.ir.passes.liveness import liveness_of
from pypto.ir.passes.rewrite import blocks, results, walk
from pypto.ir.passes.tile_layout import tile_bytes


@dataclass(frozen=True, slots=True)
class PlacedTile:
    """One tile of a function and its place.

    ``offset`` and ``size`` are bytes, the offset from the start of ``space``. ``first`` and
    ``last`` are the positions of the statements that define the tile and read it last, counted
    from 1 in program order; a loop counts twice, at its head and at its end, and a branch at its
    head, at the end of each arm and at its own end. Tiles of one offset and space whose lifetimes
    touch hand a value on: a loop's argument is the tile that it starts as.
    """

    name: str
    space: MemorySpace
    shape: tuple[int, int]
    dtype: DataType
    offset: int
    size: int
    first: int
    last: int
    span: Span


def memory_plan(function: Function) -> tuple[PlacedTile, ...]:
    """The tiles of an InCore function after memory planning, in order of definition."""
    addresses: dict[Var, int] = {}
    spans: dict[Var, Span] = {}
    _collect(function.body, addresses)
    for stmt in walk(function.body):
        for var in (*results(stmt), *(a for b in blocks(stmt) for a in b.arguments)):
            spans[var] = stmt.span
    tiles = [
        PlacedTile(
            name=var.name,
            space=type_.space,
            shape=type_.shape,
            dtype=type_.dtype,
            offset=addresses[var],
            size=tile_bytes(type_),
            first=lifetime.start // 2,
            last=lifetime.end // 2,
            span=spans[var],
        )
        for var, lifetime in liveness_of(function.body).items()
        if isinstance(type_ := var.type, TileType)
    ]
    return tuple(sorted(tiles, key=lambda tile: tile.first))


def _collect(body: Sequence[Stmt], addresses: dict[Var, int]) -> None:
    """The address of every tile; those that are handed on have the address of what they were."""

    def hand_on(source: Operand, *names: Var) -> None:
        if isinstance(source, Var) and isinstance(source.type, TileType):
            addresses.update(dict.fromkeys(names, addresses[source]))

    for stmt in body:
        match stmt:
            case Op() if stmt.result is not None and isinstance(stmt.result.type, TileType):
                address = stmt.attrs["addr"]
                assert isinstance(address, int)
                addresses[stmt.result] = address
            case For() | While():
                for carried in stmt.carried:
                    hand_on(carried.init, carried.arg, carried.result)
                for block in blocks(stmt):
                    _collect(block.body, addresses)
            case If():
                for block in blocks(stmt):
                    _collect(block.body, addresses)
                for result, value in zip(stmt.results, stmt.then_yields, strict=True):
                    hand_on(value, result)
            case _:
                pass
