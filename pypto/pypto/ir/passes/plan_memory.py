"""Pass: an address for every tile, in bytes from the start of its memory space.

Tiles share memory where their lifetimes allow it, as one buffer (:mod:`pypto.ir.passes.buffers`)
or as buffers one after the other. Copies of a buffer to itself disappear. The address stands in
the attribute ``addr`` of the operation that defines a tile; loop arguments, loop results and
branch results have the address of what they are made from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from pypto.ir.nodes import (
    Function,
    FunctionKind,
    MemorySpace,
    Op,
    Operand,
    Program,
    Stmt,
    TileType,
    Var,
)
from pypto.ir.passes.buffers import Buffer, Buffers
from pypto.ir.passes.capacity import CapacityError, too_large, too_much
from pypto.ir.passes.place_operands import in_core_ops
from pypto.ir.passes.rewrite import substitute, walk
from pypto.ir.passes.target import TargetLimits
from pypto.ir.passes.tile_layout import ALIGNMENT

__all__ = ["CapacityError", "plan_memory"]


def plan_memory(program: Program, target: TargetLimits) -> Program:
    """The program with an address for every tile.

    Raises CompileError at the tile's definition where a memory space cannot hold it.
    """
    functions = {
        name: _planned(function, target) if function.func_type is FunctionKind.INCORE else function
        for name, function in program.functions.items()
    }
    return replace(program, functions=MappingProxyType(functions))


def _planned(function: Function, target: TargetLimits) -> Function:
    buffers = Buffers(function.body)
    found = buffers.all()
    addresses: dict[Buffer, int] = {}
    for space, capacity in target.capacity.items():
        mine = [b for b in found if b.type.space is space]
        addresses.update(_place(mine, space, capacity, target.arch))
    same = {
        stmt.result: stmt.operands[0]
        for stmt in walk(function.body)
        if isinstance(stmt, Op) and buffers.copies_nothing(stmt) and stmt.result is not None
    }

    def addressed(op: Op) -> Sequence[Stmt]:
        if op.result in same:
            return ()
        if op.result is None or not isinstance(op.result.type, TileType):
            return (op,)
        attrs = {**op.attrs, "addr": addresses[buffers[op.result]]}
        return (replace(op, attrs=MappingProxyType(attrs)),)

    function = in_core_ops(function, addressed)
    return replace(function, body=substitute(function.body, _resolved(same)))


def _resolved(same: dict[Var, Operand]) -> dict[Var, Operand]:
    """Chains of dropped copies lead to what was copied first."""

    def origin(operand: Operand) -> Operand:
        while isinstance(operand, Var) and operand in same:
            operand = same[operand]
        return operand

    return {var: origin(var) for var in same}


def _place(
    buffers: Sequence[Buffer], space: MemorySpace, capacity: int, arch: str
) -> dict[Buffer, int]:
    for buffer in buffers:
        if buffer.size > capacity:
            raise too_large(buffer, capacity, arch)
    for order in _orders(buffers):
        placed = _first_fit(order, capacity)
        if placed is not None:
            return placed
    raise too_much(buffers, space, capacity, arch)


def _orders(buffers: Sequence[Buffer]) -> Iterator[Sequence[Buffer]]:
    """Orders in which to place buffers; each leaves other gaps than the ones before."""
    yield buffers
    yield sorted(buffers, key=lambda b: -b.size)
    yield sorted(buffers, key=lambda b: b.start - b.end)
    yield sorted(buffers, key=lambda b: -b.size * (b.end - b.start))


def _first_fit(buffers: Sequence[Buffer], capacity: int) -> dict[Buffer, int] | None:
    """Each buffer at the lowest address that no neighbour in time takes."""
    placed: dict[Buffer, int] = {}
    # In order of first use, a buffer whose end has passed is no one's neighbour any more.
    ordered = all(a.start <= b.start for a, b in pairwise(buffers))
    near: list[Buffer] = []
    for buffer in buffers:
        if ordered:
            near = [other for other in near if other.end >= buffer.start]
        taken = sorted(
            (placed[other], placed[other] + other.size)
            for other in near
            if buffer.meets(other, settled=True)
        )
        address = 0
        for begin, end in taken:
            if address + buffer.size <= begin:
                break
            address = max(address, end)
        if address + buffer.size > capacity:
            return None
        assert address % ALIGNMENT == 0
        placed[buffer] = address
        near.append(buffer)
    return placed
