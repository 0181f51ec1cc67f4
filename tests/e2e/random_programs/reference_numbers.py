"""Elements as the language has them, in torch: conversion, comparison, unsigned arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor

DTYPES = {
    "FP32": torch.float32,
    "FP16": torch.float16,
    "BF16": torch.bfloat16,
    "INT64": torch.int64,
    "INT32": torch.int32,
    "INT16": torch.int16,
    "INT8": torch.int8,
    "UINT32": torch.uint32,
    "UINT16": torch.uint16,
    "UINT8": torch.uint8,
    "BOOL": torch.bool,
}
# torch stores these and computes nothing with them.
UNSIGNED = (torch.uint16, torch.uint32)
# By `cmp_type`.
COMPARE = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
# Bits of the fraction, and the exponent of the smallest subnormal.
FLOATS = {torch.float32: (24, -149), torch.float16: (11, -24), torch.bfloat16: (8, -133)}


def wide(x: Any) -> Any:
    """What torch can compute with: the same numbers."""
    return x.long() if isinstance(x, Tensor) and x.dtype in UNSIGNED else x


def like(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Results have the type of the widest operand that is a tensor, and wrap in it."""

    def apply(*operands: Any) -> Tensor:
        dtypes = [x.dtype for x in operands if isinstance(x, Tensor)]
        dtype = max(dtypes, key=lambda d: d.itemsize)
        return f(*map(wide, operands)).to(dtype)

    return apply


def compared(x: Any, y: Any, cmp_type: int) -> Tensor:
    result: Tensor = COMPARE[cmp_type](wide(x), wide(y))
    return result


def selected(mask: Tensor, x: Any, y: Any) -> Tensor:
    dtype = x.dtype if isinstance(x, Tensor) else y.dtype
    return torch.where(mask, wide(x), wide(y)).to(dtype)


def extremes(dtype: torch.dtype) -> tuple[float, float]:
    if dtype == torch.bool:
        return 0, 1
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return limits.min, limits.max


def converted(x: Tensor, dtype: torch.dtype, mode: str | int = "round") -> Tensor:
    """`x` in another type; what that cannot hold is rounded, or becomes its nearest end."""
    name = MODES[mode] if isinstance(mode, int) else mode
    if dtype == torch.bool:
        return wide(x) != 0
    if x.dtype.is_floating_point or dtype.is_floating_point:
        value = wide(x).double()
        return _to_float(value, dtype, name) if dtype in FLOATS else _to_whole(value, dtype, name)
    low, high = extremes(dtype)
    return x.long().clamp(int(low), int(high)).to(dtype)


def _to_whole(value: Tensor, dtype: torch.dtype, mode: str) -> Tensor:
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    number = _rounded(torch.nan_to_num(value, 0.0, 0.0, 0.0), mode)
    result = number.clamp(float(low), float(min(high, 2**53))).long()
    result = torch.where(value == torch.inf, high, torch.where(value == -torch.inf, low, result))
    return result.to(dtype)


def _to_float(value: Tensor, dtype: torch.dtype, mode: str) -> Tensor:
    bits, smallest = FLOATS[dtype]
    finite = torch.nan_to_num(value, 0.0, 0.0, 0.0)
    exponent = torch.frexp(finite).exponent
    unit = torch.ldexp(torch.ones_like(finite), (exponent - bits).clamp(min=smallest))
    number = _rounded(finite / unit, mode) * unit
    top = torch.finfo(dtype).max
    down = (number > 0) if mode == "floor" else (number < 0)
    kept = torch.full_like(down, mode in ("trunc", "odd")) | (
        down & torch.full_like(down, mode in ("floor", "ceil"))
    )
    ends = torch.where(kept, top, torch.inf).double() * torch.sign(number)
    number = torch.where(number.abs() > top, ends, number)
    return torch.where(torch.isfinite(value), number, value).to(dtype)


def _rounded(value: Tensor, mode: str) -> Tensor:
    """To whole numbers."""
    if mode == "round":
        return torch.trunc(value + torch.sign(value) * 0.5)
    if mode == "odd":
        towards = torch.trunc(value)
        even = (towards != value) & (torch.remainder(towards, 2) == 0)
        return torch.where(even, towards + torch.sign(value), towards)
    functions = {"floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc}
    return functions.get(mode, torch.round)(value)
