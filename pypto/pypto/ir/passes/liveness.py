"""Where in a function each tile is alive.

Every statement has a position in program order. An operation reads at ``2 p`` and writes at
``2 p + 1``, so that a result may take the place of an operand that dies there. A loop has two
positions, its head (reads what it carries in, binds its arguments) and its end (reads the yields,
binds its results); a while loop has another between its condition and its body. A branch has the
end of each arm and its own end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pypto.ir.nodes import For, If, Op, Operand, Stmt, TileType, Var, While
from pypto.ir.ops import OPS
from pypto.ir.passes.rewrite import operands, results


@dataclass(slots=True)
class Lifetime:
    """Closed interval of points from definition to last read; ``depth`` counts loops around."""

    start: int
    end: int
    # End of each enclosing loop at the definition, outermost first, as loop identities.
    loops: tuple[int, ...]

    @property
    def settled_end(self) -> int:
        """The end, taking every read to last until its operation has written."""
        return self.end | 1


def overlap(first: Sequence[Lifetime], second: Sequence[Lifetime], *, settled: bool) -> bool:
    """Whether a tile of each may be alive at once."""
    for a in first:
        for b in second:
            a_end = a.settled_end if settled else a.end
            b_end = b.settled_end if settled else b.end
            if a.start <= b_end and b.start <= a_end:
                return True
    return False


# Operations whose result may be written over these operands, element by element.
IN_PLACE: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        name: spec.in_place
        for name, spec in OPS.items()
        if spec.in_place and name.startswith("tile.")
    }
)


@dataclass(slots=True)
class Liveness:
    """The lifetimes of the tiles of one InCore function, and the first position of each statement.

    Statements are numbered from 1, in program order; ``positions`` is the last number.
    """

    lifetimes: dict[Var, Lifetime] = field(default_factory=dict)
    statements: dict[int, Stmt] = field(default_factory=dict)
    _position: int = 0
    _loop_ends: dict[int, int] = field(default_factory=dict)
    _uses: list[tuple[Var, int, tuple[int, ...]]] = field(default_factory=list)

    @classmethod
    def of(cls, body: Sequence[Stmt]) -> Liveness:
        """Of a function's body."""
        liveness = cls()
        liveness._visit(body, ())
        liveness._settle()
        return liveness

    @property
    def positions(self) -> int:
        """How many positions there are."""
        return self._position

    def _next(self) -> int:
        self._position += 1
        return self._position

    def _define(self, var: Var, position: int, loops: tuple[int, ...]) -> None:
        if isinstance(var.type, TileType):
            point = 2 * position + 1
            self.lifetimes[var] = Lifetime(point, point, loops)

    def _use(self, operand: Operand, point: int, loops: tuple[int, ...]) -> None:
        if isinstance(operand, Var) and isinstance(operand.type, TileType):
            self._uses.append((operand, point, loops))

    def _visit(self, body: Sequence[Stmt], loops: tuple[int, ...]) -> None:
        for stmt in body:
            self.statements[self._position + 1] = stmt
            match stmt:
                case For() | While():
                    self._visit_loop(stmt, loops)
                case If():
                    self._visit_branch(stmt, loops)
                case _:
                    position = self._next()
                    in_place = IN_PLACE.get(stmt.op, ()) if isinstance(stmt, Op) else ()
                    for index, operand in enumerate(operands(stmt)):
                        late = 0 if index in in_place else 1
                        self._use(operand, 2 * position + late, loops)
                    for var in results(stmt):
                        self._define(var, position, loops)

    def _visit_loop(self, loop: For | While, loops: tuple[int, ...]) -> None:
        head = self._next()
        inner = (*loops, head)
        for carried in loop.carried:
            self._use(carried.init, 2 * head, loops)
            self._define(carried.arg, head, inner)
        if isinstance(loop, While):
            self._visit(loop.condition_body, inner)
            decided = self._next()
            for carried in loop.carried:  # where the condition is false, it is the result
                self._use(carried.arg, 2 * decided, inner)
        self._visit(loop.body, inner)
        end = self._next()
        self._loop_ends[head] = end
        for operand in loop.yields:
            self._use(operand, 2 * end, inner)
        for carried in loop.carried:
            self._define(carried.result, end, loops)

    def _visit_branch(self, branch: If, loops: tuple[int, ...]) -> None:
        self._next()
        for body, yields in (
            (branch.then_body, branch.then_yields),
            (branch.else_body, branch.else_yields),
        ):
            self._visit(body, loops)
            end = self._next()
            for operand in yields:
                self._use(operand, 2 * end, loops)
        joined = self._next()
        for var in branch.results:
            self._define(var, joined, loops)

    def _settle(self) -> None:
        for var, point, loops in self._uses:
            lifetime = self.lifetimes[var]
            # A loop that holds the read and not the definition needs the tile in every iteration.
            outer = [head for head in loops if head not in lifetime.loops]
            end = 2 * self._loop_ends[outer[0]] + 1 if outer else point
            lifetime.end = max(lifetime.end, end)


def liveness_of(body: Sequence[Stmt]) -> dict[Var, Lifetime]:
    """The lifetime of every tile that a body binds."""
    return Liveness.of(body).lifetimes
