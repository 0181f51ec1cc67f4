"""The rows of the table of operations. :mod:`pypto.ir.ops` is the table."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir import memory_rules, scalar_rules
from pypto.ir import typing_rules as rules
from pypto.ir.op_spec import OperandKind, OpSpec
from pypto.ir.typing_rules import Infer

_TILE, _TENSOR = OperandKind.TILE, OperandKind.TENSOR
_SCALAR, _INDICES = OperandKind.SCALAR, OperandKind.INDICES

_COMPUTE: tuple[tuple[str, int, Infer, str, str, str], ...] = (
    # name, shaped operands, rule, mnemonic, reference, meaning
    ("add", 2, rules.binary(), "tadd", "x0 + x1", "Elementwise sum."),
    ("sub", 2, rules.binary(), "tsub", "x0 - x1", "Elementwise difference."),
    ("mul", 2, rules.binary(), "tmul", "x0 * x1", "Elementwise product."),
    ("div", 2, rules.binary(floats_only=True), "tdiv", "x0 / x1", "Elementwise quotient."),
    ("maximum", 2, rules.binary(), "tmax", "torch.maximum(x0, x1)", "The larger of each pair."),
    ("minimum", 2, rules.binary(), "tmin", "torch.minimum(x0, x1)", "The smaller of each pair."),
    ("exp", 1, rules.unary(floats_only=True), "texp", "torch.exp(x0)", "Exponential."),
    ("log", 1, rules.unary(floats_only=True), "tlog", "torch.log(x0)", "Natural logarithm."),
    ("sqrt", 1, rules.unary(floats_only=True), "tsqrt", "torch.sqrt(x0)", "Square root."),
    ("rsqrt", 1, rules.unary(floats_only=True), "trsqrt", "torch.rsqrt(x0)", "1 / sqrt(x)."),
    ("recip", 1, rules.unary(floats_only=True), "trecip", "torch.reciprocal(x0)", "1 / x."),
    ("relu", 1, rules.unary(signed=True), "trelu", "torch.relu(x0)", "max(x, 0)."),
    ("neg", 1, rules.unary(signed=True), "tneg", "-x0", "Negation."),
    ("abs", 1, rules.unary(signed=True), "tabs", "torch.abs(x0)", "Absolute value."),
    (
        "row_expand_add",
        2,
        rules.row_expand(),
        "trowexpandadd",
        "x0 + x1",
        "[M, N] plus one value a row.",
    ),
    (
        "row_expand_sub",
        2,
        rules.row_expand(),
        "trowexpandsub",
        "x0 - x1",
        "[M, N] minus one value a row.",
    ),
    (
        "row_expand_mul",
        2,
        rules.row_expand(),
        "trowexpandmul",
        "x0 * x1",
        "[M, N] times one value a row.",
    ),
    (
        "row_expand_div",
        2,
        rules.row_expand(floats_only=True),
        "trowexpanddiv",
        "x0 / x1",
        "[M, N] divided by one value a row.",
    ),
    (
        "col_expand",
        2,
        rules.col_expand(needs_target_values=False),
        "tcolexpand",
        "x1.expand_as(x0)",
        "The row x1 repeated to the shape of x0.",
    ),
    (
        "col_expand_add",
        2,
        rules.col_expand(),
        "tcolexpandadd",
        "x0 + x1",
        "[M, N] plus one value a column.",
    ),
    (
        "col_expand_sub",
        2,
        rules.col_expand(),
        "tcolexpandsub",
        "x0 - x1",
        "[M, N] minus one value a column.",
    ),
    (
        "col_expand_mul",
        2,
        rules.col_expand(),
        "tcolexpandmul",
        "x0 * x1",
        "[M, N] times one value a column.",
    ),
    (
        "col_expand_div",
        2,
        rules.col_expand(floats_only=True),
        "tcolexpanddiv",
        "x0 / x1",
        "[M, N] divided by one value a column.",
    ),
    (
        "matmul",
        2,
        rules.matmul,
        "tmatmul",
        "x0.float() @ x1.float()",
        "Matrix product, accumulated in fp32 (int32 for int8).",
    ),
    (
        "matmul_acc",
        3,
        rules.matmul_acc,
        "tmatmul.acc",
        "x0 + x1.float() @ x2.float()",
        "A matrix product added to an accumulator.",
    ),
    ("concat", 2, rules.concat, "tconcat", "torch.cat((x0, x1), dim=1)", "Columns side by side."),
)

_WITH_SCALAR: tuple[tuple[str, Infer, str, str, str], ...] = (
    ("adds", rules.with_scalar(), "tadds", "x0 + x1", "Every element plus a scalar."),
    ("subs", rules.with_scalar(), "tsubs", "x0 - x1", "Every element minus a scalar."),
    ("muls", rules.with_scalar(), "tmuls", "x0 * x1", "Every element times a scalar."),
    (
        "divs",
        rules.with_scalar(floats_only=True),
        "tdivs",
        "x0 / x1",
        "Every element divided by a scalar.",
    ),
    ("maxs", rules.with_scalar(), "tmaxs", "x0.clamp(min=x1)", "The larger of element and scalar."),
    ("mins", rules.with_scalar(), "tmins", "x0.clamp(max=x1)", "The smaller of both."),
    ("rsubs", rules.with_scalar(), "", "x1 - x0", "A scalar minus every element."),
    (
        "rdivs",
        rules.with_scalar(floats_only=True),
        "tdivs",
        "x1 / x0",
        "A scalar divided by every element.",
    ),
)

_REDUCE: tuple[tuple[str, str, str, str], ...] = (
    ("row_max", "trowmax", "x0.amax(dim=1, keepdim=True)", "The largest of each row."),
    ("row_sum", "trowsum", "x0.sum(dim=1, keepdim=True)", "The sum of each row."),
    ("row_min", "trowmin", "x0.amin(dim=1, keepdim=True)", "The smallest of each row."),
)

# name, rule, mnemonic for integers, mnemonic for floats, meaning
_SCALARS: tuple[tuple[str, int, Infer, str, str, str], ...] = (
    ("add", 2, scalar_rules.arithmetic(), "arith.addi", "arith.addf", "x0 + x1"),
    ("sub", 2, scalar_rules.arithmetic(), "arith.subi", "arith.subf", "x0 - x1"),
    ("mul", 2, scalar_rules.arithmetic(), "arith.muli", "arith.mulf", "x0 * x1"),
    ("floordiv", 2, scalar_rules.arithmetic(accepts="int"), "arith.floordivsi", "", "x0 // x1"),
    # Python's remainder has the sign of the divisor: x0 - (x0 // x1) * x1, not arith.remsi.
    ("mod", 2, scalar_rules.arithmetic(accepts="int"), "", "", "x0 % x1"),
    ("truediv", 2, scalar_rules.arithmetic(accepts="float"), "", "arith.divf", "x0 / x1"),
    ("min", 2, scalar_rules.arithmetic(), "arith.minsi", "arith.minimumf", "min(x0, x1)"),
    ("max", 2, scalar_rules.arithmetic(), "arith.maxsi", "arith.maximumf", "max(x0, x1)"),
    ("eq", 2, scalar_rules.compare, "arith.cmpi eq", "arith.cmpf oeq", "x0 == x1"),
    ("ne", 2, scalar_rules.compare, "arith.cmpi ne", "arith.cmpf une", "x0 != x1"),
    ("lt", 2, scalar_rules.compare, "arith.cmpi slt", "arith.cmpf olt", "x0 < x1"),
    ("le", 2, scalar_rules.compare, "arith.cmpi sle", "arith.cmpf ole", "x0 <= x1"),
    ("gt", 2, scalar_rules.compare, "arith.cmpi sgt", "arith.cmpf ogt", "x0 > x1"),
    ("ge", 2, scalar_rules.compare, "arith.cmpi sge", "arith.cmpf oge", "x0 >= x1"),
    ("and", 2, scalar_rules.logic, "arith.andi", "", "x0 and x1"),
    ("or", 2, scalar_rules.logic, "arith.ori", "", "x0 or x1"),
    ("not", 1, scalar_rules.logic, "", "", "not x0"),  # arith.xori with true
    ("neg", 1, scalar_rules.negate, "", "arith.negf", "-x0"),  # integers: 0 - x0
)


def rows() -> Iterator[OpSpec]:
    """Every operation, in the order of the table."""
    for kind, prefix in ((_TILE, "tile"), (_TENSOR, "tensor")):
        pto = prefix == "tile"  # tensor forms are lowered before any .pto text exists
        for name, count, infer, mnemonic, reference, doc in _COMPUTE:
            yield OpSpec(
                f"{prefix}.{name}", (kind,) * count, (), infer, mnemonic * pto, reference, doc
            )
        for name, infer, mnemonic, reference, doc in _WITH_SCALAR:
            yield OpSpec(
                f"{prefix}.{name}", (kind, _SCALAR), (), infer, mnemonic * pto, reference, doc
            )
        for name, mnemonic, reference, doc in _REDUCE:
            operands = (kind, OperandKind.SCRATCH) if pto else (kind,)
            yield OpSpec(
                f"{prefix}.{name}",
                operands,
                (),
                rules.row_reduce,
                mnemonic * pto,
                reference,
                doc,
                scratch=pto,
            )
        yield OpSpec(
            f"{prefix}.cast",
            (kind,),
            ("dtype", "mode"),
            rules.cast,
            "tcvt" * pto,
            "x0.to(dtype)",  # for mode rint; the other modes round before they convert
            "Elements converted to another type.",
        )
    yield OpSpec(
        "tile.reshape",
        (_TILE,),
        ("shape",),
        memory_rules.tile_reshape,
        "treshape",
        "x0.reshape(shape)",
        "The same elements in row-major order under another shape.",
    )
    yield OpSpec(
        "tensor.reshape",
        (_TENSOR,),
        ("shape",),
        memory_rules.tensor_reshape,
        "",
        "x0.reshape(shape)",
        "The same memory under another shape.",
    )
    yield OpSpec(
        "tensor.create",
        (_INDICES,),
        ("shape", "symbols", "dtype"),
        memory_rules.tensor_create,
        "",
        "",
        "A new tensor in global memory, its contents undefined.",
    )
    yield OpSpec(
        "tensor.dim",
        (_TENSOR,),
        ("axis",),
        memory_rules.tensor_dim,
        "",
        "x0.shape[axis]",
        "The extent of one axis.",
    )
    yield OpSpec(
        "tensor.assign",
        (_TENSOR, _TENSOR),
        (),
        memory_rules.tensor_assign,
        "",
        "x0.copy_(x1)",
        "The whole first operand takes the second's values; the result is the first.",
    )
    yield OpSpec(
        "tile.load",
        (_TENSOR, _INDICES),
        ("shape", "space", "has_valid"),
        memory_rules.tile_load,
        "tload",
        "",
        "A region of a tensor as a tile; with has_valid the last two operands are its valid "
        "rows and columns.",
    )
    yield OpSpec(
        "tile.store",
        (_TILE, _INDICES, _TENSOR),
        (),
        memory_rules.tile_store,
        "tstore",
        "",
        "The valid region of a tile into a tensor; the result is that tensor.",
    )
    yield OpSpec(
        "tile.move",
        (_TILE,),
        ("space",),
        memory_rules.tile_move,
        "tmov",
        "x0",
        "The same tile in another memory space.",
    )
    yield OpSpec(
        "tile.create",
        (),
        ("shape", "dtype", "space"),
        memory_rules.tile_create,
        "",
        "",
        "A tile whose contents are undefined.",
    )
    yield OpSpec(
        "tile.full",
        (),
        ("shape", "dtype", "value"),
        memory_rules.tile_full,
        "texpands",
        "torch.full(shape, value, dtype=dtype)",
        "A tile that holds one value everywhere.",
    )
    for name, count, infer, mnemonic, float_mnemonic, reference in _SCALARS:
        yield OpSpec(
            f"scalar.{name}",
            (_SCALAR,) * count,
            (),
            infer,
            mnemonic,
            reference,
            f"Scalar {reference}.",
            float_mnemonic=float_mnemonic,
        )
    yield OpSpec(
        "scalar.cast",
        (_SCALAR,),
        ("dtype",),
        scalar_rules.convert,
        "",
        "",
        "A scalar converted to another type; floats go to integers towards zero.",
    )
