"""Random programs of the language, as text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from expressions import Chooser, Draw, Expressions, Name, Source, is_float, literal
from hypothesis import strategies as st

SHAPES = ((5, 7), (8, 16), (16, 32), (3, 33), (1, 16), (16, 8), (9, 1), (2, 64))
DTYPES = ("FP32", "INT32", "FP16", "BF16", "INT16", "INT8")
# Tensors hold this many tiles, one above the other.
TILES = 3
# There are two tensors of each element type.
LETTERS = ("x", "y")
LARGE = (96, 1200)


@dataclass(frozen=True)
class RandomProgram:
    """A program's text and what it has to be called with."""

    text: str
    platform: str
    # name, element type, extents (None: at least `TILES` tiles of rows, any number)
    tensors: tuple[tuple[str, str, tuple[int | None, int]], ...]
    rows: int


def choose(draw: Draw) -> RandomProgram:
    return _Writer(draw).program()


random_programs: st.SearchStrategy[RandomProgram] = st.composite(choose)()


class _Writer(Chooser):
    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self.expressions = Expressions(draw)
        self.shape = self.pick(SHAPES)
        first = self.pick(["FP32", "INT32"])
        other = self.pick([d for d in DTYPES if d != first])
        self.dtypes = (first, other)
        self.dynamic = self.chance(30)
        self.lines: list[str] = []
        self.methods: list[str] = []
        self.last_task = ""

    @property
    def height(self) -> int:
        return TILES * self.shape[0]

    def program(self) -> RandomProgram:
        r, c = self.shape
        height = None if self.dynamic else self.height
        tensors = [(f"{t}_{d}", d, (height, c)) for d in self.dtypes for t in LETTERS]
        tensors.append(("total", self.dtypes[0], (r, c)))
        tensors.append(("large", "FP32", LARGE))
        for _ in range(self.number(2, 5)):
            self.task_or_control(2, [])
        header = ", ".join(
            f"{n}: pl.InOut[pl.Tensor[[{'N' if h is None else h}, {w}], pl.{d}]]"
            for n, d, (h, w) in tensors
        )
        text = 'import pypto.language as pl\n\nN = pl.dynamic("N")\n\n\n'
        text += "@pl.inline\ndef added(t):\n    return pl.add(t, pl.abs(t))\n\n\n"
        text += "@pl.program\nclass Random:\n"
        text += "".join(self.methods)
        text += "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        text += f"    def main(self, {header}, n: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT64]):\n"
        text += "\n".join(self.lines) + "\n"
        platform = self.pick(["a2a3sim", "a5sim"])
        return RandomProgram(text, platform, tuple(tensors), self.height)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # --- scalars ---------------------------------------------------------------------------

    def count(self) -> str:
        return self.pick(["2", "3", "n", "m", "n + 1", "m % 3", "pl.min(n, m)"])

    def range(self, counters: list[str]) -> str:
        if counters and self.chance(20):
            return f"0, {counters[-1]} + 2, 2"
        return self.count()

    def condition(self, counters: list[str], tensors: bool = True) -> str:
        value = self.pick([*counters, "n", "m"])
        forms = [f"{value} % 2 == 0", f"{value} > 1", f"{value} <= n", f"n < m and {value} != 2"]
        forms += [f"not {value} == 1 or m > n"]
        if tensors:
            name = f"{self.pick(LETTERS)}_{self.dtypes[0]}"
            at = f"{self.offset(counters)}, {self.number(0, self.shape[1] - 1)}"
            forms += [f"{name}[{at}] > {literal(self.dtypes[0], self.number(-3, 3))}"]
        return self.pick(forms)

    def offset(self, counters: list[str]) -> str:
        """A row at which a tile fits."""
        r, last = self.shape[0], self.height - self.shape[0]
        choices = ["0", str(r), str(last), f"pl.min(n, {last})", f"(m * 3) % {last + 1}"]
        choices += [f"({c} * 4) % {last + 1}" for c in counters]
        choices += [f"({c} % {TILES}) * {r}" for c in counters]
        return self.pick(choices)

    # --- orchestration ---------------------------------------------------------------------

    def task_or_control(self, depth: int, counters: list[str]) -> None:
        kind = self.number(0, 99)
        if kind >= 88 and depth < 4:
            counter = f"i{depth}"
            self.line(depth, f"for {counter} in pl.range({self.range(counters)}):")
            self.task_or_control(depth + 1, [*counters, counter])
            if self.chance(50):
                self.task_or_control(depth + 1, [*counters, counter])
        elif kind >= 78 and depth < 4:
            self.line(depth, f"if {self.condition(counters)}:")
            self.task_or_control(depth + 1, counters)
            if self.chance(60):
                self.line(depth, "else:")
                self.task_or_control(depth + 1, counters)
        elif kind >= 25:
            self.pick(
                [
                    self.disjoint,
                    self.call,
                    self.view,
                    self.exchange,
                    self.product,
                    self.whole,
                    self.manual,
                    self.element,
                ]
            )(depth, counters)
        else:
            self.scope(depth, counters)

    def scope(self, depth: int, counters: list[str], extra: str = "", name: str = "") -> None:
        task = f" as {name}" if name else ""
        self.line(depth, f"with pl.at(level=pl.Level.CORE_GROUP{extra}){task}:")
        tensors = self.chance(40)
        source = self.source(counters, tensors)
        self.body(depth + 1, source)
        self.store(depth + 1, source)

    def source(self, counters: list[str], tensors: bool, helper: str = "added") -> Source:
        r, c = self.shape

        def load(dtype: str) -> str | None:
            if dtype not in self.dtypes:
                return None
            name, row = f"{self.pick(LETTERS)}_{dtype}", self.offset(counters)
            if tensors:
                start = self.pick(["0", str(r), str(2 * r)])
                sliced = f"{name}[{start}:{int(start) + r}, :]"
                return self.pick([f"pl.slice({name}, [{r}, {c}], [{row}, 0])", sliced])
            if self.chance(20):
                valid = f"[{self.pick([str(self.number(1, r)), f'pl.min(n + 1, {r})'])}, "
                valid += f"{self.pick([str(self.number(1, c)), f'pl.min(m + 1, {c})'])}]"
                part = f"pl.load({name}, [{row}, 0], [{r}, {c}], valid_shape={valid})"
                return f"pl.fillpad({part}, pad_value=pl.PadValue.zero)"
            return f"pl.load({name}, [{row}, 0], [{r}, {c}])"

        return Source(self.shape, [], list(counters), load, tensors, helper)

    def body(self, depth: int, source: Source) -> None:
        """Binds a variable of each type, and rebinds them."""
        for number, dtype in enumerate((*self.dtypes, self.dtypes[0])):
            name = f"v{number}"
            self.line(depth, f"{name} = {self.expressions.leaf(source, dtype).text}")
            source.names.append(Name(name, dtype))
        self.statements(depth, source, self.number(2, 5), 2)

    def statements(self, depth: int, source: Source, count: int, levels: int) -> None:
        for _ in range(count):
            kind = self.number(0, 99)
            if kind >= 85 and levels:
                self.loop(depth, source, levels)
            elif kind >= 72 and levels:
                self.branch(depth, source, levels)
            elif kind >= 66:
                self.line(depth, "v0, v2 = v2, v0")
            elif kind >= 60 and not source.tensors:
                row, col = (self.number(0, e - 1) for e in self.shape)
                v = self.pick(source.names)
                value = literal(v.dtype, self.number(-4, 4))
                if v.dtype in ("FP32", "INT32") and self.chance(50):
                    value = f"v0[0, {col}]" if v.dtype == self.dtypes[0] else value
                self.line(depth, f"{v.text}[{row}, {col}] = {value}")
            else:
                v = self.pick(source.names)
                self.line(depth, f"{v.text} = {self.expressions.bound(source, v.dtype)}")

    def inside(self, source: Source, counter: str) -> Source:
        return replace(
            self.source([*source.counters, counter], source.tensors, source.helper),
            names=source.names,
        )

    def loop(self, depth: int, source: Source, levels: int) -> None:
        counter = f"k{depth}"
        kind = self.pick(["range", "pipeline", "unroll", "while", "carried"])
        names = source.names
        if kind == "while":
            left, v = f"w{depth}", f"c{depth}"
            start = f"({self.pick(['n', 'm'])}, v1)"
            self.line(depth, f"for ({left}, {v}) in pl.while_(init_values={start}):")
            self.line(depth + 1, f"pl.cond({left} > 0)")
            inner = replace(source, names=[*names[:1], Name(v, names[1].dtype), *names[2:]])
            e = self.expressions.bound(inner, names[1].dtype)
            self.line(depth + 1, f"r{depth}, v1 = pl.yield_({left} - 1, {e})")
            return
        inner = self.inside(source, counter)
        if kind == "carried":
            p, q = f"p{depth}", f"q{depth}"
            bounds = f"{self.range(source.counters)}, init_values=(v0, v1)"
            self.line(depth, f"for {counter}, ({p}, {q}) in pl.range({bounds}):")
            inner.names = [Name(p, names[0].dtype), Name(q, names[1].dtype), names[2]]
            one = self.expressions.bound(inner, names[0].dtype)
            two = self.expressions.bound(inner, names[1].dtype)
            self.line(depth + 1, f"v0, v1 = pl.yield_({one}, {two})")
            return
        bounds = "2" if kind == "unroll" else self.range(source.counters)
        if kind == "pipeline":
            bounds += ", stage=2"
        self.line(depth, f"for {counter} in pl.{kind}({bounds}):")
        self.statements(depth + 1, inner, self.number(1, 2), levels - 1)

    def branch(self, depth: int, source: Source, levels: int) -> None:
        heading = f"if {self.condition(source.counters, tensors=False)}:"
        if self.chance(30):
            v = self.pick(source.names)
            self.line(depth, heading)
            self.line(depth + 1, f"{v.text} = pl.yield_({self.expressions.bound(source, v.dtype)})")
            self.line(depth, "else:")
            self.line(depth + 1, f"{v.text} = pl.yield_({self.expressions.bound(source, v.dtype)})")
            return
        self.line(depth, heading)
        self.statements(depth + 1, source, self.number(1, 2), levels - 1)
        if self.chance(30):
            self.line(depth, f"elif {self.condition(source.counters, tensors=False)}:")
            self.statements(depth + 1, source, 1, levels - 1)
        if self.chance(60):
            self.line(depth, "else:")
            self.statements(depth + 1, source, 1, levels - 1)

    def store(self, depth: int, source: Source) -> None:
        for _ in range(self.number(1, 2)):
            v, row = self.pick(source.names), self.offset(source.counters)
            name = f"{self.pick(LETTERS)}_{v.dtype}"
            kind = self.pick(["store", "assemble"]) if not source.tensors else "assemble"
            self.line(depth, f"{name} = pl.{kind}({self.ordered(kind, v.text, row, name)})")
        if self.chance(15) and not source.tensors:
            self.line(depth, "total = pl.store(v0, [0, 0], total, atomic=pl.AtomicType.Add)")

    def ordered(self, kind: str, value: str, row: str, name: str) -> str:
        if kind == "store":
            return f"{value}, [{row}, 0], {name}"
        return f"{name}, {value}, [{row}, 0]"

    def disjoint(self, depth: int, counters: list[str]) -> None:
        """Blocks or iterations that write parts of their own, and may all add to one."""
        counter, (r, c) = f"i{depth}", self.shape
        one, other = (f"{t}_{self.dtypes[self.number(0, 1)]}" for t in ("x", "y"))
        dtype = other.split("_")[1]
        source = Source(self.shape, [Name("a", one.split("_")[1])], tensors=False)
        if self.chance(50):
            self.line(depth, f"for {counter} in pl.spmd({self.pick(['3', 'pl.min(n, 3)', '2'])}):")
        else:
            self.line(depth, f"for {counter} in pl.parallel({self.pick(['3', 'm % 4'])}):")
            depth += 1
            self.line(depth, "with pl.at(level=pl.Level.CORE_GROUP):")
        self.line(depth + 1, f"a = pl.load({one}, [{counter} * {r}, 0], [{r}, {c}])")
        value = self.expressions.bound(source, dtype)
        self.line(depth + 1, f"{other} = pl.store({value}, [{counter} * {r}, 0], {other})")
        if one.split("_")[1] == self.dtypes[0] and self.chance(60):
            self.line(depth + 1, "total = pl.store(a, [0, 0], total, atomic=pl.AtomicType.Add)")

    def call(self, depth: int, counters: list[str]) -> None:
        """A core function, with views of one tile's rows or in blocks."""
        r, c = self.shape
        dtype, name = self.pick(self.dtypes), f"step{len(self.methods)}"
        blocks = self.chance(40)
        lines, self.lines = self.lines, []
        row = f"pl.tile.get_block_idx() * {r}" if blocks else "0"
        source = Source(self.shape, [Name("a", dtype)], [], tensors=False, helper="added")
        height = ("N" if self.dynamic else self.height) if blocks else r
        type_ = f"pl.Tensor[[{height}, {c}], pl.{dtype}]"
        self.line(1, "@pl.function(type=pl.FunctionType.InCore)")
        scalar = "n: pl.Scalar[pl.INT64]"
        header = f"self, source: {type_}, {scalar}, out: pl.Out[{type_}]"
        self.line(1, f"def {name}({header}) -> {type_}:")
        self.line(2, f"a = pl.load(source, [{row}, 0], [{r}, {c}])")
        for _ in range(self.number(1, 3)):
            self.line(2, f"a = {self.expressions.bound(source, dtype)}")
        self.line(2, "if n > 1:")
        self.line(3, f"a = {self.expressions.bound(source, dtype)}")
        self.line(2, f"out = pl.store(a, [{row}, 0], out)")
        self.line(2, "return out")
        self.methods.append("\n".join(self.lines) + "\n\n")
        self.lines = lines
        if blocks:
            self.line(depth, "with pl.spmd(3):")
            self.line(depth + 1, f"y_{dtype} = self.{name}(x_{dtype}, n, y_{dtype})")
            return
        at, to = (self.offset(counters) for _ in range(2))
        self.line(depth, f"from_row, to_row = {at}, {to}")
        self.line(depth, f"target = y_{dtype}[to_row : to_row + {r}, :]")
        self.line(depth, f"self.{name}(x_{dtype}[from_row : from_row + {r}, :], m, target)")

    def view(self, depth: int, counters: list[str]) -> None:
        """Tasks over views of one tile's rows."""
        (r, c), dtype = self.shape, self.pick(self.dtypes)
        at, to = (self.offset(counters) for _ in range(2))
        width = self.number(1, c)
        column = self.number(0, c - width)
        columns = f"{column}:{column + width}"
        self.line(depth, f"from_row, to_row = {at}, {to}")
        self.line(depth, f"part = x_{dtype}[from_row : from_row + {r}, {columns}]")
        self.line(depth, f"place = pl.slice(y_{dtype}, [{r}, {width}], [to_row, {column}])")
        source = Source((r, width), [Name("a", dtype)])
        if self.chance(30):
            self.line(depth, "place[:] = part")
            return
        self.line(depth, "with pl.at(level=pl.Level.CORE_GROUP):")
        self.line(depth + 1, f"a = pl.load(part, [0, 0], [{r}, {width}])")
        self.line(depth + 1, f"a = {self.expressions.bound(source, dtype)}")
        self.line(depth + 1, "place[:] = a")

    def exchange(self, depth: int, counters: list[str]) -> None:
        """Names that stand for another tensor each turn."""
        (r, c), dtype = self.shape, self.pick(self.dtypes)
        counter = f"i{depth}"
        value = literal(dtype, self.number(-3, 3))
        new = f"pl.create_tensor([{r}, {c}], dtype=pl.{dtype}, init_value={value})"
        self.line(depth, f"one = {new}")
        self.line(depth, f"two = {new}")
        self.line(depth, f"for {counter} in pl.range({self.range(counters)}):")
        self.line(depth + 1, "with pl.at(level=pl.Level.CORE_GROUP):")
        source = self.source([*counters, counter], False)
        source.names = [Name("a", dtype)]
        self.line(depth + 2, f"a = pl.load(one, [0, 0], [{r}, {c}])")
        self.line(depth + 2, f"a = {self.expressions.bound(source, dtype)}")
        self.line(depth + 2, "two = pl.store(a, [0, 0], two)")
        self.line(depth + 1, "one, two = two, one")
        self.line(depth, "with pl.at(level=pl.Level.CORE_GROUP):")
        row = self.offset(counters)
        self.line(depth + 1, f"y_{dtype} = pl.assemble(y_{dtype}, one[:, :], [{row}, 0])")

    def product(self, depth: int, counters: list[str]) -> None:
        """A matrix product of two tiles' rows: [R, C] by [C, R]."""
        floats = [d for d in self.dtypes if is_float(d)]
        (r, c), result = self.shape, self.dtypes[0]
        if not floats or result != "FP32":
            self.scope(depth, counters)
            return
        dtype = self.pick(floats)
        a, b = (f"pl.slice({t}_{dtype}, [{r}, {c}], [{self.offset(counters)}, 0])" for t in LETTERS)
        self.line(depth, "with pl.at(level=pl.Level.CORE_GROUP):")
        self.line(depth + 1, f"a = {a}")
        self.line(depth + 1, f"b = {b}")
        self.line(depth + 1, "square = pl.matmul(a, b, b_trans=True)")
        self.line(depth + 1, "column = pl.minimum(pl.maximum(pl.row_max(square), -8.0), 8.0)")
        self.line(depth + 1, f"v = pl.slice(x_FP32, [{r}, {c}], [{self.offset(counters)}, 0])")
        self.line(depth + 1, "v = pl.row_expand_max(v, column)")
        self.line(depth + 1, f"x_FP32 = pl.assemble(x_FP32, v, [{self.offset(counters)}, 0])")

    def whole(self, depth: int, counters: list[str]) -> None:
        """A tensor that is larger than the chip's memory."""
        source = Source(LARGE, [Name("v", "FP32")], tensors=True)
        self.line(depth, "with pl.at(level=pl.Level.CORE_GROUP):")
        self.line(depth + 1, "v = large[:, :]")
        ways = [self.expressions.binary, self.expressions.by_row, self.expressions.by_column]
        for _ in range(self.number(1, 2)):
            e = self.pick([*ways, self.expressions.unary])(source, "FP32", 1)
            bounded = f"pl.minimum(pl.maximum({e.text}, -8.0), 8.0)"
            self.line(depth + 1, f"v = {bounded}")
        self.line(depth + 1, "large[:] = v")

    def manual(self, depth: int, counters: list[str]) -> None:
        """A chain of tasks whose order only `deps` says."""
        self.line(depth, "with pl.manual_scope():")
        tasks = [f"t{depth}{number}" for number in range(self.number(2, 3))]
        for number, name in enumerate(tasks):
            deps = f", deps=[{tasks[number - 1]}]" if number else ""
            self.scope(depth + 1, counters, deps, name)

    def element(self, depth: int, counters: list[str]) -> None:
        """One element, changed by the orchestration."""
        name = f"{self.pick(LETTERS)}_{self.dtypes[0]}"
        column = self.number(0, self.shape[1] - 1)
        value = literal(self.dtypes[0], self.number(-4, 4))
        self.line(depth, f"{name}[{self.offset(counters)}, {column}] = {value}")
