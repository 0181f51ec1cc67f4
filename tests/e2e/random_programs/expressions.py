"""Random expressions over tiles and tensor-level values whose results have one right bit pattern.

Floats are whole numbers: every variable holds values of magnitude `LIMIT` or less, and an
expression knows how large its values can get, so that sums and products are exact in its element
type and a clamp brings them back before they are bound to a name. Integers wrap, so they may be
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]

LIMIT = 8
# Whole numbers of this magnitude and all smaller ones are exact.
EXACT = {"FP32": 2**24, "FP16": 2**11, "BF16": 2**8}


@dataclass(frozen=True)
class Expression:
    """Text, and the largest magnitude of its values (of floats)."""

    text: str
    bound: int = LIMIT


@dataclass(frozen=True)
class Name:
    """A variable of a tile or a tensor-level value."""

    text: str
    dtype: str


@dataclass
class Source:
    """What expressions can be made of at one place of a program."""

    shape: tuple[int, int]
    names: list[Name]
    counters: list[str] = field(default_factory=list)
    # Gives the text of a part of a tensor in global memory, or None if there is none of that type.
    load: Callable[[str], str | None] = lambda dtype: None
    tensors: bool = False
    helper: str = ""


class Chooser:
    """Choices that Hypothesis makes."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) >= 100 - percent


def is_float(dtype: str) -> bool:
    return dtype in EXACT


def literal(dtype: str, value: int) -> str:
    return f"{value}.0" if is_float(dtype) else str(value)


def clamped(dtype: str, e: Expression) -> Expression:
    """`e` in `-LIMIT..LIMIT`."""
    high, low = literal(dtype, LIMIT), literal(dtype, -LIMIT)
    return Expression(f"pl.minimum(pl.maximum({e.text}, {low}), {high})")


