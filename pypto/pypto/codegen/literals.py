"""Literals of `.pto` text and of C++, exact for every value of every type."""

from __future__ import annotations

import math
import struct

from pypto.ir.dtypes import BF16, BOOL, FP16, FP32, DataType
from pypto.ir.nodes import Const


def float_bits(value: float, dtype: DataType) -> int:
    """The bit pattern of a number in a float type, rounded to nearest, ties to even."""
    if dtype == FP16:
        if math.isfinite(value) and abs(value) >= 65520.0:
            value = math.copysign(math.inf, value)
        return int.from_bytes(struct.pack("<e", value), "little")
    single = _single_bits(value)
    if dtype == FP32:
        return single
    assert dtype == BF16
    if math.isnan(value):
        return (single >> 16) | 0x40
    return (single + 0x7FFF + ((single >> 16) & 1)) >> 16


def _single_bits(value: float) -> int:
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", math.copysign(math.inf, value))
    return int.from_bytes(packed, "little")


def pto_literal(const: Const) -> str:
    """What follows `arith.constant`, without the type."""
    value, dtype = const.value, const.dtype
    if dtype == BOOL:
        return "true" if value else "false"
    if not dtype.is_float:
        # The assembler reads decimal numbers as int64.
        return str(int(value)) if int(value) < 2**63 else f"0x{int(value):X}"
    number = float(value)
    if not math.isfinite(number):
        return f"0x{float_bits(number, dtype):0{dtype.bits // 4}X}"
    short = f"{number:.6e}"
    return short if float(short) == number else f"{number:.17e}"


def cpp_literal(const: Const) -> str:
    """A C++ expression of the type in which orchestration code holds `dtype`."""
    value, dtype = const.value, const.dtype
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype in (FP16, BF16):
        return f"static_cast<uint16_t>(0x{float_bits(float(value), dtype):04X})"
    if dtype.is_float:
        return f"from_u64<float>(0x{float_bits(float(value), dtype):08X})"
    number = int(value)
    if number == -(2**63):
        return "INT64_MIN"
    return f"{dtype.cpp}{{{number}{'u' if dtype.is_unsigned else ''}}}"
