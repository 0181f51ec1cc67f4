"""Pass: an address for every tile, in bytes from the start of its memory space.

Tiles that meet in loops and branches get one buffer; so does a tile and its copy, and the result
of an elementwise operation and an operand that dies there, wherever their lifetimes allow it.
Copies that became copies of a buffer to itself disappear. Buffers whose lifetimes do not overlap
share memory. The address stands in the attribute ``addr`` of the operation that defines a tile;
loop arguments, loop results and branch results have the address of what they are made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    For,
    Function,
    FunctionKind,
    If,
    MemorySpace,
    Op,
    Operand,
    Program,
    Span,
    Stmt,
    TileType,
    Var,
    While,
)
from pypto.ir.passes.liveness import IN_PLACE, Lifetime, liveness_of, overlap
from pypto.ir.passes.place_operands import in_core_ops
from pypto.ir.passes.rewrite import blocks, results, substitute, walk
from pypto.ir.passes.target import TargetLimits
from pypto.ir.passes.tile_layout import ALIGNMENT, tile_bytes

# How many of the tiles in the way an error names.
_NAMED = 4


class CapacityError(CompileError):
    """A memory space cannot hold the tiles of a function."""


def plan_memory(program: Program, target: TargetLimits) -> Program:
    """The program with an address for every tile.

    Raises CompileError at the tile's definition where a memory space cannot hold it.
    """
    functions = {
        name: _planned(function, target) if function.func_type is FunctionKind.INCORE else function
        for name, function in program.functions.items()
    }
    return replace(program, functions=MappingProxyType(functions))


@dataclass(eq=False, slots=True)
class _Buffer:
    """Tiles that share their memory; all have one element type, shape and space."""

    tiles: list[Var]
    lifetimes: list[Lifetime]
    span: Span

    @property
    def type(self) -> TileType:
        return _tile_type(self.tiles[0])

    @property
    def size(self) -> int:
        return tile_bytes(self.type)

    @property
    def start(self) -> int:
        return min(lifetime.start for lifetime in self.lifetimes)


def _tile_type(var: Var) -> TileType:
    assert isinstance(var.type, TileType)
    return var.type


class _Buffers:
    """A partition of the tiles of a function into buffers."""

    def __init__(self, body: Sequence[Stmt]) -> None:
        spans = _spans(body)
        self._of = {
            var: _Buffer([var], [lifetime], spans[var])
            for var, lifetime in liveness_of(body).items()
        }

    def __getitem__(self, var: Var) -> _Buffer:
        return self._of[var]

    def all(self) -> list[_Buffer]:
        """Every buffer once, in order of first use."""
        return sorted(dict.fromkeys(self._of.values()), key=lambda b: b.start)

    def join(self, first: Var, second: Var) -> None:
        """Put two tiles in one buffer, whatever their lifetimes."""
        one, other = self._of[first], self._of[second]
        if one is other:
            return
        one.tiles += other.tiles
        one.lifetimes += other.lifetimes
        for var in other.tiles:
            self._of[var] = one

    def try_join(self, first: Var, second: Var) -> None:
        """Put two tiles in one buffer if they are alike and never hold two values at once."""
        one, other = self._of[first], self._of[second]
        alike = (one.type.shape, one.type.dtype, one.type.space) == (
            other.type.shape,
            other.type.dtype,
            other.type.space,
        )
        if one is other or not alike:
            return
        if not overlap(one.lifetimes, other.lifetimes, settled=False):
            self.join(first, second)


def _planned(function: Function, target: TargetLimits) -> Function:
    buffers = _Buffers(function.body)
    _join_meeting(function.body, buffers)
    _join_copies(function.body, buffers)
    _join_in_place(function.body, buffers)
    addresses: dict[_Buffer, int] = {}
    for space, capacity in target.capacity.items():
        mine = [b for b in buffers.all() if b.type.space is space]
        addresses.update(_place(mine, space, capacity, target.arch))
    same = {
        stmt.result: stmt.operands[0]
        for stmt in walk(function.body)
        if isinstance(stmt, Op) and _copies_nothing(stmt, buffers) and stmt.result is not None
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


def _spans(body: Sequence[Stmt]) -> dict[Var, Span]:
    spans: dict[Var, Span] = {}
    for stmt in walk(body):
        for var in results(stmt):
            spans[var] = stmt.span
        for block in blocks(stmt):
            for var in block.arguments:
                spans[var] = stmt.span
    return spans


def _join_meeting(body: Sequence[Stmt], buffers: _Buffers) -> None:
    for stmt in walk(body):
        match stmt:
            case For() | While():
                for carried, after in zip(stmt.carried, stmt.yields, strict=True):
                    _join_all((carried.arg, carried.init, carried.result, after), buffers)
            case If():
                pairs = zip(stmt.results, stmt.then_yields, stmt.else_yields, strict=True)
                for meeting in pairs:
                    _join_all(meeting, buffers)
            case _:
                pass


def _join_all(operands: Iterable[Operand], buffers: _Buffers) -> None:
    tiles = [o for o in operands if isinstance(o, Var) and isinstance(o.type, TileType)]
    for tile in tiles[1:]:
        buffers.join(tiles[0], tile)


def _is_copy(op: Op) -> bool:
    source = op.operands[0] if op.operands else None
    return (
        op.op == "tile.move"
        and isinstance(source, Var)
        and op.result is not None
        and op.result.type == source.type
    )


def _copies_nothing(op: Op, buffers: _Buffers) -> bool:
    if not _is_copy(op) or op.result is None:
        return False
    source = op.operands[0]
    return isinstance(source, Var) and buffers[source] is buffers[op.result]


def _join_copies(body: Sequence[Stmt], buffers: _Buffers) -> None:
    """Innermost copies first: they run most often."""
    copies = [stmt for stmt in walk(body) if isinstance(stmt, Op) and _is_copy(stmt)]

    def depth(op: Op) -> int:
        assert op.result is not None
        return len(buffers[op.result].lifetimes[0].loops)

    for op in sorted(copies, key=depth, reverse=True):
        source = op.operands[0]
        assert isinstance(source, Var) and op.result is not None
        buffers.try_join(source, op.result)


def _join_in_place(body: Sequence[Stmt], buffers: _Buffers) -> None:
    for stmt in walk(body):
        if isinstance(stmt, Op) and stmt.result is not None and stmt.op != "tile.move":
            for index in IN_PLACE.get(stmt.op, ()):
                operand = stmt.operands[index]
                if isinstance(operand, Var):
                    buffers.try_join(operand, stmt.result)


def _resolved(same: dict[Var, Operand]) -> dict[Var, Operand]:
    """Chains of dropped copies lead to what was copied first."""

    def origin(operand: Operand) -> Operand:
        while isinstance(operand, Var) and operand in same:
            operand = same[operand]
        return operand

    return {var: origin(var) for var in same}


def _place(
    buffers: Sequence[_Buffer], space: MemorySpace, capacity: int, arch: str
) -> dict[_Buffer, int]:
    for buffer in buffers:
        if buffer.size > capacity:
            raise CapacityError(
                f"{_described(buffer)} takes {buffer.size} bytes of {space.name} memory, but "
                f"{arch} has {capacity}: use a smaller tile",
                buffer.span,
            )
    by_size = sorted(buffers, key=lambda b: -b.size)
    placed = _first_fit(buffers, capacity) or _first_fit(by_size, capacity)
    if placed is not None:
        return placed
    raise _too_much(buffers, space, capacity, arch)


def _first_fit(buffers: Sequence[_Buffer], capacity: int) -> dict[_Buffer, int] | None:
    """Each buffer at the lowest address that no neighbour in time takes."""
    placed: dict[_Buffer, int] = {}
    for buffer in buffers:
        taken = sorted(
            (address, address + other.size)
            for other, address in placed.items()
            if overlap(buffer.lifetimes, other.lifetimes, settled=True)
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
    return placed


def _too_much(
    buffers: Sequence[_Buffer], space: MemorySpace, capacity: int, arch: str
) -> CapacityError:
    """Blame the first tile that, with all that is alive beside it, asks for too much."""
    worst, worst_need, beside = buffers[0], 0, list(buffers)
    for buffer in buffers:
        alive = [b for b in buffers if b is not buffer and _alive_at(b, buffer.start)]
        need = buffer.size + sum(b.size for b in alive)
        if need > worst_need:
            worst, worst_need, beside = buffer, need, alive
        if need > capacity:
            break
    largest = sorted(beside, key=lambda b: -b.size)[:_NAMED]
    names = ", ".join(f"{_described(b)} of {b.size} bytes" for b in largest)
    more = len(beside) - len(largest)
    return CapacityError(
        f"{_described(worst)} takes {worst.size} bytes of {space.name} memory beside {names}"
        f"{f' and {more} more' if more > 0 else ''}: {worst_need} bytes together, but {arch} has "
        f"{capacity}; use smaller tiles or fewer at once",
        worst.span,
    )


def _alive_at(buffer: _Buffer, point: int) -> bool:
    return any(x.start <= point <= x.settled_end for x in buffer.lifetimes)


def _described(buffer: _Buffer) -> str:
    type_ = buffer.type
    return f"tile {buffer.tiles[0].name} ({type_.dtype} {list(type_.shape)})"
