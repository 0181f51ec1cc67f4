"""What one core does: variables that are computed, rebound in loops and branches, and stored."""

from __future__ import annotations

from dataclasses import replace

from choices import Name, Source, literal
from expressions import Expressions
from program_text import AT, ProgramText
from valid_regions import ValidRegions


class CoreCode:
    """Writes blocks of `pl.at`."""

    def __init__(self, text: ProgramText) -> None:
        self.text = text
        self.expressions = Expressions(text.random)
        self.regions = ValidRegions(text, self.expressions)

    def scope(self, depth: int, counters: list[str], extra: str = "", name: str = "") -> None:
        task = f" as {name}" if name else ""
        self.text.line(depth, AT.replace("):", f"{extra}){task}:"))
        source = self.source(counters, self.text.chance(40))
        self.body(depth + 1, source)
        self.store(depth + 1, source)

    def source(self, counters: list[str], tensors: bool, helper: str = "added") -> Source:
        t = self.text
        r, c = t.shape

        def load(dtype: str) -> str | None:
            if dtype not in t.dtypes:
                return None
            name, row = t.tensor(dtype), t.offset(counters)
            if tensors:
                start = t.pick(["0", str(r), str(2 * r)])
                sliced = f"{name}[{start}:{int(start) + r}, :]"
                return t.pick([f"pl.slice({name}, [{r}, {c}], [{row}, 0])", sliced])
            if t.chance(15):
                return self.regions.filled(name, row)
            return f"pl.load({name}, [{row}, 0], [{r}, {c}])"

        return Source(t.shape, [], list(counters), load, tensors, helper, ("n", "m"))

    def body(self, depth: int, source: Source) -> None:
        """Binds a variable of each type and a scalar, and rebinds them."""
        dtypes, scalar = self.text.dtypes, self.text.fresh("s")
        self.text.line(depth, f"{scalar} = {self.text.scalar([*source.scalars, *source.counters])}")
        source.scalars = (*source.scalars, scalar)
        for number, dtype in enumerate((*dtypes, dtypes[0])):
            name = f"v{number}"
            self.text.line(depth, f"{name} = {self.expressions.leaf(source, dtype).text}")
            source.names.append(Name(name, dtype))
        self.statements(depth, source, self.text.number(2, 5), 2)

    def statements(self, depth: int, source: Source, count: int, levels: int) -> None:
        t = self.text
        for _ in range(count):
            kind = t.number(0, 99)
            if kind >= 85 and levels:
                self.loop(depth, source, levels)
            elif kind >= 72 and levels:
                self.branch(depth, source, levels)
            elif kind >= 69:
                t.line(depth, "v0, v2 = v2, v0")
            elif kind >= 66:
                scalar = source.scalars[-1]
                t.line(depth, f"{scalar} = {t.scalar([*source.scalars, *source.counters])}")
            elif kind >= 63 and not source.tensors:
                self.element(depth, source)
            elif kind >= 55 and [n for n in source.names if n.dtype != "BOOL"]:
                self.regions.statements(depth, source)
            else:
                v = t.pick(source.names)
                t.line(depth, f"{v.text} = {self.expressions.bound(source, v.dtype)}")

    def element(self, depth: int, source: Source) -> None:
        """One element of a tile, or a part of it, is written."""
        t = self.text
        row, col = (t.number(0, e - 1) for e in t.shape)
        v = t.pick(source.names)
        if t.chance(30):
            other = t.fresh("other")
            t.line(depth, f"{other} = {self.expressions.leaf(source, v.dtype).text}")
            t.line(depth, f"{v.text}[{row}:{row + 1}, :] = {other}[{row}:{row + 1}, :]")
            return
        value = literal(v.dtype, t.number(-4, 4))
        if v.dtype in ("FP32", "INT32") and t.chance(50):
            value = f"v0[0, {col}]" if v.dtype == t.dtypes[0] else value
        t.line(depth, f"{v.text}[{row}, {col}] = {value}")

    def inside(self, source: Source, counter: str) -> Source:
        return replace(
            self.source([*source.counters, counter], source.tensors, source.helper),
            names=source.names,
            scalars=source.scalars,
        )

    def loop(self, depth: int, source: Source, levels: int) -> None:
        t, counter = self.text, f"k{depth}"
        kind = t.pick(["range", "pipeline", "unroll", "while", "carried", "nested"])
        if kind == "while":
            self.while_loop(depth, source)
        elif kind in ("carried", "nested"):
            self.carried(depth, source, kind == "nested")
        else:
            bounds = "2" if kind == "unroll" else t.range(source.counters)
            if kind == "pipeline":
                bounds += ", stage=2"
            t.line(depth, f"for {counter} in pl.{kind}({bounds}):")
            inner = self.inside(source, counter)
            self.statements(depth + 1, inner, t.number(1, 2), levels - 1)

    def while_loop(self, depth: int, source: Source) -> None:
        t, names = self.text, source.names
        left, v = f"w{depth}", f"c{depth}"
        t.line(depth, f"for ({left}, {v}) in pl.while_(init_values=({t.pick(['n', 'm'])}, v1)):")
        t.line(depth + 1, f"pl.cond({left} > 0)")
        inner = replace(source, names=[*names[:1], Name(v, names[1].dtype), *names[2:]])
        e = self.expressions.bound(inner, names[1].dtype)
        t.line(depth + 1, f"r{depth}, v1 = pl.yield_({left} - 1, {e})")

    def carried(self, depth: int, source: Source, nested: bool) -> None:
        """Two values that are handed on, by way of another loop and a branch if `nested`."""
        t, names, counter = self.text, source.names, f"k{depth}"
        p, q = f"p{depth}", f"q{depth}"
        bounds = f"{t.range(source.counters)}, init_values=(v0, v1)"
        t.line(depth, f"for {counter}, ({p}, {q}) in pl.range({bounds}):")
        inner = self.inside(source, counter)
        inner.names = [Name(p, names[0].dtype), Name(q, names[1].dtype), names[2]]
        one = self.expressions.bound(inner, names[0].dtype)
        two = self.expressions.bound(inner, names[1].dtype)
        if nested:
            kept, given, chosen = f"u{depth}", f"g{depth}", f"e{depth}"
            count = t.pick(["2", "n", "m % 2"])
            t.line(depth + 1, f"for j{depth}, ({kept},) in pl.range({count}, init_values=({q},)):")
            deep = replace(inner, names=[*inner.names[:1], Name(kept, names[1].dtype)])
            two = self.expressions.bound(deep, names[1].dtype)
            t.line(depth + 2, f"{given} = pl.yield_({two})")
            two = given
            t.line(depth + 1, f"if {t.condition(inner.counters, tensors=False)}:")
            t.line(depth + 2, f"{chosen} = pl.yield_({one})")
            t.line(depth + 1, "else:")
            other = self.expressions.bound(inner, names[0].dtype)
            t.line(depth + 2, f"{chosen} = pl.yield_({other})")
            one = chosen
        t.line(depth + 1, f"v0, v1 = pl.yield_({one}, {two})")

    def branch(self, depth: int, source: Source, levels: int) -> None:
        t = self.text
        heading = f"if {t.condition(source.counters, tensors=False)}:"
        if t.chance(30):
            v = t.pick(source.names)
            t.line(depth, heading)
            t.line(depth + 1, f"{v.text} = pl.yield_({self.expressions.bound(source, v.dtype)})")
            t.line(depth, "else:")
            t.line(depth + 1, f"{v.text} = pl.yield_({self.expressions.bound(source, v.dtype)})")
            return
        t.line(depth, heading)
        self.statements(depth + 1, source, t.number(1, 2), levels - 1)
        if t.chance(30):
            t.line(depth, f"elif {t.condition(source.counters, tensors=False)}:")
            self.statements(depth + 1, source, 1, levels - 1)
        if t.chance(60):
            t.line(depth, "else:")
            self.statements(depth + 1, source, 1, levels - 1)

    def store(self, depth: int, source: Source) -> None:
        t = self.text
        for _ in range(t.number(1, 2)):
            v, row = t.pick(source.names), t.offset(source.counters)
            name = t.tensor(v.dtype)
            if source.tensors or t.chance(50):
                t.line(depth, f"{name} = pl.assemble({name}, {v.text}, [{row}, 0])")
            else:
                t.line(depth, f"{name} = pl.store({v.text}, [{row}, 0], {name})")
        if t.chance(15) and not source.tensors:
            t.line(depth, "total = pl.store(v0, [0, 0], total, atomic=pl.AtomicType.Add)")
