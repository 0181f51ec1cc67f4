"""The rows of the table of operations. :mod:`pypto.ir.ops` is the table."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir import memory_rules, scalar_rules, view_rules, window_rules
from pypto.ir import typing_rules as rules
from pypto.ir.axis_rows import EXPANSIONS, REDUCTIONS
from pypto.ir.compute_rows import Row
from pypto.ir.element_rules import element_rows
from pypto.ir.element_sets import STORED
from pypto.ir.elementwise_rows import BINARY, MASKS, UNARY, WITH_SCALAR
from pypto.ir.matrix_rows import PRODUCTS, RESHAPED
from pypto.ir.op_spec import OperandKind, OpSpec
from pypto.ir.scheduling_rules import scheduling_rows
from pypto.ir.typing_rules import Infer

_TILE, _TENSOR = OperandKind.TILE, OperandKind.TENSOR
_SCALAR, _INDICES = OperandKind.SCALAR, OperandKind.INDICES

# name, rule, mnemonic for integers, mnemonic for floats, meaning
_SCALARS: tuple[tuple[str, int, Infer, str, str, str], ...] = (
    ("add", 2, scalar_rules.arithmetic(), "arith.addi", "arith.addf", "x0 + x1"),
    ("sub", 2, scalar_rules.arithmetic(), "arith.subi", "arith.subf", "x0 - x1"),
    ("mul", 2, scalar_rules.arithmetic(), "arith.muli", "arith.mulf", "x0 * x1"),
    ("floordiv", 2, scalar_rules.arithmetic(accepts="int"), "arith.floordivsi", "", "x0 // x1"),
    # Python's remainder has the sign of the divisor: x0 - (x0 // x1) * x1, not arith.remsi.
    ("mod", 2, scalar_rules.arithmetic(accepts="int"), "", "", "x0 % x1"),
    ("truediv", 2, scalar_rules.arithmetic(accepts="float"), "", "arith.divf", "x0 / x1"),
    # Whole numbers to a negative power end the run.
    ("pow", 2, scalar_rules.power, "math.ipowi", "math.powf", "x0 ** x1"),
    ("min", 2, scalar_rules.arithmetic(), "arith.minsi", "arith.minimumf", "min(x0, x1)"),
    ("max", 2, scalar_rules.arithmetic(), "arith.maxsi", "arith.maximumf", "max(x0, x1)"),
    ("bitand", 2, scalar_rules.bitwise, "arith.andi", "", "x0 & x1"),
    ("bitor", 2, scalar_rules.bitwise, "arith.ori", "", "x0 | x1"),
    ("bitxor", 2, scalar_rules.bitwise, "arith.xori", "", "x0 ^ x1"),
    # By the width or more, or by less than 0, nothing is left but, to the right, the sign.
    ("shl", 2, scalar_rules.arithmetic(accepts="int"), "arith.shli", "", "x0 << x1"),
    ("shr", 2, scalar_rules.arithmetic(accepts="int"), "arith.shrsi", "", "x0 >> x1"),
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


def _of_family(row: Row, family: OperandKind) -> OpSpec:
    """The operation on tiles, or on tensors, that a row describes."""
    on_tiles = family is _TILE
    kinds = {"x": family, "s": _SCALAR, "i": _INDICES, "t": OperandKind.SCRATCH}
    letters = row.operands if on_tiles else row.operands.replace("t", "")
    return OpSpec(
        f"{'tile' if on_tiles else 'tensor'}.{row.name}",
        tuple(kinds[letter] for letter in letters),
        row.attrs,
        row.infer,
        # Tensor forms are lowered before any .pto text exists.
        row.mnemonic if on_tiles else "",
        row.reference,
        row.doc,
        scratch="t" in letters,
        elements=row.elements,
        in_place=row.in_place,
    )


def rows() -> Iterator[OpSpec]:
    """Every operation, in the order of the table."""
    for row in (
        *(*BINARY, *WITH_SCALAR, *UNARY, *MASKS),
        *(*REDUCTIONS, *EXPANSIONS, *RESHAPED, *PRODUCTS),
    ):
        yield _of_family(row, _TILE)
        yield _of_family(row, _TENSOR)
    yield OpSpec(
        "tile.transpose_view",
        (_TILE,),
        (),
        rules.transpose_view,
        "",
        "x0.t()",
        "Rows and columns exchanged in Vec or in Mat.",
        elements=STORED,
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
        "tensor.view",
        (_TENSOR, _INDICES),
        ("shape", "symbols", "drop"),
        view_rules.tensor_view,
        "",
        "",
        "A part of the same memory, without the axes to drop: an offset for each axis, then an "
        "extent for each that shape leaves open.",
    )
    yield OpSpec(
        "tensor.slice",
        (_TENSOR, _INDICES),
        ("shape", "drop", "has_valid", "pad"),
        memory_rules.tensor_slice,
        "",
        "",
        "A copy of the region at the offsets, without the axes to drop; with has_valid the last "
        "two operands are the rows and columns to read: what is valid, unless pad fills the rest.",
    )
    yield OpSpec(
        "tensor.assemble",
        (_TENSOR, _INDICES, _TENSOR),
        ("shape",),
        memory_rules.tensor_assemble,
        "",
        "",
        "The region of that shape at the offsets takes the last operand's values; the result is "
        "the first.",
        optional=("atomic",),
    )
    yield OpSpec(
        "tensor.full",
        (),
        ("shape", "dtype", "value"),
        memory_rules.tensor_full,
        "",
        "torch.full(shape, value, dtype=dtype)",
        "A tensor-level value that is one number everywhere.",
    )
    yield OpSpec(
        "tensor.create",
        (_INDICES,),
        ("shape", "symbols", "dtype"),
        memory_rules.tensor_create,
        "",
        "",
        "A new tensor in global memory. Its contents are undefined without init_value; with "
        "manual_dep its memory orders no tasks.",
        optional=("init_value", "manual_dep"),
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
        optional=("atomic",),
    )
    yield OpSpec(
        "tile.move",
        (_TILE,),
        ("space",),
        memory_rules.tile_move,
        "tmov",
        "x0",
        "The same tile in another memory space.",
        in_place=(0,),
    )
    yield OpSpec(
        "tile.slice",
        (_TILE, _INDICES),
        ("shape", "has_valid", "pad", "clamp"),
        window_rules.tile_slice,
        "textract",
        "",
        "A copy of the region at the offsets, in the same memory space; with has_valid the last "
        "two operands bound its valid rows and columns, and pad, if any, fills the rest.",
    )
    yield OpSpec(
        "tile.assemble",
        (_TILE, _INDICES, _TILE),
        (),
        window_rules.tile_assemble,
        "tinsert",
        "",
        "The first operand with the valid region of the last one written at the offsets.",
        in_place=(0,),
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
    yield from element_rows()
    yield from scheduling_rows()
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
        "A scalar converted to another type: floats go to integers towards zero and integers wrap; "
        "with a mode it is rounded as that says and saturates.",
        optional=("mode",),
    )
