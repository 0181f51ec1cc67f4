"""Writes docs/reference/operators.md from the table of operations and the language's functions.

PYTHONPATH=pypto:store:toolchains python tests/integration/docs/write_operators.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pypto.language as pl
from pypto.ir.element_sets import FACTORS, FLOATS, INTS, NUMBERS, SIGNED
from pypto.ir.op_spec import OpSpec
from pypto.ir.ops import OPS
from pypto.language import computation, functions, shaping

Function = Callable[..., object]

# The functions of each section, in the order of the page.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Data movement": (
        *("load", "store", "move", "create_tile", "create_tensor", "full", "full_tensor"),
        *("slice", "assemble", "read", "write", "dim"),
    ),
    "Element by element": (
        *("add", "sub", "mul", "div", "maximum", "minimum", "fmod", "min", "max"),
        *("exp", "log", "sqrt", "rsqrt", "recip", "sin", "cos", "neg", "abs"),
        *("relu", "lrelu", "prelu"),
    ),
    "Bits": ("and_", "or_", "xor", "not_", "shl", "shr"),
    "Masks and conversion": ("cmp", "sel", "cast"),
    "Along rows and columns": (
        *(f"row_{name}" for name in ("sum", "max", "min", "prod")),
        *(f"col_{name}" for name in ("sum", "max", "min", "prod")),
        "row_expand",
        *(f"row_expand_{name}" for name in ("add", "sub", "mul", "div", "max", "min", "expdif")),
        "col_expand",
        *(f"col_expand_{name}" for name in ("add", "sub", "mul", "div", "max", "min")),
    ),
    "Matrices": ("matmul", "matmul_acc"),
    "Shape and valid region": (
        *("reshape", "transpose", "transpose_view", "concat"),
        *("fillpad", "fillpad_expand", "set_validshape"),
    ),
}

INTRODUCTION = """\
# Operators of the kernel language

<!-- written by tests/integration/docs/write_operators.py from the table of operations -->

Every function here works on **tiles** (on-chip memory) and on **tensors** (whole values inside
`pl.at`), unless its forms say otherwise. `pl.x` takes the form that fits its operands;
`pl.tile.x` and `pl.tensor.x` are the same functions under the names of the forms. A Python number
or a scalar beside a tile or a tensor applies to every element, and may be said with an `s` at the
end of the name: `pl.adds`, `pl.muls`, `pl.cmps`.

**Element types.** {sets} *All* is every type but `INDEX`. Operands of two types meet in the
narrowest type that holds the values of both (`INT8` and `UINT8` in `INT16`, `FP16` and `BF16` in
`FP32`); floats and integers do not meet by themselves, and neither does `BOOL`: use `pl.cast`.
The value that is stored must have the tensor's type, except that a product may be narrowed from
fp32 on its way out.

**Shapes** broadcast as numpy's do where one side is a row, a column or a tensor of one axis. A
tile has two axes.

**Valid regions.** A tile may hold less than its extents. Operations carry the valid region
through, reductions see it alone, `pl.store` writes it alone. Operands of an elementwise operation
have one valid region; where that is known only when the kernel runs, another one ends the run
with a `KernelFault`. What is outside is undefined until `pl.fillpad`.

**Numbers.** fp16 and bf16 compute in fp32 and round once, to nearest even. Integers wrap. Integer
division truncates; a divisor of 0 ends the run with a `KernelFault` that names the line. Shifting
by the width or more, or by less than 0, leaves 0, or to the right the sign. NaN goes through
`maximum`, `minimum`, `relu` and the reductions, as in torch. Comparisons with NaN do not hold,
except "not equal".

**Masks** are tiles and tensors of `BOOL`, one byte an element, as torch has them.

The references are torch expressions over the operands `x0`, `x1`, ... and the attributes.
`quotient(a, b)` is `a / b`, of integers `torch.div(a, b, rounding_mode="trunc")`. `compare(a, b,
n)` is the n-th of `==`, `!=`, `<`, `<=`, `>`, `>=`. `maximum` and `minimum` are torch's, of
numbers too. `rounded(x, dtype, mode)` is the conversion that `pl.cast` describes. `padded(x,
shape, pad)` has `x` in its corner. `product(a, b)` is the matrix product in fp32 or int32.
"""


def functions_of_the_language() -> dict[str, Function]:
    """The documented functions by name."""
    found: dict[str, Function] = {}
    for module in (functions, computation, shaping):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if hasattr(function, "__wrapped__") and name == function.__name__:
                found[name] = function
    return found


def rows_of(name: str) -> list[OpSpec]:
    """The operations that calls of a function become."""
    own = {"create_tile": "tile.create", "create_tensor": "tensor.create", "dim": "tensor.dim"}
    own |= {"full": "tile.full", "full_tensor": "tensor.full", "min": "", "max": ""}
    if name in own:
        return [OPS[own[name]]] if own[name] else []
    rows = []
    for spec in OPS.values():
        family, _ = spec.name.split(".")
        public = spec.public_name.removeprefix("pl.").removeprefix("tile.")
        if family in ("tile", "tensor") and public == name:
            rows.append(spec)
    return rows


def spellings(name: str, function: Function) -> str:
    """The names under which the language has a function."""
    found = []
    for prefix, module in (("pl", pl), ("pl.tile", pl.tile), ("pl.tensor", pl.tensor)):
        for word in sorted(module.__all__):
            if word != "jit" and getattr(module, word) is function:
                found.append(f"`{prefix}.{word}`")
    return ", ".join(found)


def signature(name: str, function: Function) -> str:
    """How it is called, without types."""
    shown = []
    for parameter in inspect.signature(function).parameters.values():
        default = parameter.default
        text = parameter.name
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        if default is not inspect.Parameter.empty:
            value = re.sub(r"<(\w+)\.(\w+): .*>", r"pl.\1.\2", repr(default))
            text += f"={value}"
        shown.append(text)
    names = {"full_tensor": "tensor.full", "dim": "tensor.dim"}
    return f"pl.{names.get(name, name)}({', '.join(shown)})"


def entry(name: str, function: Function) -> str:
    """The part of the page about one function."""
    lines = [f"### `{signature(name, function)}`", "", inspect.getdoc(function) or "", ""]
    lines[2] = lines[2].replace("``", "`")
    lines += [f"Names: {spellings(name, function)}.", ""]
    rows = rows_of(name)
    if rows:
        lines += [
            "| Operation | Elements | Attributes | Meaning | Reference |",
            "|---|---|---|---|---|",
        ]
        for spec in rows:
            elements = spec.elements.words if spec.elements else ""
            attributes = ", ".join(f"`{a}`" for a in (*spec.attrs, *spec.optional))
            reference = f"`{spec.reference}`" if spec.reference else ""
            lines.append(
                f"| `{spec.name}` | {elements} | {attributes} | {spec.doc} | {reference} |"
            )
        lines.append("")
    return "\n".join(lines)


def page() -> str:
    """The whole page."""
    found = functions_of_the_language()
    sets = " ".join(
        f"*{s.words.capitalize()}*: {', '.join(f'`{d.constant_name}`' for d in s.dtypes)}."
        for s in (FLOATS, INTS, SIGNED, NUMBERS, FACTORS)
    )
    parts = [INTRODUCTION.format(sets=sets)]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts += [entry(name, found[name]) for name in names]
    return "\n".join(parts)


def main() -> None:
    """Write the page again."""
    path = Path(__file__).resolve().parents[3] / "docs" / "reference" / "operators.md"
    path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
