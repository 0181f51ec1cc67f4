"""What the table of operations says of each one, evaluated with torch.

The table's references are expressions over torch and the functions of :data:`NAMES`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import torch
from pypto.ir.dtypes import BOOL, INT_RANGES, UINT64, DataType
from pypto.ir.typing_rules import COMPARISONS

Tensor = torch.Tensor

_COMPARE = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt,
            "ge": torch.ge}  # fmt: skip

# Bits of the fraction, the exponent of the smallest subnormal, and the largest finite value.
_FLOATS = {"fp32": (24, -149), "fp16": (11, -24), "bfloat16": (8, -133)}


def quotient(a: Any, b: Any) -> Tensor:
    """``a / b``; of integers, rounded towards zero."""
    dtype = next(v.dtype for v in (a, b) if isinstance(v, Tensor))
    # torch divides a number by a tensor in two steps, each of which rounds.
    a, b = (torch.as_tensor(v, dtype=dtype) for v in (a, b))
    return a / b if dtype.is_floating_point else torch.div(a, b, rounding_mode="trunc")


def compare(a: Any, b: Any, cmp_type: int) -> Tensor:
    """The comparison of that number."""
    return _COMPARE[COMPARISONS[cmp_type]](a, b)


def maximum(a: Tensor, b: Any) -> Tensor:
    """``torch.maximum``, of a number too."""
    return torch.maximum(a, torch.as_tensor(b, dtype=a.dtype))


def minimum(a: Tensor, b: Any) -> Tensor:
    """``torch.minimum``, of a number too."""
    return torch.minimum(a, torch.as_tensor(b, dtype=a.dtype))


def product(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product in the type of the accumulator."""
    if a.is_floating_point():
        return (a.double() @ b.double()).float()
    return wrapped(a.long() @ b.long(), 32).int()


def wrapped(values: Tensor, bits: int) -> Tensor:
    """int64 numbers modulo ``2 ** bits``, signed."""
    if bits == 64:
        return values
    half = 1 << (bits - 1)
    return ((values + half) & ((1 << bits) - 1)) - half


def padded(x: Tensor, shape: tuple[int, ...], pad: str, dtype: DataType) -> Tensor:
    """``x`` in the corner of ``shape`` and the pad value around it."""
    if dtype.is_float:
        top = torch.finfo(getattr(torch, dtype.torch_name)).max
        value: float = {"zero": 0.0, "max": top, "min": -top}[pad]
    else:
        low, high = (0, 1) if dtype == BOOL else INT_RANGES[dtype.name]
        value = {"zero": 0, "max": high, "min": low}[pad]
        if dtype == UINT64 and value >= 2**63:
            value -= 2**64
    whole = torch.full(shape, value, dtype=x.dtype)
    whole[: x.shape[0], : x.shape[1]] = x
    return whole


def rounded(value: float, dtype: DataType, mode: str) -> float | int | bool:
    """One number converted to ``dtype`` as ``pl.cast`` does."""
    if dtype == BOOL:
        return value != 0
    if dtype.is_float:
        return _to_float(value, dtype, mode)
    low, high = INT_RANGES[dtype.name]
    if isinstance(value, float) and math.isnan(value):
        return 0
    if isinstance(value, float) and math.isinf(value):
        return high if value > 0 else low
    return min(max(_whole(Fraction(value), mode), low), high)


def _whole(value: Fraction, mode: str) -> int:
    down = math.floor(value)
    rest = value - down
    if rest == 0:
        return down
    if mode == "odd":
        return down if down % 2 else down + 1
    if mode in ("floor", "ceil", "trunc"):
        up = mode == "ceil" or (mode == "trunc" and value < 0)
        return down + up
    if rest == Fraction(1, 2):
        return down + (value > 0) if mode == "round" else down + down % 2
    return down + (rest > Fraction(1, 2))


def _to_float(value: float, dtype: DataType, mode: str) -> float:
    if isinstance(value, float) and not math.isfinite(value):
        return value
    if value == 0:
        return float(value)
    bits, smallest = _FLOATS[dtype.name]
    exact = Fraction(value)
    exponent = math.frexp(float(abs(exact)))[1]
    if Fraction(2) ** exponent <= abs(exact):  # float() of a large int may have rounded up or down
        exponent += 1
    elif Fraction(2) ** (exponent - 1) > abs(exact):
        exponent -= 1
    unit = Fraction(2) ** max(exponent - bits, smallest)
    result = _whole(exact / unit, mode) * unit
    top = torch.finfo(getattr(torch, dtype.torch_name)).max
    if abs(result) > Fraction(top):
        towards_zero = mode in ("trunc", "odd") or mode == ("floor" if result > 0 else "ceil")
        return math.copysign(top if towards_zero else math.inf, value)
    return math.copysign(float(result), value)


NAMES = {
    "torch": torch,
    "quotient": quotient,
    "compare": compare,
    "maximum": maximum,
    "minimum": minimum,
    "product": product,
}
