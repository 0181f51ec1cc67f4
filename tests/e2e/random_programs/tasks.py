"""Tasks besides plain blocks of `pl.at`: blocks, calls, views, tensors of the program's own."""

from __future__ import annotations

from choices import Name, Source, literal
from core_code import CoreCode
from program_text import AT, ProgramText


class Tasks:
    """Writes statements of the orchestration that use core code."""

    def __init__(self, text: ProgramText, core: CoreCode) -> None:
        self.text = text
        self.core = core
        self.expressions = core.expressions

    def disjoint(self, depth: int, counters: list[str]) -> None:
        """Blocks or iterations that write parts of their own, and may all add to one."""
        t, counter, (r, c) = self.text, f"i{depth}", self.text.shape
        dtype, other_dtype = t.pick(t.dtypes), t.pick(t.dtypes)
        one, other = f"x_{dtype}", f"y_{other_dtype}"
        source = Source(t.shape, [Name("a", dtype)], tensors=False)
        kind = t.pick(["for", "with", "parallel"])
        blocks = t.pick(["3", "pl.min(n, 3)", "2"])
        if kind == "for":
            t.line(depth, f"for {counter} in pl.spmd({blocks}):")
        elif kind == "with":
            t.line(depth, f"with pl.spmd({blocks}):")
            last = t.pick(["", "pl.tile.get_block_num() - 1 - "])
            t.line(depth + 1, f"{counter} = {last}pl.tile.get_block_idx()")
        else:
            t.line(depth, f"for {counter} in pl.parallel({t.pick(['3', 'm % 4'])}):")
            depth += 1
            t.line(depth, AT)
        t.line(depth + 1, f"a = pl.load({one}, [{counter} * {r}, 0], [{r}, {c}])")
        value = self.expressions.bound(source, other_dtype)
        t.line(depth + 1, f"{other} = pl.store({value}, [{counter} * {r}, 0], {other})")
        if dtype == t.dtypes[0] and t.chance(60):
            t.line(depth + 1, "total = pl.store(a, [0, 0], total, atomic=pl.AtomicType.Add)")

    def step(self, dtype: str, blocks: bool, outputs: int = 1) -> str:
        """A core function from a tile's rows to a tile's rows, or of blocks of them."""
        t, (r, c) = self.text, self.text.shape
        name = f"step{len(t.functions)}"
        lines, t.lines = t.lines, []
        row = f"pl.tile.get_block_idx() * {r}" if blocks else "0"
        source = Source(t.shape, [Name("a", dtype)], helper="added", scalars=("n",))
        height = ("N" if t.dynamic else t.height) if blocks else r
        type_ = t.tensor_type(dtype, height, c)
        in_type = "pl.Tensor" if t.jit and t.chance(50) else type_
        outs = ["out", "also"][:outputs]
        parameters = f"source: {in_type}, n: pl.Scalar[pl.INT64]"
        parameters += "".join(f", {out}: pl.Out[{in_type}]" for out in outs)
        t.core_function(name, parameters, type_ if outputs == 1 else f"tuple[{type_}, {type_}]")
        depth = 1 if t.jit else 2
        t.line(depth, f"a = pl.load(source, [{row}, 0], [{r}, {c}])")
        for out in outs:
            for _ in range(t.number(1, 3)):
                t.line(depth, f"a = {self.expressions.bound(source, dtype)}")
            t.line(depth, f"if n > {t.number(0, 2)}:")
            t.line(depth + 1, f"a = {self.expressions.bound(source, dtype)}")
            t.line(depth, f"{out} = pl.store(a, [{row}, 0], {out})")
        t.line(depth, f"return {', '.join(outs)}")
        t.functions.append("\n".join(t.lines) + "\n\n")
        t.lines = lines
        return t.called(name)

    def call(self, depth: int, counters: list[str]) -> None:
        """A core function, with views of one tile's rows or in blocks."""
        t, r, dtype = self.text, self.text.shape[0], self.text.pick(self.text.dtypes)
        blocks = t.chance(40)
        step = self.step(dtype, blocks)
        if blocks:
            arguments = f"x_{dtype}, n, y_{dtype}"
            if t.chance(30):
                count = t.pick(["3", "pl.min(m, 3)"])
                t.line(
                    depth, f"y_{dtype}, _ = pl.spmd_submit({step}, {arguments}, core_num={count})"
                )
                return
            t.line(depth, "with pl.spmd(3):")
            t.line(depth + 1, f"y_{dtype} = {step}({arguments})")
            return
        at, to = t.offset(counters), t.offset(counters)
        t.line(depth, f"from_row, to_row = {at}, {to}")
        t.line(depth, f"target = y_{dtype}[to_row : to_row + {r}, :]")
        part = f"x_{dtype}[from_row : from_row + {r}, :]"
        if t.chance(30):
            t.line(depth, f"target, _ = pl.submit({step}, {part}, m, target)")
            return
        t.line(depth, f"{step}({part}, m, target)")

    def pair(self, depth: int, counters: list[str]) -> None:
        """A core function that writes two tensors, one of them new, which another task reads."""
        t, (r, c), dtype = self.text, self.text.shape, self.text.pick(self.text.dtypes)
        step, also, target = self.step(dtype, False, 2), t.fresh("also"), t.fresh("target")
        t.line(depth, f"{also} = pl.create_tensor([{r}, {c}], dtype=pl.{dtype})")
        t.line(depth, f"from_row, to_row = {t.offset(counters)}, {t.offset(counters)}")
        t.line(depth, f"{target} = y_{dtype}[to_row : to_row + {r}, :]")
        arguments = f"x_{dtype}[from_row : from_row + {r}, :], m, {target}, {also}"
        if t.jit and t.chance(30):
            arguments = f"x_{dtype}[from_row : from_row + {r}, :], m, also={also}, out={target}"
        call = f"{step}({arguments})"
        if t.chance(30):
            t.line(depth, f"{target}, {also}, _ = pl.submit({step}, {arguments})")
        else:
            t.line(depth, f"{target}, {also} = {call}")
        t.line(depth, f"x_{dtype}[to_row : to_row + {r}, :] = {also}")

    def rows(self, depth: int, counters: list[str]) -> None:
        """All rows of a tensor, whose number may be known at run time only."""
        t, (r, c), dtype = self.text, self.text.shape, self.text.pick(self.text.numbers)
        row = f"r{depth}"
        t.line(depth, AT)
        t.line(depth + 1, f"for {row} in pl.range(0, x_{dtype}.shape[0], {r}):")
        left = t.pick([f"x_{dtype}.shape[0]", f"pl.tensor.dim(x_{dtype}, 0)"])
        t.line(depth + 2, f"left = pl.min({r}, {left} - {row})")
        where = t.pick([f"valid_shape=[left, {c}]", "clamp=True"])
        t.line(depth + 2, f"a = pl.load(x_{dtype}, [{row}, 0], [{r}, {c}], {where})")
        source = Source((r, c), [Name("a", dtype)], [*counters, row])
        for _ in range(t.number(1, 2)):
            t.line(depth + 2, f"a = {self.core.regions.step(source, dtype)}")
        t.line(depth + 2, f"y_{dtype} = pl.store(a, [{row}, 0], y_{dtype})")

    def view(self, depth: int, counters: list[str]) -> None:
        """Tasks over views of one tile's rows, which may be views of views."""
        t, (r, c), dtype = self.text, self.text.shape, self.text.pick(self.text.dtypes)
        width = t.number(1, c)
        column = t.number(0, c - width)
        t.line(depth, f"from_row, to_row = {t.offset(counters)}, {t.offset(counters)}")
        part = f"x_{dtype}[from_row : from_row + {r}, {column}:{column + width}]"
        if t.chance(40):
            t.line(depth, f"rows = x_{dtype}[from_row : from_row + {r}, :]")
            part = f"rows[:, {column}:{column + width}]"
        t.line(depth, f"part = {part}")
        t.line(depth, f"place = pl.slice(y_{dtype}, [{r}, {width}], [to_row, {column}])")
        source = Source((r, width), [Name("a", dtype)])
        if t.chance(30):
            t.line(depth, "place[:] = part")
            return
        t.line(depth, AT)
        t.line(depth + 1, f"a = pl.load(part, [0, 0], [{r}, {width}])")
        t.line(depth + 1, f"a = {self.expressions.bound(source, dtype)}")
        t.line(depth + 1, "place[:] = a")

    def reshaped(self, depth: int, counters: list[str]) -> None:
        """Whole rows of a tensor under another shape, and one row by itself."""
        t, (r, c), dtype = self.text, self.text.shape, self.text.pick(self.text.dtypes)
        t.line(depth, f"from_row = {t.offset(counters)}")
        t.line(depth, f"rows = x_{dtype}[from_row : from_row + {r}, :]")
        t.line(depth, f"turned = pl.reshape(rows, [{c}, {r}])")
        t.line(depth, AT)
        source = Source((c, r), [Name("a", dtype)])
        t.line(depth + 1, f"a = pl.load(turned, [0, 0], [{c}, {r}])")
        t.line(depth + 1, f"a = {self.expressions.bound(source, dtype)}")
        t.line(depth + 1, "turned = pl.store(a, [0, 0], turned)")
        if t.chance(40):
            t.line(depth, f"y_{dtype}[{t.offset(counters)}] = rows[{t.number(0, r - 1)}]")

    def exchange(self, depth: int, counters: list[str]) -> None:
        """Names that stand for another tensor each turn."""
        t, (r, c), dtype = self.text, self.text.shape, self.text.pick(self.text.dtypes)
        counter, value = f"i{depth}", literal(dtype, t.number(-3, 3))
        one, two = t.fresh("one"), t.fresh("two")
        # More rows than are used, known or not.
        height = str(r)
        if t.chance(50):
            height = t.fresh("rows")
            t.line(depth, f"{height} = {t.pick([f'{r} + n', f'pl.max(n, 1) * {r}'])}")
        for name in (one, two):
            created = f"pl.create_tensor([{height}, {c}], dtype=pl.{dtype}, init_value={value})"
            t.line(depth, f"{name} = {created}")
        carried = t.chance(40)
        a, b = (t.fresh("p"), t.fresh("q")) if carried else (one, two)
        start = f", init_values=({one}, {two})" if carried else ""
        names = f"{counter}, ({a}, {b})" if carried else counter
        t.line(depth, f"for {names} in pl.range({t.range(counters)}{start}):")
        t.line(depth + 1, AT)
        source = self.core.source([*counters, counter], False)
        source.names = [Name("a", dtype)]
        t.line(depth + 2, f"a = pl.load({a}, [0, 0], [{r}, {c}])")
        t.line(depth + 2, f"a = {self.expressions.bound(source, dtype)}")
        t.line(depth + 2, f"{b} = pl.store(a, [0, 0], {b})")
        t.line(depth + 1, f"{one}, {two} = " + (f"pl.yield_({b}, {a})" if carried else f"{b}, {a}"))
        t.line(depth, AT)
        row = t.offset(counters)
        place = f"y_{dtype} = pl.assemble(y_{dtype}, {one}[0:{r}, :], [{row}, 0])"
        t.line(depth + 1, place)

    def element(self, depth: int, counters: list[str]) -> None:
        """One element, changed by the orchestration."""
        t = self.text
        if t.host_build_graph:  # which refuses to write what a task may have used
            self.view(depth, counters)
            return
        name, column = t.tensor(t.dtypes[0]), t.number(0, t.shape[1] - 1)
        value = literal(t.dtypes[0], t.number(-4, 4))
        t.line(depth, f"{name}[{t.offset(counters)}, {column}] = {value}")
