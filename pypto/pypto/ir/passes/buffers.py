"""Which tiles share their memory: the partition of a function's tiles into buffers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pypto.ir.nodes import For, If, Op, Operand, Span, Stmt, TileType, Var, While
from pypto.ir.passes.liveness import IN_PLACE, Lifetime, liveness_of, overlap
from pypto.ir.passes.rewrite import blocks, results, walk
from pypto.ir.passes.tile_layout import tile_bytes


@dataclass(eq=False, slots=True)
class Buffer:
    """Tiles that share their memory; all have one element type, shape and space.

    ``name``, ``type`` and ``span`` are those of one of them. From ``start`` to ``end``, some of
    them are alive, reads being taken to last until their operation has written.
    """

    name: str
    type: TileType
    span: Span
    tiles: list[Var]
    lifetimes: list[Lifetime]
    start: int
    end: int

    @property
    def size(self) -> int:
        """The bytes that it takes."""
        return tile_bytes(self.type)

    def meets(self, other: Buffer, *, settled: bool) -> bool:
        """Whether a tile of each may be alive at once."""
        if self.start > other.end or other.start > self.end:
            return False
        return overlap(self.lifetimes, other.lifetimes, settled=settled)

    def alive_at(self, point: int) -> bool:
        """Whether one of its tiles is alive at a point."""
        return any(x.start <= point <= x.settled_end for x in self.lifetimes)


class Buffers:
    """The buffers of a body.

    Tiles that meet in loops and branches get one; so does a tile and its copy, and the result of
    an elementwise operation and an operand that dies there, wherever their lifetimes allow it.
    """

    def __init__(self, body: Sequence[Stmt]) -> None:
        spans = _spans(body)
        self._of: dict[Var, Buffer] = {}
        for var, lifetime in liveness_of(body).items():
            assert isinstance(var.type, TileType)
            start, end = lifetime.start, lifetime.settled_end
            self._of[var] = Buffer(var.name, var.type, spans[var], [var], [lifetime], start, end)
        self._join_meeting(body)
        self._join_copies(body)
        self._join_in_place(body)

    def __getitem__(self, var: Var) -> Buffer:
        return self._of[var]

    def all(self) -> list[Buffer]:
        """Every buffer once, in order of first use."""
        return sorted(dict.fromkeys(self._of.values()), key=lambda b: b.start)

    def copies_nothing(self, op: Op) -> bool:
        """Whether an operation copies a buffer to itself."""
        if not _is_copy(op) or op.result is None:
            return False
        source = op.operands[0]
        return isinstance(source, Var) and self._of[source] is self._of[op.result]

    def _join(self, first: Var, second: Var) -> None:
        """Put two tiles in one buffer, whatever their lifetimes."""
        kept, dropped = self._of[first], self._of[second]
        if kept is dropped:
            return
        if len(kept.tiles) < len(dropped.tiles):
            dropped.name, dropped.type, dropped.span = kept.name, kept.type, kept.span
            kept, dropped = dropped, kept
        kept.tiles += dropped.tiles
        kept.lifetimes += dropped.lifetimes
        kept.start, kept.end = min(kept.start, dropped.start), max(kept.end, dropped.end)
        for var in dropped.tiles:
            self._of[var] = kept

    def _try_join(self, first: Var, second: Var) -> None:
        """Put two tiles in one buffer if they are alike and never hold two values at once."""
        one, other = self._of[first], self._of[second]
        alike = (one.type.shape, one.type.dtype, one.type.space) == (
            other.type.shape,
            other.type.dtype,
            other.type.space,
        )
        if one is not other and alike and not one.meets(other, settled=False):
            self._join(first, second)

    def _join_meeting(self, body: Sequence[Stmt]) -> None:
        for stmt in walk(body):
            match stmt:
                case For() | While():
                    for carried, after in zip(stmt.carried, stmt.yields, strict=True):
                        self._join_all((carried.arg, carried.init, carried.result, after))
                case If():
                    pairs = zip(stmt.results, stmt.then_yields, stmt.else_yields, strict=True)
                    for meeting in pairs:
                        self._join_all(meeting)
                case _:
                    pass

    def _join_all(self, operands: Iterable[Operand]) -> None:
        tiles = [o for o in operands if isinstance(o, Var) and isinstance(o.type, TileType)]
        for tile in tiles[1:]:
            self._join(tiles[0], tile)

    def _join_copies(self, body: Sequence[Stmt]) -> None:
        """Innermost copies first: they run most often."""
        copies = [stmt for stmt in walk(body) if isinstance(stmt, Op) and _is_copy(stmt)]

        def depth(op: Op) -> int:
            assert op.result is not None
            return len(self._of[op.result].lifetimes[0].loops)

        for op in sorted(copies, key=depth, reverse=True):
            source = op.operands[0]
            assert isinstance(source, Var) and op.result is not None
            self._try_join(source, op.result)

    def _join_in_place(self, body: Sequence[Stmt]) -> None:
        for stmt in walk(body):
            if isinstance(stmt, Op) and stmt.result is not None and stmt.op != "tile.move":
                for index in IN_PLACE.get(stmt.op, ()):
                    operand = stmt.operands[index]
                    if isinstance(operand, Var):
                        self._try_join(operand, stmt.result)


def _spans(body: Sequence[Stmt]) -> dict[Var, Span]:
    spans: dict[Var, Span] = {}
    for stmt in walk(body):
        for var in results(stmt):
            spans[var] = stmt.span
        for block in blocks(stmt):
            for var in block.arguments:
                spans[var] = stmt.span
    return spans


def _is_copy(op: Op) -> bool:
    source = op.operands[0] if op.operands else None
    return (
        op.op == "tile.move"
        and isinstance(source, Var)
        and op.result is not None
        and op.result.type == source.type
    )
