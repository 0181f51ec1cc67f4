"""Tensors of one and of three axes: planes, rows, other shapes of the same memory, batches."""

from __future__ import annotations

from choices import Name, Source, literal
from core_code import CoreCode
from program_text import AT, TILES, ProgramText


class Axes:
    """Writes tasks on `cube`, [TILES, R, C], and `edge`, [C], of the first element type."""

    def __init__(self, text: ProgramText, core: CoreCode) -> None:
        self.text = text
        self.expressions = core.expressions

    def index(self, counters: list[str]) -> str:
        return self.text.pick(["0", "2", f"m % {TILES}", *(f"{c} % {TILES}" for c in counters)])

    def task(self, depth: int, counters: list[str]) -> None:
        self.text.pick([self.plane, self.inside, self.flat, self.edge])(depth, counters)

    def plane(self, depth: int, counters: list[str]) -> None:
        """A plane is a view in orchestration."""
        t, (r, c), dtype = self.text, self.text.shape, self.text.dtypes[0]
        plane = t.fresh("plane")
        part = f"pl.slice(cube, [1, {r}, {c}], [{self.index(counters)}, 0, 0], drop_dims=[0])"
        t.line(depth, f"{plane} = {t.pick([part, f'cube[{self.index(counters)}]'])}")
        t.line(depth, AT)
        source = Source((r, c), [Name("a", dtype)], counters, scalars=("n", "m"))
        t.line(depth + 1, f"a = pl.load({plane}, [0, 0], [{r}, {c}])")
        t.line(depth + 1, f"a = {self.expressions.bound(source, dtype)}")
        t.line(depth + 1, f"{plane} = pl.store(a, [0, 0], {plane})")

    def inside(self, depth: int, counters: list[str]) -> None:
        """A plane is a copy on a core, and is written back into another."""
        t, (r, c), dtype = self.text, self.text.shape, self.text.dtypes[0]
        t.line(depth, AT)
        t.line(depth + 1, f"a = cube[{self.index(counters)}]")
        source = Source((r, c), [Name("a", dtype)], counters, tensors=True, scalars=("n", "m"))
        t.line(depth + 1, f"a = {self.expressions.bound(source, dtype)}")
        row = t.number(0, r - 1)
        if t.chance(50):
            t.line(depth + 1, f"cube[{self.index(counters)}] = a")
        else:
            t.line(depth + 1, f"cube[{self.index(counters)}, {row}] = a[{t.number(0, r - 1)}]")

    def flat(self, depth: int, counters: list[str]) -> None:
        """The planes one below the other."""
        t, (r, c), dtype = self.text, self.text.shape, self.text.dtypes[0]
        flat = t.fresh("flat")
        t.line(depth, f"{flat} = pl.reshape(cube, [{t.height}, {c}])")
        t.line(depth, f"for i{depth} in pl.spmd({TILES}):")
        source = Source((r, c), [Name("a", dtype)], [*counters, f"i{depth}"], scalars=("n", "m"))
        t.line(depth + 1, f"a = pl.load({flat}, [i{depth} * {r}, 0], [{r}, {c}])")
        t.line(depth + 1, f"a = {self.expressions.bound(source, dtype)}")
        t.line(depth + 1, f"{flat} = pl.store(a, [i{depth} * {r}, 0], {flat})")

    def edge(self, depth: int, counters: list[str]) -> None:
        """A tensor of one axis is a row where it meets a matrix."""
        t, r, dtype = self.text, self.text.shape[0], self.text.dtypes[0]
        t.line(depth, AT)
        t.line(depth + 1, f"a = cube[{self.index(counters)}]")
        t.line(depth + 1, "b = edge[:]")
        low, high = literal(dtype, -8), literal(dtype, 8)
        for _ in range(t.number(1, 2)):
            value = f"pl.{t.pick(['add', 'sub', 'mul', 'maximum'])}(a, b)"
            t.line(depth + 1, f"a = pl.minimum(pl.maximum({value}, {low}), {high})")
        if t.chance(50):
            t.line(depth + 1, f"edge[:] = a[{t.number(0, r - 1)}]")
        t.line(depth + 1, f"cube[{self.index(counters)}] = a")
