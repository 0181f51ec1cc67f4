"""The rows of operations on matrices as a whole."""

from __future__ import annotations

from pypto.ir import product_rules, window_rules
from pypto.ir import typing_rules as rules
from pypto.ir.element_sets import FACTORS, STORED
from pypto.ir.op_spec import Role
from pypto.ir.row import Row

RESHAPED: tuple[Row, ...] = (
    Row(
        "transpose",
        "x",
        STORED,
        rules.transpose,
        "ttrans",
        "x0.transpose(axis1, axis2)",
        "Two axes exchanged.",
        attrs=("axis1", "axis2"),
        role=Role.TRANSPOSE,
    ),
    Row(
        "concat",
        "xx",
        STORED,
        rules.concat,
        "tconcat",
        "torch.cat((x0, x1), dim=1)",
        "Columns side by side.",
        role=Role.WHOLE,
    ),
    Row(
        "fillpad",
        "x",
        STORED,
        rules.fillpad,
        "tfillpad",
        "padded(x0, shape, pad)",
        "The valid region with zeros, or the largest or smallest finite values, around it.",
        attrs=("pad",),
        role=Role.WHOLE,
        pads=True,
    ),
    Row(
        "fillpad_expand",
        "x",
        STORED,
        rules.fillpad_expand,
        "tfillpad",
        "padded(x0, shape, pad)",
        "As fillpad, in a larger shape.",
        attrs=("shape", "pad"),
        role=Role.WHOLE,
        pads=True,
    ),
    Row(
        "set_validshape",
        "xi",
        STORED,
        window_rules.set_validshape,
        "textract",
        "x0[:x1, :x2]",
        "The same elements, of which x1 rows and x2 columns are valid.",
        role=Role.WHOLE,
        faults=True,
    ),
)

PRODUCTS: tuple[Row, ...] = (
    Row(
        "matmul",
        "xx",
        FACTORS,
        product_rules.matmul,
        "tmatmul",
        "product(x0, x1)",
        "Matrix product, accumulated in fp32 (int32 for integers).",
        role=Role.PRODUCT,
    ),
    Row(
        "matmul_acc",
        "xxx",
        FACTORS,
        product_rules.matmul_acc,
        "tmatmul.acc",
        "x0 + product(x1, x2)",
        "A matrix product added to an accumulator.",
        in_place=(0,),
        role=Role.PRODUCT,
    ),
    Row(
        "matmul_init",
        "xsxx",
        FACTORS,
        product_rules.matmul_init,
        "",
        "product(x2, x3) if x1 else x0 + product(x2, x3)",
        "A matrix product, added to an accumulator unless the condition x1 holds.",
        in_place=(0,),
        role=Role.PRODUCT,
        public="matmul_acc",
    ),
)