class Expressions(Chooser):
    """Makes expressions of one shape and element type."""

    def bound(self, source: Source, dtype: str) -> str:
        """An expression that a name may be bound to."""
        e = self.any(source, dtype, self.number(1, 2))
        return clamped(dtype, e).text if is_float(dtype) and e.bound > LIMIT else e.text

    def any(self, source: Source, dtype: str, depth: int) -> Expression:
        if depth == 0:
            return self.leaf(source, dtype)
        kinds = [self.binary, self.binary, self.scalar, self.unary, self.by_row, self.by_column]
        kinds += [self.leaf, self.shape, self.conversion, self.window, self.selection]
        if not is_float(dtype):
            kinds += [self.bits, self.bits]
        return self.pick(kinds)(source, dtype, depth)

    def small(self, source: Source, dtype: str, depth: int, limit: int) -> Expression:
        """An expression of magnitude `limit` or less, which is at least `LIMIT`, if floats."""
        e = self.any(source, dtype, depth - 1)
        return clamped(dtype, e) if is_float(dtype) and e.bound > limit else e

    def leaf(self, source: Source, dtype: str, depth: int = 0) -> Expression:
        options = [n.text for n in source.names if n.dtype == dtype]
        part = source.load(dtype)
        if part is not None:
            options.append(part)
        if not options or self.chance(5):
            value = literal(dtype, self.number(-LIMIT, LIMIT))
            full = "tensor.full" if source.tensors else "full"
            return Expression(f"pl.{full}({list(source.shape)}, dtype=pl.{dtype}, value={value})")
        return Expression(self.pick(options))

    def binary(self, source: Source, dtype: str, depth: int) -> Expression:
        limit = EXACT.get(dtype, 0)
        name = self.pick(["add", "sub", "mul", "maximum", "minimum"])
        if name == "mul":
            a = self.small(source, dtype, depth, LIMIT)
            b = self.small(source, dtype, depth, LIMIT)
            return Expression(self.operator("mul", "*", a, b), LIMIT * LIMIT)
        a = self.small(source, dtype, depth, limit // 2)
        b = self.small(source, dtype, depth, limit // 2)
        if name in ("maximum", "minimum"):
            return Expression(f"pl.{name}({a.text}, {b.text})", max(a.bound, b.bound))
        sign = "+" if name == "add" else "-"
        return Expression(self.operator(name, sign, a, b), a.bound + b.bound)

    def operator(self, name: str, sign: str, a: Expression, b: Expression) -> str:
        if self.chance(30):
            return f"({a.text} {sign} {b.text})"
        return f"pl.{name}({a.text}, {b.text})"

    def scalar(self, source: Source, dtype: str, depth: int) -> Expression:
        a = self.small(source, dtype, depth, LIMIT)
        number = self.number(1, LIMIT)
        value = literal(dtype, number)
        forms = [f"pl.add({a.text}, {value})", f"({a.text} - {value})", f"({value} - {a.text})"]
        forms += [f"pl.maximum({a.text}, {value})", f"pl.minimum({a.text}, {value})"]
        if not is_float(dtype):
            forms.append(f"pl.fmod({a.text}, {value})")
        if self.chance(30):
            return Expression(f"({a.text} * {value})", LIMIT * LIMIT)
        return Expression(self.pick(forms), 2 * LIMIT)

    def unary(self, source: Source, dtype: str, depth: int) -> Expression:
        a = self.any(source, dtype, depth - 1)
        names = ["neg", "abs", "relu"]
        if source.helper and self.chance(20):
            a = self.small(source, dtype, depth, LIMIT)
            return Expression(f"{source.helper}({a.text})", 2 * LIMIT)
        return Expression(f"pl.{self.pick(names)}({a.text})", a.bound)

    def reduced(self, source: Source, dtype: str, depth: int, axis: str) -> Expression:
        count = source.shape[1] if axis == "row" else source.shape[0]
        limit = EXACT.get(dtype, 0)
        scratch = ""
        if axis == "row" and not source.tensors:
            scratch = f", pl.create_tile({list(source.shape)}, dtype=pl.{dtype})"
        if not is_float(dtype) or count * LIMIT * 2 > limit or self.chance(60):
            a = self.any(source, dtype, depth - 1)
            return Expression(f"pl.{axis}_{self.pick(['max', 'min'])}({a.text}{scratch})", a.bound)
        a = self.small(source, dtype, depth, LIMIT)
        return Expression(f"pl.{axis}_sum({a.text}{scratch})", LIMIT * count)

    def expanded(self, source: Source, dtype: str, depth: int, axis: str) -> Expression:
        v = self.reduced(source, dtype, depth, axis)
        name = self.pick(["add", "sub", "max", "min", "mul", ""])
        if name == "":
            a = self.leaf(source, dtype)
            return Expression(f"pl.{axis}_expand({a.text}, {v.text})", v.bound)
        a = self.small(source, dtype, depth, LIMIT)
        if is_float(dtype) and (name == "mul" or v.bound + a.bound > EXACT[dtype]):
            v = clamped(dtype, v) if v.bound > LIMIT else v
        bound = a.bound * v.bound if name == "mul" else a.bound + v.bound
        if self.chance(30):
            long = {"max": "maximum", "min": "minimum"}.get(name, name)
            return Expression(f"pl.{long}({a.text}, {v.text})", bound)
        return Expression(f"pl.{axis}_expand_{name}({a.text}, {v.text})", bound)

    def by_row(self, source: Source, dtype: str, depth: int) -> Expression:
        return self.expanded(source, dtype, depth, "row")

    def by_column(self, source: Source, dtype: str, depth: int) -> Expression:
        return self.expanded(source, dtype, depth, "col")

    def shape(self, source: Source, dtype: str, depth: int) -> Expression:
        a = self.any(source, dtype, depth - 1)
        r, c = source.shape
        if self.chance(50):
            inner = f"pl.reshape({a.text}, [{c}, {r}])"
            return Expression(f"pl.reshape(pl.abs({inner}), [{r}, {c}])", a.bound)
        inner = f"pl.neg(pl.transpose({a.text}, 0, 1))"
        return Expression(f"pl.transpose({inner}, 0, 1)", a.bound)

    def conversion(self, source: Source, dtype: str, depth: int) -> Expression:
        """From a variable of another type; what is narrowed is small."""
        others = sorted({n.dtype for n in source.names} - {dtype})
        if not others:
            return self.leaf(source, dtype)
        other = self.pick(others)
        a = clamped(other, self.any(source, other, depth - 1))
        return Expression(f"pl.cast({a.text}, pl.{dtype})")

    def mask(self, source: Source, dtype: str) -> str:
        """Of every element: how a value of that type compares."""
        a, b = self.leaf(source, dtype), self.leaf(source, dtype)
        other = self.pick([b.text, literal(dtype, self.number(-3, 3))])
        return f"pl.cmp({a.text}, {other}, cmp_type={self.number(0, 5)})"

    def selection(self, source: Source, dtype: str, depth: int) -> Expression:
        """By a mask, which another type may give."""
        mask = self.mask(source, dtype)
        if self.chance(30):
            other = self.mask(source, self.pick(source.names).dtype)
            mask = f"pl.{self.pick(['and_', 'or_', 'xor'])}({mask}, {other})"
        if self.chance(20):
            mask = f"pl.not_({mask})"
        a, b = self.any(source, dtype, depth - 1), self.leaf(source, dtype)
        number = literal(dtype, self.number(-LIMIT, LIMIT))
        one, two = self.pick([(a.text, b.text), (a.text, number), (number, a.text)])
        return Expression(f"pl.sel({mask}, {one}, {two})", max(a.bound, LIMIT))

    def window(self, source: Source, dtype: str, depth: int) -> Expression:
        """A part of one value copied into another, or columns exchanged."""
        r, c = source.shape
        a, b = self.leaf(source, dtype), self.any(source, dtype, depth - 1)
        rows, cols = self.number(1, r), self.number(1, c)
        start = [self.number(0, r - rows), self.number(0, c - cols)]
        part = f"pl.slice({b.text}, [{rows}, {cols}], {start})"
        if not source.tensors:
            at = [self.number(0, r - rows), self.number(0, c - cols)]
            return Expression(f"pl.assemble({a.text}, {part}, {at})", max(a.bound, b.bound))
        if c == 1:
            return b
        cut = self.number(1, c - 1)
        left = f"pl.slice({b.text}, [{r}, {cut}], [0, {c - cut}])"
        right = f"pl.slice({b.text}, [{r}, {c - cut}], [0, 0])"
        return Expression(f"pl.concat({left}, {right})", b.bound)

    def bits(self, source: Source, dtype: str, depth: int) -> Expression:
        a = self.any(source, dtype, depth - 1)
        if self.chance(40):
            return Expression(f"pl.not_({a.text})")
        if self.chance(40):
            name = self.pick(["shl", "shr", "and_", "or_", "xor"])
            return Expression(f"pl.{name}({a.text}, {self.number(0, 7)})")
        b = self.any(source, dtype, depth - 1)
        return Expression(f"pl.{self.pick(['and_', 'or_', 'xor'])}({a.text}, {b.text})")
