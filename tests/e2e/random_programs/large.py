"""Tensors that are larger than the chip's memory, used whole: the compiler cuts them."""

from __future__ import annotations

from choices import Name, Source, clamped, is_float
from core_code import CoreCode
from program_text import AT, ProgramText


class Large:
    """Writes blocks of `pl.at` on the tensor `large`."""

    def __init__(self, text: ProgramText, core: CoreCode) -> None:
        self.text = text
        self.expressions = core.expressions

    def scope(self, depth: int, counters: list[str]) -> None:
        t = self.text
        (r, c), dtype = t.large
        source = Source((r, c), [Name("v", dtype), Name("w", dtype)], counters, tensors=True)
        t.line(depth, AT)
        t.line(depth + 1, "v = large[:, :]")
        t.line(depth + 1, f"w = {t.pick(['large[:, :]', f'pl.slice(large, [{r}, {c}], [0, 0])'])}")
        for _ in range(t.number(1, 3)):
            self.statement(depth + 1, source, dtype)
        t.line(depth + 1, "large[:] = " + t.pick(["v", "v", "w"]))

    def statement(self, depth: int, source: Source, dtype: str) -> None:
        t = self.text
        kind = t.number(0, 99)
        if kind >= 85:
            bounds = t.pick(["range(2)", "pipeline(2, stage=2)", "unroll(2)", "range(n)"])
            t.line(depth, f"for k{depth} in pl.{bounds}:")
            t.line(depth + 1, f"v = {self.value(source, dtype)}")
        elif kind >= 70:
            t.line(depth, f"if {t.condition(source.counters, tensors=False)}:")
            t.line(depth + 1, f"w = {self.value(source, dtype)}")
            t.line(depth, "else:")
            t.line(depth + 1, f"w = {self.value(source, dtype)}")
        else:
            t.line(depth, f"{t.pick(['v', 'w'])} = {self.value(source, dtype)}")

    def value(self, source: Source, dtype: str) -> str:
        e = self.expressions
        ways = [e.binary, e.by_row, e.by_column, e.unary, e.scalar, e.selection]
        found = self.text.pick(ways)(source, dtype, 1)
        return clamped(dtype, found).text if is_float(dtype) else found.text
