"""The rows of operations on run-time scalars."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir import scalar_rules
from pypto.ir.op_spec import OperandKind, OpSpec
from pypto.ir.typing_rules import Infer

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


def scalar_rows() -> Iterator[OpSpec]:
    """The rows of these operations."""
    for name, count, infer, mnemonic, float_mnemonic, reference in _SCALARS:
        yield OpSpec(
            f"scalar.{name}",
            (OperandKind.SCALAR,) * count,
            (),
            infer,
            mnemonic,
            reference,
            f"Scalar {reference}.",
            float_mnemonic=float_mnemonic,
        )
    yield OpSpec(
        "scalar.cast",
        (OperandKind.SCALAR,),
        ("dtype",),
        scalar_rules.convert,
        "",
        "",
        "A scalar converted to another type: floats go to integers towards zero and integers wrap; "
        "with a mode it is rounded as that says and saturates.",
        optional=("mode",),
    )
