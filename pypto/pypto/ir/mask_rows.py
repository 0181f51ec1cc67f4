"""The rows of comparisons, of what is chosen by them, and of conversions."""

from __future__ import annotations

from pypto.ir import typing_rules as rules
from pypto.ir.element_sets import NUMBERS, STORED
from pypto.ir.row import Row

MASKS: tuple[Row, ...] = (
    Row(
        "cmp",
        "xx",
        NUMBERS,
        rules.comparison(rules.binary),
        "tcmp",
        "compare(x0, x1, cmp_type)",
        "A mask: whether each pair compares so.",
        attrs=("cmp_type",),
        scalar_forms=("cmps", "cmps"),
    ),
    Row(
        "cmps",
        "xs",
        NUMBERS,
        rules.comparison(rules.with_scalar),
        "tcmps",
        "compare(x0, x1, cmp_type)",
        "A mask: whether each element compares so with a scalar.",
        attrs=("cmp_type",),
        public="cmp",
    ),
    Row(
        "sel",
        "xxx",
        STORED,
        rules.selection(rules.binary),
        "tsel",
        "torch.where(x0, x1, x2)",
        "x1 where the mask x0 holds, x2 elsewhere.",
        in_place=(1, 2),
    ),
    Row(
        "sels",
        "xxs",
        STORED,
        rules.selection(rules.with_scalar),
        "tsels",
        "torch.where(x0, x1, x2)",
        "x1 where the mask x0 holds, a scalar elsewhere.",
        in_place=(1,),
        public="sel",
    ),
    Row(
        "rsels",
        "xxs",
        STORED,
        rules.selection(rules.with_scalar),
        "tsels",
        "torch.where(x0, x2, x1)",
        "A scalar where the mask x0 holds, x1 elsewhere.",
        in_place=(1,),
        public="sel",
    ),
    Row(
        "cast",
        "x",
        STORED,
        rules.cast,
        "tcvt",
        "rounded(x0, dtype, mode)",
        "Elements converted to another type.",
        attrs=("dtype", "mode"),
    ),
)
