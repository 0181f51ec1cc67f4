"""The text of a random program while it is written, and what its parts have in common."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from choices import Chooser, is_float, literal

SHAPES = ((5, 7), (8, 16), (16, 32), (3, 33), (1, 16), (16, 8), (9, 1), (2, 64), (1, 1))
FIRST = ("FP32", "INT32")
OTHERS = ("FP32", "INT32", "FP16", "BF16", "INT16", "INT8", "INT64", "UINT8", "BOOL")
LARGE = ((96, 1200), (331, 257), (2, 60007), (20011, 1), (700, 100), (1, 90001))
# What torch has, but kernels are not called with.
PROGRAMS_ONLY = ("UINT16", "UINT32")
# Tensors hold this many tiles, one above the other.
TILES = 3
# There are two tensors of each element type.
LETTERS = ("x", "y")
AT = "with pl.at(level=pl.Level.CORE_GROUP):"


class ProgramText(Chooser):
    """Lines of an orchestration function, and the core functions that they call."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.shape = self.pick(SHAPES)
        # An entry of pl.jit, or the class of a program.
        self.jit = self.chance(50)
        self.host_build_graph = self.chance(30)
        first = self.pick(FIRST)
        others = OTHERS if self.jit else OTHERS + PROGRAMS_ONLY
        self.dtypes = (first, self.pick([d for d in others if d != first]))
        # Of the values whose operations round in more than one right way.
        self.inexact = self.pick(["FP32", "FP32", "FP16", "BF16"])
        self.large = (
            self.pick(LARGE),
            self.pick(["FP32", "FP32", "INT32", "FP16", "INT8", "UINT8"]),
        )
        self.dynamic = self.chance(30)
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.bound = 0
        # Of the statements of the orchestration.
        self.depth = 1 if self.jit else 2

    @property
    def height(self) -> int:
        return TILES * self.shape[0]

    @property
    def numbers(self) -> list[str]:
        """The element types that one computes with."""
        return [d for d in self.dtypes if d != "BOOL"]

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def fresh(self, name: str) -> str:
        """A name that nothing else has, whatever loops and branches are around it."""
        self.bound += 1
        return f"{name}_{self.bound}"

    def tensor(self, dtype: str) -> str:
        return f"{self.pick(LETTERS)}_{dtype}"

    # --- scalars ---------------------------------------------------------------------------

    def scalar(self, names: Sequence[str]) -> str:
        """Of numbers that are not negative and small, another one, less than 1000."""
        a, b = self.pick(names), self.pick(names)
        forms = [f"{a} + {b}", f"({a} * {self.number(1, 5)}) // 2", f"{a} * {b}", f"{a} % 3 + 1"]
        forms += [f"abs({a} - {b})", f"max({a}, {b} - 1)", f"min({a}, {b})", f"pl.max({a}, {b})"]
        forms += [f"({a} << 1) | {b}", f"({a} ^ {b}) >> 1", f"({a} + 3) & 5", f"({a} % 4) ** 2"]
        forms += [f"-({a} // -2)", f"({a} - {b}) % 7"]
        return f"({self.pick(forms)}) % {self.pick([7, 16, 100])}"

    def count(self) -> str:
        forms = ["2", "3", "n", "m", "n + 1", "m % 3", "pl.min(n, m)"]
        return self.pick([*forms, f"{self.scalar(['n', 'm'])} % 4"])

    def range(self, counters: list[str]) -> str:
        if counters and self.chance(20):
            return f"0, {counters[-1]} + 2, 2"
        return self.count()

    def condition(self, counters: list[str], tensors: bool = True) -> str:
        value = self.pick([*counters, "n", "m"])
        forms = [f"{value} % 2 == 0", f"{value} > 1", f"{value} <= n", f"n < m and {value} != 2"]
        forms += [f"not {value} == 1 or m > n", f"0 < {value} < {self.scalar(['n', 'm'])}"]
        # With host_build_graph no task has run when the condition is looked at.
        if tensors and not self.host_build_graph:
            name = self.tensor(self.dtypes[0])
            at = f"{self.offset(counters)}, {self.number(0, self.shape[1] - 1)}"
            forms += [f"{name}[{at}] > {literal(self.dtypes[0], self.number(-3, 3))}"]
        return self.pick(forms)

    def offset(self, counters: list[str]) -> str:
        """A row at which a tile fits."""
        r, last = self.shape[0], self.height - self.shape[0]
        choices = ["0", str(r), str(last), f"pl.min(n, {last})", f"(m * 3) % {last + 1}"]
        choices += [f"({c} * 4) % {last + 1}" for c in counters]
        choices += [f"({self.scalar(['n', 'm', *counters])}) % {last + 1}"]
        choices += [f"({c} % {TILES}) * {r}" for c in counters]
        return self.pick(choices)

    # --- functions -------------------------------------------------------------------------

    def tensor_type(self, dtype: str, *extents: int | str) -> str:
        return f"pl.Tensor[[{', '.join(map(str, extents))}], pl.{dtype}]"

    def core_function(self, name: str, parameters: str, result: str) -> None:
        """The first lines of a core function."""
        if self.jit:
            self.line(0, "@pl.jit.incore")
            self.line(0, f"def {name}({parameters}):")
            return
        self.line(1, "@pl.function(type=pl.FunctionType.InCore)")
        self.line(1, f"def {name}(self, {parameters}) -> {result}:")

    def called(self, name: str) -> str:
        """How a core function is called."""
        return name if self.jit else f"self.{name}"

    def floats(self) -> list[str]:
        return [d for d in self.dtypes if is_float(d)]
