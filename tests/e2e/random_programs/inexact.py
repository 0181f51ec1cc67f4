"""Chains of operations whose results may be rounded in more than one way.

They read and write the tensors `near` and `far` alone, whose elements are fractions. What an
operation may be wrong by is what `approximate.py` says; arguments stay where small changes of them
change results little.
"""

from __future__ import annotations

from program_text import AT, ProgramText

# Of the element type of `near`: an expression in a and b, and whether it may leave -8..8.
SMOOTH = (
    "pl.exp(pl.minimum({a}, 2.0))",
    "pl.log(pl.add(pl.abs({a}), 0.5))",
    "pl.sqrt(pl.abs({a}))",
    "pl.rsqrt(pl.add(pl.mul({a}, {a}), 0.5))",
    "pl.recip(pl.add(pl.abs({a}), 0.75))",
    "pl.div({a}, pl.add(pl.abs({b}), 0.75))",
    "({a} / 3.0)",
    "(1.0 / pl.add(pl.abs({a}), 1.5))",
    "pl.sin({a})",
    "pl.cos({a})",
    "pl.lrelu({a}, 0.1)",
    "pl.prelu({a}, {b}{like})",
    "pl.mul({a}, 0.3)",
    "pl.mul({a}, {b})",
    "pl.sub({a}, {b})",
    "pl.maximum({a}, {b})",
    "pl.relu({a})",
    "pl.sel({mask}, {a}, {b})",
    "pl.row_expand_mul({a}, pl.row_sum(pl.mul({b}, 0.1){scratch}))",
    "pl.row_expand_div({a}, pl.add(pl.row_sum(pl.abs({b}){scratch}), 0.5))",
    "pl.row_expand_expdif({a}, pl.row_max({a}{scratch}))",
    "pl.col_expand_div({a}, pl.add(pl.col_max(pl.abs({b})), 0.5))",
    "pl.col_expand_add({a}, pl.col_sum(pl.mul({b}, 0.1)))",
    "pl.row_expand_add({a}, pl.row_prod(pl.maximum(pl.minimum({b}, 1.0), -1.0){scratch}))",
    "pl.col_expand_sub({a}, pl.col_prod(pl.maximum(pl.minimum({b}, 1.0), -1.0)))",
    "pl.cast(pl.cast({a}, pl.{other}), pl.{dtype})",
)


class Inexact:
    """Writes blocks of `pl.at` on fractions."""

    def __init__(self, text: ProgramText) -> None:
        self.text = text

    def scope(self, depth: int, counters: list[str]) -> None:
        t, (r, c) = self.text, self.text.shape
        tensors = t.chance(40)
        t.line(depth, AT)
        for name, tensor in (("a", t.pick(["near", "far"])), ("b", "far")):
            row = t.offset(counters)
            part = f"pl.load({tensor}, [{row}, 0], [{r}, {c}])"
            if tensors:
                part = f"pl.slice({tensor}, [{r}, {c}], [{row}, 0])"
            t.line(depth + 1, f"{name} = {part}")
        t.line(depth + 1, f"whole = {self.exact(tensors, counters)}")
        for _ in range(t.number(1, 3)):
            a, b = t.pick(["a", "b"]), t.pick(["a", "b"])
            inner = self.expression(a, b, tensors)
            value = self.expression(f"({inner})", b, tensors) if t.chance(40) else inner
            t.line(depth + 1, f"a = pl.minimum(pl.maximum({value}, -8.0), 8.0)")
        if t.chance(25):
            self.softmax(depth + 1, tensors)
        if t.inexact == "FP32" and tensors and t.chance(40):
            t.line(depth + 1, "p = pl.mul(pl.matmul(a, b, b_trans=True), 0.125)")
            t.line(depth + 1, "a = pl.row_expand_mul(a, pl.row_max(pl.sin(p)))")
        row = t.offset(counters)
        end = f"near = pl.assemble(near, a, [{row}, 0])"
        t.line(depth + 1, end if tensors else f"near = pl.store(a, [{row}, 0], near)")

    def exact(self, tensors: bool, counters: list[str]) -> str:
        """A value that decides a mask: how inexact numbers compare is not known."""
        t, (r, c) = self.text, self.text.shape
        name, row = f"x_{t.dtypes[0]}", t.offset(counters)
        if tensors:
            return f"pl.slice({name}, [{r}, {c}], [{row}, 0])"
        return f"pl.load({name}, [{row}, 0], [{r}, {c}])"

    def expression(self, a: str, b: str, tensors: bool) -> str:
        t = self.text
        scratch = ""
        if not tensors:
            scratch = f", pl.create_tile({list(t.shape)}, dtype=pl.{t.inexact})"
        number = "1.0" if t.dtypes[0] == "FP32" else "1"
        return t.pick(SMOOTH).format(
            a=a,
            b=b,
            scratch=scratch,
            like=scratch,
            mask=f"pl.cmp(whole, {number}, cmp_type=4)",
            dtype=t.inexact,
            other=t.pick([d for d in ("FP32", "FP16", "BF16") if d != t.inexact]),
        )

    def softmax(self, depth: int, tensors: bool) -> None:
        t = self.text
        scratch = "" if tensors else f", pl.create_tile({list(t.shape)}, dtype=pl.{t.inexact})"
        t.line(depth, f"e = pl.exp(pl.row_expand_sub(a, pl.row_max(a{scratch})))")
        t.line(depth, f"a = pl.row_expand_div(e, pl.row_sum(e{scratch}))")
