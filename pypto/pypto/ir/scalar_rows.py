"""The rows of operations on run-time scalars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pypto.ir import scalar_rules
from pypto.ir.op_spec import OperandKind, OpSpec
from pypto.ir.typing_rules import Infer


@dataclass(frozen=True, slots=True)
class _Scalar:
    """One operation on ``count`` scalars. The columns are those of :class:`OpSpec`."""

    name: str
    count: int
    infer: Infer
    reference: str
    mnemonic: str
    float_mnemonic: str
    cpp: str
    float_cpp: str
    symbol: str = ""
    faults: bool = False
    neutral: tuple[int | None, int | None] = (None, None)


def _wrapping(symbol: str) -> str:
    return f"wrapped<$T>(static_cast<uint64_t>($0) {symbol} static_cast<uint64_t>($1))"


_SCALARS: tuple[_Scalar, ...] = (
    _Scalar(
        "add",
        2,
        scalar_rules.arithmetic(),
        "x0 + x1",
        "arith.addi",
        "arith.addf",
        _wrapping("+"),
        "$0 + $1",
        symbol="+",
        neutral=(0, 0),
    ),
    _Scalar(
        "sub",
        2,
        scalar_rules.arithmetic(),
        "x0 - x1",
        "arith.subi",
        "arith.subf",
        _wrapping("-"),
        "$0 - $1",
        symbol="-",
        neutral=(None, 0),
    ),
    _Scalar(
        "mul",
        2,
        scalar_rules.arithmetic(),
        "x0 * x1",
        "arith.muli",
        "arith.mulf",
        _wrapping("*"),
        "$0 * $1",
        symbol="*",
        neutral=(1, 1),
    ),
    _Scalar(
        "floordiv",
        2,
        scalar_rules.arithmetic(accepts="int"),
        "x0 // x1",
        "arith.floordivsi",
        "",
        "floor_div<$T>($0, $1)",
        "",
        symbol="//",
        faults=True,
    ),
    # Python's remainder has the sign of the divisor: x0 - (x0 // x1) * x1, not arith.remsi.
    _Scalar(
        "mod",
        2,
        scalar_rules.arithmetic(accepts="int"),
        "x0 % x1",
        "",
        "",
        "floor_mod<$T>($0, $1)",
        "",
        symbol="%",
        faults=True,
    ),
    _Scalar(
        "truediv",
        2,
        scalar_rules.arithmetic(accepts="float"),
        "x0 / x1",
        "",
        "arith.divf",
        "",
        "$0 / $1",
        symbol="/",
    ),
    # Whole numbers to a negative power end the run.
    _Scalar(
        "pow",
        2,
        scalar_rules.power,
        "x0 ** x1",
        "math.ipowi",
        "math.powf",
        "whole_power<$T>($0, $1)",
        "pypto_rt::float_power($0, $1)",
        symbol="**",
        faults=True,
    ),
    _Scalar(
        "min",
        2,
        scalar_rules.arithmetic(),
        "min(x0, x1)",
        "arith.minsi",
        "arith.minimumf",
        "$0 < $1 ? $0 : $1",
        "$0 < $1 || $0 != $0 ? $0 : $1",
    ),
    _Scalar(
        "max",
        2,
        scalar_rules.arithmetic(),
        "max(x0, x1)",
        "arith.maxsi",
        "arith.maximumf",
        "$0 > $1 ? $0 : $1",
        "$0 > $1 || $0 != $0 ? $0 : $1",
    ),
    _Scalar(
        "bitand",
        2,
        scalar_rules.bitwise,
        "x0 & x1",
        "arith.andi",
        "",
        "static_cast<$T>($0 & $1)",
        "",
        symbol="&",
    ),
    _Scalar(
        "bitor",
        2,
        scalar_rules.bitwise,
        "x0 | x1",
        "arith.ori",
        "",
        "static_cast<$T>($0 | $1)",
        "",
        symbol="|",
    ),
    _Scalar(
        "bitxor",
        2,
        scalar_rules.bitwise,
        "x0 ^ x1",
        "arith.xori",
        "",
        "static_cast<$T>($0 ^ $1)",
        "",
        symbol="^",
    ),
    # By the width or more, or by less than 0, nothing is left but, to the right, the sign.
    _Scalar(
        "shl",
        2,
        scalar_rules.arithmetic(accepts="int"),
        "x0 << x1",
        "arith.shli",
        "",
        "shifted_left<$T>($0, $1)",
        "",
        symbol="<<",
    ),
    _Scalar(
        "shr",
        2,
        scalar_rules.arithmetic(accepts="int"),
        "x0 >> x1",
        "arith.shrsi",
        "",
        "shifted_right<$T>($0, $1)",
        "",
        symbol=">>",
    ),
    _Scalar(
        "eq",
        2,
        scalar_rules.compare,
        "x0 == x1",
        "arith.cmpi eq",
        "arith.cmpf oeq",
        "$0 == $1",
        "$0 == $1",
        symbol="==",
    ),
    _Scalar(
        "ne",
        2,
        scalar_rules.compare,
        "x0 != x1",
        "arith.cmpi ne",
        "arith.cmpf une",
        "$0 != $1",
        "$0 != $1",
        symbol="!=",
    ),
    _Scalar(
        "lt",
        2,
        scalar_rules.compare,
        "x0 < x1",
        "arith.cmpi slt",
        "arith.cmpf olt",
        "$0 < $1",
        "$0 < $1",
        symbol="<",
    ),
    _Scalar(
        "le",
        2,
        scalar_rules.compare,
        "x0 <= x1",
        "arith.cmpi sle",
        "arith.cmpf ole",
        "$0 <= $1",
        "$0 <= $1",
        symbol="<=",
    ),
    _Scalar(
        "gt",
        2,
        scalar_rules.compare,
        "x0 > x1",
        "arith.cmpi sgt",
        "arith.cmpf ogt",
        "$0 > $1",
        "$0 > $1",
        symbol=">",
    ),
    _Scalar(
        "ge",
        2,
        scalar_rules.compare,
        "x0 >= x1",
        "arith.cmpi sge",
        "arith.cmpf oge",
        "$0 >= $1",
        "$0 >= $1",
        symbol=">=",
    ),
    _Scalar(
        "and", 2, scalar_rules.logic, "x0 and x1", "arith.andi", "", "$0 && $1", "", symbol="and"
    ),
    _Scalar("or", 2, scalar_rules.logic, "x0 or x1", "arith.ori", "", "$0 || $1", "", symbol="or"),
    # In .pto text, arith.xori with true.
    _Scalar("not", 1, scalar_rules.logic, "not x0", "", "", "!$0", "", symbol="not"),
    # In .pto text, of integers, 0 - x0.
    _Scalar(
        "neg",
        1,
        scalar_rules.negate,
        "-x0",
        "",
        "arith.negf",
        "wrapped<$T>(0 - static_cast<uint64_t>($0))",
        "-$0",
        symbol="-",
    ),
)


def scalar_rows() -> Iterator[OpSpec]:
    """The rows of these operations."""
    for row in _SCALARS:
        yield OpSpec(
            f"scalar.{row.name}",
            (OperandKind.SCALAR,) * row.count,
            (),
            row.infer,
            row.mnemonic,
            row.reference,
            f"Scalar {row.reference}.",
            float_mnemonic=row.float_mnemonic,
            cpp=row.cpp,
            float_cpp=row.float_cpp,
            symbol=row.symbol,
            faults=row.faults,
            neutral=row.neutral,
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
