"""Random expressions over tiles and tensor-level values whose results have one right bit pattern.

Floats are whole numbers, infinite or NaN: every variable holds finite values of magnitude `LIMIT`
or less, and an expression knows how large they can get, so that sums and products are exact in its
element type and a clamp brings them back before they are bound to a name. Integers wrap, so they
may be anything. Truth values are combined and chosen.
"""

from __future__ import annotations

from choices import EXACT, LIMIT, MODES, Chooser, Expression, Source, clamped, is_float, is_signed
from choices import literal as number_of

# Types whose numbers another one has: a sum of both is of that one.
NARROWER = {"FP32": ("FP16", "BF16"), "INT32": ("INT16", "INT8", "UINT8", "UINT16"),
            "INT64": ("INT32",)}  # fmt: skip


class Expressions(Chooser):
    """Makes expressions of one shape and element type."""

    def bound(self, source: Source, dtype: str) -> str:
        """An expression that a name may be bound to."""
        e = self.any(source, dtype, self.number(1, 2))
        return clamped(dtype, e).text if is_float(dtype) and e.bound > LIMIT else e.text

    def any(self, source: Source, dtype: str, depth: int) -> Expression:
        if depth == 0:
            return self.leaf(source, dtype)
        kinds = [self.leaf, self.shape, self.conversion, self.window, self.selection]
        if dtype == "BOOL":
            kinds += [self.truth, self.truth, self.truth]
        else:
            kinds += [self.binary, self.binary, self.scalar, self.unary]
            kinds += [self.by_row, self.by_column]
            if self.narrower(source, dtype):
                kinds.append(self.mixed)
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
            value = number_of(dtype, self.number(-LIMIT, LIMIT))
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

    def narrower(self, source: Source, dtype: str) -> list[str]:
        return [n.dtype for n in source.names if n.dtype in NARROWER.get(dtype, ())]

    def mixed(self, source: Source, dtype: str, depth: int) -> Expression:
        """Of a value and one of a narrower type."""
        a = self.small(source, dtype, depth, LIMIT).text
        other = self.pick(self.narrower(source, dtype))
        b = clamped(other, self.any(source, other, depth - 1)).text
        if self.chance(50):
            a, b = b, a
        return Expression(f"pl.{self.pick(['add', 'sub', 'maximum'])}({a}, {b})", 2 * LIMIT)

    def operator(self, name: str, sign: str, a: Expression, b: Expression) -> str:
        if self.chance(30):
            return f"({a.text} {sign} {b.text})"
        return f"pl.{name}({a.text}, {b.text})"

    def scalar(self, source: Source, dtype: str, depth: int) -> Expression:
        a = self.small(source, dtype, depth, LIMIT)
        number = self.number(1, LIMIT)
        value = number_of(dtype, number)
        forms = [f"pl.add({a.text}, {value})", f"({a.text} - {value})", f"({value} - {a.text})"]
        forms += [f"pl.maximum({a.text}, {value})", f"pl.minimum({a.text}, {value})"]
        if not is_float(dtype):
            forms += [f"pl.fmod({a.text}, {value})", f"pl.div({a.text}, {value})"]
        tiles = [n.text for n in source.names if n.dtype == dtype and not source.tensors]
        if tiles and dtype in ("FP32", "INT32"):  # scalars of other types are for orchestration
            at = f"{self.start(source, source.shape[0] - 1)}, {self.number(0, source.shape[1] - 1)}"
            forms += [f"pl.add({a.text}, {self.pick(tiles)}[{at}])"] * 2
        if dtype in ("FP32", "INT32") and source.scalars:
            scalar = f"pl.cast({self.pick(source.scalars)} % {LIMIT}, pl.{dtype})"
            forms += [f"pl.sub({a.text}, {scalar})"]
        if self.chance(30):
            return Expression(f"({a.text} * {value})", LIMIT * LIMIT)
        return Expression(self.pick(forms), 2 * LIMIT)

    def unary(self, source: Source, dtype: str, depth: int) -> Expression:
        a = self.any(source, dtype, depth - 1)
        if not is_signed(dtype):
            return Expression(f"pl.{self.pick(['maximum', 'minimum'])}({a.text}, 100)", a.bound)
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
            names = ["max", "min"] + ([] if is_float(dtype) else ["sum", "prod"])
            a = self.any(source, dtype, depth - 1)
            return Expression(f"pl.{axis}_{self.pick(names)}({a.text}{scratch})", a.bound)
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
        between = "neg" if is_signed(dtype) else "not_"
        r, c = source.shape
        if self.chance(50):
            inner = f"pl.reshape({a.text}, [{c}, {r}])"
            return Expression(f"pl.reshape(pl.{between}({inner}), [{r}, {c}])", a.bound)
        inner = f"pl.{between}(pl.transpose({a.text}, 0, 1))"
        return Expression(f"pl.transpose({inner}, 0, 1)", a.bound)

    def conversion(self, source: Source, dtype: str, depth: int) -> Expression:
        """From a variable of another type, by any mode: of quarters, and of large numbers."""
        others = sorted({n.dtype for n in source.names} - {dtype})
        if not others:
            return self.leaf(source, dtype)
        other, mode = self.pick(others), self.pick(MODES)
        shown = f', mode="{mode}"' if self.chance(70) else f", mode={MODES.index(mode)}"
        a = self.any(source, other, depth - 1)
        if is_float(other) and not is_float(dtype) and self.chance(60):
            a = Expression(f"({clamped(other, a).text} * 0.25)")
            return Expression(f"pl.cast({a.text}, pl.{dtype}{shown})")
        if other == "INT64" or self.chance(30):
            a, shown = clamped(other, a), self.pick(["", shown])
        # Whatever it is rounded to is whole, and less than the next power of two.
        bound = a.bound if is_float(other) else 2**32
        return Expression(f"pl.cast({a.text}, pl.{dtype}{shown})", 2 * bound)

    def mask(self, source: Source, dtype: str) -> str:
        """Of every element: how a value of that type compares."""
        a, b = self.leaf(source, dtype), self.leaf(source, dtype)
        if dtype == "BOOL":
            return a.text
        other = self.pick([b.text, number_of(dtype, self.number(-3, 3))])
        return f"pl.cmp({a.text}, {other}, cmp_type={self.number(0, 5)})"

    def any_mask(self, source: Source, dtype: str) -> str:
        mask = self.mask(source, dtype)
        if self.chance(30):
            other = self.mask(source, self.pick(source.names).dtype)
            mask = f"pl.{self.pick(['and_', 'or_', 'xor'])}({mask}, {other})"
        return f"pl.not_({mask})" if self.chance(20) else mask

    def truth(self, source: Source, dtype: str, depth: int) -> Expression:
        mask = self.any_mask(source, self.pick(source.names).dtype)
        if self.chance(50):
            other = self.any(source, dtype, depth - 1).text
            mask = f"pl.{self.pick(['and_', 'or_', 'xor'])}({mask}, {other})"
        return Expression(mask)

    def selection(self, source: Source, dtype: str, depth: int) -> Expression:
        """By a mask, which another type may give."""
        mask = self.any_mask(source, dtype)
        a, b = self.any(source, dtype, depth - 1), self.leaf(source, dtype)
        number = number_of(dtype, self.number(-LIMIT, LIMIT))
        one, two = self.pick([(a.text, b.text), (a.text, number), (number, a.text)])
        return Expression(f"pl.sel({mask}, {one}, {two})", max(a.bound, LIMIT))

    def start(self, source: Source, last: int) -> str:
        """An index from 0 to `last`."""
        scalars = (*source.scalars, *source.counters)
        if scalars and self.chance(40):
            return f"({self.pick(scalars)} * {self.number(1, 3)}) % {last + 1}"
        return str(self.number(0, last))

    def window(self, source: Source, dtype: str, depth: int) -> Expression:
        """A part of one value copied into another, or columns exchanged."""
        r, c = source.shape
        a, b = self.leaf(source, dtype), self.any(source, dtype, depth - 1)
        rows, cols = self.number(1, r), self.number(1, c)
        if not source.tensors:
            start = f"[{self.start(source, r - rows)}, {self.start(source, c - cols)}]"
            part = f"pl.slice({b.text}, [{rows}, {cols}], {start})"
            at = f"[{self.start(source, r - rows)}, {self.start(source, c - cols)}]"
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
        if self.chance(20):
            name = self.pick(["shl", "shr"])
            return Expression(f"pl.{name}({a.text}, pl.and_({b.text}, 7))")
        return Expression(f"pl.{self.pick(['and_', 'or_', 'xor'])}({a.text}, {b.text})")
