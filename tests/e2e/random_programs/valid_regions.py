"""Values of which a part is valid: what is loaded, computed, reduced, filled and stored of it."""

from __future__ import annotations

from choices import Name, Source, is_float, is_signed, literal
from expressions import Expressions
from program_text import ProgramText

PADS = ("zero", "min", "max")


class ValidRegions:
    """Writes statements on partly valid values, and fills them."""

    def __init__(self, text: ProgramText, expressions: Expressions) -> None:
        self.text = text
        self.expressions = expressions

    def extents(self, shape: tuple[int, int]) -> str:
        """Valid rows and columns, known or not; there is one at least."""
        t, (r, c) = self.text, shape
        rows = t.pick([str(t.number(1, r)), f"pl.min(n + 1, {r})", f"m % {r} + 1"])
        cols = t.pick([str(t.number(1, c)), f"pl.min(m + 1, {c})", f"n % {c} + 1"])
        return f"{rows}, {cols}"

    def filled(self, tensor: str, row: str) -> str:
        """A part of a tensor in a tile, with zeros around it."""
        r, c = self.text.shape
        options = f"valid_shape=[{self.extents((r, c))}]"
        if self.text.chance(30):
            # The last rows may be missing.
            row, options = f"({row}) + m % {r}", "clamp=True"
        part = f"pl.load({tensor}, [{row}, 0], [{r}, {c}], {options})"
        return f"pl.fillpad({part}, pad_value=pl.PadValue.zero)"

    def statements(self, depth: int, source: Source) -> None:
        """A variable becomes what was computed of its valid part, and filled."""
        t, (r, c) = self.text, source.shape
        v = t.pick([n for n in source.names if n.dtype != "BOOL"])
        dtype, extents = v.dtype, self.extents(source.shape)
        part = t.fresh("part")
        t.line(depth, f"{part} = {self.part(source, v, extents)}")
        inner = Source((r, c), [Name(part, dtype)], source.counters, tensors=source.tensors)
        for _ in range(t.number(0, 2)):
            t.line(depth, f"{part} = {self.step(inner, dtype)}")
        if not source.tensors and t.chance(40):
            name, row = t.tensor(dtype), t.offset(source.counters)
            t.line(depth, f"{name} = pl.store({part}, [{row}, 0], {name})")
        # The largest finite values are too large to compute with.
        pad = "zero" if is_float(dtype) else t.pick(PADS)
        t.line(depth, f"{v.text} = pl.fillpad({part}, pad_value=pl.PadValue.{pad})")

    def part(self, source: Source, v: Name, extents: str) -> str:
        t, (r, c) = self.text, source.shape
        if t.chance(40):
            return f"pl.set_validshape({v.text}, {extents})"
        if v.dtype not in t.dtypes or source.shape != t.shape:
            return f"pl.slice({v.text}, [{r}, {c}], [0, 0], valid_shape=[{extents}])"
        name, row = t.tensor(v.dtype), t.offset(source.counters)
        if source.tensors:
            # With a value around what is read, all of it is valid.
            pad = t.pick(["", "", ", pad_value=pl.PadValue.zero"])
            return f"pl.slice({name}, [{r}, {c}], [{row}, 0], valid_shape=[{extents}]{pad})"
        return f"pl.load({name}, [{row}, 0], [{r}, {c}], valid_shape=[{extents}])"

    def step(self, source: Source, dtype: str) -> str:
        """Small again if it was."""
        t, part = self.text, source.names[0].text
        forms = [f"pl.add({part}, {literal(dtype, t.number(-4, 4))})", f"pl.mul({part}, {part})"]
        forms += [f"pl.sub({literal(dtype, 3)}, {part})"]
        forms += [
            f"pl.sel(pl.cmp({part}, {literal(dtype, 1)}, cmp_type=4), {part}, {literal(dtype, 2)})"
        ]
        if is_signed(dtype):
            forms += [f"pl.neg({part})", f"pl.abs({part})"]
        axis = t.pick(["row", "col"])
        scratch = ""
        if axis == "row" and not source.tensors:
            scratch = f", pl.create_tile({list(source.shape)}, dtype=pl.{dtype})"
        names = ["max", "min"] + ([] if dtype == "BF16" else ["sum"])
        reduced = f"pl.{axis}_{t.pick(names)}({part}{scratch})"
        expanded = f"pl.{axis}_expand_{t.pick(['add', 'sub', 'max', 'min'])}({part}, {reduced})"
        forms += [expanded] * 3
        low = literal(dtype, -8) if is_signed(dtype) else "0"
        return f"pl.minimum(pl.maximum({t.pick(forms)}, {low}), {literal(dtype, 8)})"
