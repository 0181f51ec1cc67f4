"""Numbers with a bound on their error, and what operations make of both.

A `Ball` holds values in float64 and, for each, how far what the chip computes may be from it: the
errors of its operands, propagated, and what the operation is documented to add. Operations on
fp16 and bf16 are computed in fp32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor

# Half a unit in the last place, relative, and half the smallest subnormal number.
HALF = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
TINY = {torch.float32: 2.0**-150, torch.float16: 2.0**-25, torch.bfloat16: 2.0**-134}
# Units in the last place of fp32 by which a function may be wrong.
ULPS = {"exp": 1.5, "log": 2.0, "sin": 2.0, "cos": 2.0, "sqrt": 0.5, "recip": 0.5, "rsqrt": 1.1}


class Ball:
    """Values, each within its error of what the chip has, that are of type `dtype` there."""

    def __init__(self, value: Tensor, error: Tensor, dtype: torch.dtype) -> None:
        self.value, self.error, self.dtype = value, error, dtype
        self.whole = tuple(value.shape)

    @property
    def shape(self) -> torch.Size:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    def each(self, f: Callable[[Tensor], Tensor]) -> Ball:
        return Ball(f(self.value), f(self.error), self.dtype)

    def clone(self) -> Ball:
        return self.each(torch.clone)

    def __getitem__(self, index: Any) -> Ball:
        return self.each(lambda x: x[index])

    def copy_(self, other: Ball) -> None:
        self.value.copy_(other.value)
        self.error.copy_(other.error)

    def holds(self, actual: Tensor) -> Tensor:
        """Of each element of `actual`: whether it is one that the chip may have."""
        return (actual.double() - self.value).abs() <= self.error


def exactly(tensor: Tensor) -> Ball:
    return Ball(tensor.double(), torch.zeros(tensor.shape, dtype=torch.float64), tensor.dtype)


def ball(x: Any, dtype: torch.dtype) -> Ball:
    """An operand; a number is rounded to the type of its elements first."""
    if isinstance(x, Ball):
        return x
    return exactly(torch.as_tensor(x).to(dtype))


def rounded(value: Tensor, error: Tensor, dtype: torch.dtype, ulps: float = 0.5) -> Ball:
    """Of a result that fp32 computes within `ulps`, in `dtype`."""
    size = value.abs() + error
    error = error + size * 2 * HALF[torch.float32] * ulps + TINY[torch.float32] * 2
    if dtype != torch.float32:
        error = error + (size + error) * HALF[dtype] + TINY[dtype]
    # float64 is not exact either.
    return Ball(value, error * (1 + 1e-9) + size * 2.0**-50, dtype)


def _binary(f: Callable[[Ball, Ball], tuple[Tensor, Tensor, float]]) -> Callable[..., Ball]:
    def apply(x: Any, y: Any, *_: Any) -> Ball:
        dtype = next(b.dtype for b in (x, y) if isinstance(b, Ball))
        value, error, ulps = f(ball(x, dtype), ball(y, dtype))
        return rounded(value, error, dtype, ulps) if ulps else Ball(value, error, dtype)

    return apply


def _quotient(x: Ball, y: Ball) -> tuple[Tensor, Tensor, float]:
    value = x.value / y.value
    room = (y.value.abs() - y.error).clamp(min=0)
    return value, (x.error + value.abs() * y.error) / room, 0.5


def _product(x: Ball, y: Ball) -> tuple[Tensor, Tensor, float]:
    error = x.value.abs() * y.error + x.error * y.value.abs() + x.error * y.error
    return x.value * y.value, error, 0.5


def _function(name: str, f: Callable[[Tensor], Tensor], slope: Any) -> Callable[[Ball], Ball]:
    """`slope(v, e)` bounds by how much `f` changes within `e` of `v`."""

    def apply(x: Ball) -> Ball:
        return rounded(f(x.value), slope(x.value, x.error), x.dtype, ULPS[name])

    return apply


def _reduced(axis: int, name: str) -> Callable[..., Ball]:
    def apply(x: Ball, scratch: Any = None) -> Ball:
        size, count = x.value.abs() + x.error, x.shape[axis]
        if name == "sum":
            total = x.value.sum(axis, keepdim=True)
            rest = size.sum(axis, keepdim=True) * count * 2 * HALF[torch.float32]
            return rounded(total, x.error.sum(axis, keepdim=True) + rest, x.dtype)
        if name == "prod":
            total, most = x.value.prod(axis, keepdim=True), size.prod(axis, keepdim=True)
            spread = most - x.value.abs().prod(axis, keepdim=True)
            return rounded(total, spread + most * count * 2 * HALF[torch.float32], x.dtype)
        value = x.value.amax(axis, keepdim=True) if name == "max" else x.value.amin(axis, True)
        return Ball(value, x.error.amax(axis, keepdim=True), x.dtype)

    return apply


def _expdif(x: Ball, v: Ball) -> Ball:
    within = rounded(x.value - v.value, x.error + v.error, torch.float32)
    return rounded(within.value.exp(), _exp_change(within.value, within.error), x.dtype, 1.5)


def _exp_change(v: Tensor, e: Tensor) -> Tensor:
    return v.exp() * torch.expm1(e)


def _prelu(x: Any, slope: Any, scratch: Any = None) -> Ball:
    s = ball(slope, x.dtype)
    value = torch.where(x.value > 0, x.value, x.value * s.value)
    steepest = (s.value.abs() + s.error).clamp(min=1)
    return rounded(value, steepest * x.error + (x.value.abs() + x.error) * s.error, x.dtype)


def _selected(mask: Tensor, x: Ball, y: Ball) -> Ball:
    value, error = torch.where(mask, x.value, y.value), torch.where(mask, x.error, y.error)
    return Ball(value, error, x.dtype)


def _matmul(a: Ball, b: Ball, a_trans: bool = False, b_trans: bool = False) -> Ball:
    a = a.each(torch.t) if a_trans else a
    b = b.each(torch.t) if b_trans else b
    size, other = a.value.abs() + a.error, b.value.abs() + b.error
    # Each product and each sum is rounded.
    rest = size @ other * (a.shape[1] + 1) * 2 * HALF[torch.float32]
    error = size @ other - a.value.abs() @ b.value.abs() + rest
    return rounded(a.value @ b.value, error, torch.float32)


def _converted(x: Ball, dtype: torch.dtype) -> Ball:
    if HALF[dtype] < HALF[x.dtype]:
        return Ball(x.value, x.error, dtype)
    return rounded(x.value, x.error, dtype)


def _larger(x: Ball, y: Ball) -> tuple[Tensor, Tensor, float]:
    return torch.maximum(x.value, y.value), torch.maximum(x.error, y.error), 0.0


def _smaller(x: Ball, y: Ball) -> tuple[Tensor, Tensor, float]:
    return torch.minimum(x.value, y.value), torch.maximum(x.error, y.error), 0.0


add = _binary(lambda x, y: (x.value + y.value, x.error + y.error, 0.5))
sub = _binary(lambda x, y: (x.value - y.value, x.error + y.error, 0.5))
mul, div = _binary(_product), _binary(_quotient)

# By the language's names.
OPERATIONS: dict[str, Callable[..., Ball]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "maximum": _binary(_larger),
    "minimum": _binary(_smaller),
    "neg": lambda x: Ball(-x.value, x.error, x.dtype),
    "abs": lambda x: Ball(x.value.abs(), x.error, x.dtype),
    "relu": lambda x: Ball(x.value.relu(), x.error, x.dtype),
    "exp": _function("exp", torch.exp, _exp_change),
    "log": _function("log", torch.log, lambda v, e: -torch.log1p(-(e / v).clamp(max=1))),
    "sqrt": _function(
        "sqrt", torch.sqrt, lambda v, e: (v + e).sqrt() - (v - e).clamp(min=0).sqrt()
    ),
    "rsqrt": _function(
        "rsqrt", torch.rsqrt, lambda v, e: (v - e).clamp(min=0).rsqrt() - (v + e).rsqrt()
    ),
    "recip": _function(
        "recip", torch.reciprocal, lambda v, e: e / (v.abs() * (v.abs() - e).clamp(min=0))
    ),
    "sin": _function("sin", torch.sin, lambda v, e: e),
    "cos": _function("cos", torch.cos, lambda v, e: e),
    "lrelu": _prelu,
    "prelu": _prelu,
    "sel": _selected,
    "cast": _converted,
    "matmul": _matmul,
    "row_expand_expdif": _expdif,
}
for _axis, _dim in (("row", 1), ("col", 0)):
    for _name in ("sum", "prod", "max", "min"):
        OPERATIONS[f"{_axis}_{_name}"] = _reduced(_dim, _name)
    for _name in ("add", "sub", "mul", "div"):
        OPERATIONS[f"{_axis}_expand_{_name}"] = OPERATIONS[_name]
