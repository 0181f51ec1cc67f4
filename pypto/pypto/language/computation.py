"""The functions of the kernel language that compute."""

from __future__ import annotations

from pypto.ir.dtypes import DataType
from pypto.language.functions import Value, kernel_only


@kernel_only
def add(lhs: Value, rhs: Value) -> Value:
    """Elementwise sum; a number or scalar applies to every element."""


@kernel_only
def sub(lhs: Value, rhs: Value) -> Value:
    """Elementwise difference."""


@kernel_only
def mul(lhs: Value, rhs: Value) -> Value:
    """Elementwise product."""


@kernel_only
def div(lhs: Value, rhs: Value) -> Value:
    """Elementwise quotient. Of integers it is rounded towards zero, and a divisor of 0 ends the run
    with a KernelFault."""


@kernel_only
def maximum(lhs: Value, rhs: Value) -> Value:
    """The larger of each pair of elements."""


@kernel_only
def minimum(lhs: Value, rhs: Value) -> Value:
    """The smaller of each pair of elements."""


@kernel_only
def fmod(lhs: Value, rhs: Value) -> Value:
    """The remainder of ``lhs / rhs``, with the sign of ``lhs``."""


@kernel_only
def and_(lhs: Value, rhs: Value) -> Value:
    """Bitwise and of integer elements."""


@kernel_only
def or_(lhs: Value, rhs: Value) -> Value:
    """Bitwise or of integer elements."""


@kernel_only
def xor(lhs: Value, rhs: Value) -> Value:
    """Bitwise exclusive or of integer elements."""


@kernel_only
def not_(x: Value) -> Value:
    """Every bit of integer elements turned over."""


@kernel_only
def shl(lhs: Value, rhs: Value) -> Value:
    """Integer elements shifted left; by their width or more, or by less than 0: 0."""


@kernel_only
def shr(lhs: Value, rhs: Value) -> Value:
    """Integer elements shifted right, keeping their sign; by their width or more, or by less
    than 0: the sign alone."""


@kernel_only
def cmp(lhs: Value, rhs: Value, cmp_type: int = 0) -> Value:
    """A mask of bool elements: whether each pair of elements compares so.

    ``cmp_type`` is 0 equal, 1 not equal, 2 less, 3 less or equal, 4 greater, 5 greater or equal.
    A number or scalar, on either side, compares with every element. NaN is not equal to anything.
    """


@kernel_only
def sel(mask: Value, lhs: Value, rhs: Value) -> Value:
    """``lhs`` where ``mask`` holds, ``rhs`` elsewhere; one of both may be a number or scalar."""


@kernel_only
def min(lhs: Value, rhs: Value) -> Value:
    """The smaller of two scalars, or of each pair of elements as ``pl.minimum``."""


@kernel_only
def max(lhs: Value, rhs: Value) -> Value:
    """The larger of two scalars, or of each pair of elements as ``pl.maximum``."""


@kernel_only
def exp(x: Value) -> Value:
    """Elementwise exponential."""


@kernel_only
def log(x: Value) -> Value:
    """Elementwise natural logarithm."""


@kernel_only
def sqrt(x: Value) -> Value:
    """Elementwise square root."""


@kernel_only
def rsqrt(x: Value) -> Value:
    """Elementwise ``1 / sqrt(x)``."""


@kernel_only
def recip(x: Value) -> Value:
    """Elementwise ``1 / x``."""


@kernel_only
def sin(x: Value) -> Value:
    """Elementwise sine."""


@kernel_only
def cos(x: Value) -> Value:
    """Elementwise cosine."""


@kernel_only
def relu(x: Value) -> Value:
    """Elementwise ``max(x, 0)``."""


@kernel_only
def lrelu(x: Value, slope: Value) -> Value:
    """Elementwise ``x`` where positive, ``x * slope`` elsewhere; ``slope`` is a number."""


@kernel_only
def prelu(x: Value, slope: Value, tmp_tile: Value = None) -> Value:
    """Elementwise ``x`` where positive, ``x * slope`` elsewhere, with one slope an element."""


@kernel_only
def neg(x: Value) -> Value:
    """Elementwise negation."""


@kernel_only
def abs(x: Value) -> Value:
    """Elementwise absolute value."""


@kernel_only
def row_max(x: Value, tmp_tile: Value = None) -> Value:
    """The largest of each row, ``[M, N]`` to ``[M, 1]``. Tiles need a scratch tile like ``x``."""


@kernel_only
def row_min(x: Value, tmp_tile: Value = None) -> Value:
    """The smallest of each row, ``[M, N]`` to ``[M, 1]``. Tiles need a scratch tile like ``x``."""


@kernel_only
def row_sum(x: Value, tmp_tile: Value = None) -> Value:
    """The sum of each row, ``[M, N]`` to ``[M, 1]``. Tiles need a scratch tile like ``x``."""


@kernel_only
def row_prod(x: Value, tmp_tile: Value = None) -> Value:
    """The product of each row, ``[M, N]`` to ``[M, 1]``. Tiles need a scratch tile like ``x``."""


@kernel_only
def col_sum(x: Value, tmp_tile: Value = None) -> Value:
    """The sum of each column, ``[M, N]`` to ``[1, N]``. The scratch tile may be left out."""


@kernel_only
def col_max(x: Value) -> Value:
    """The largest of each column, ``[M, N]`` to ``[1, N]``."""


@kernel_only
def col_min(x: Value) -> Value:
    """The smallest of each column, ``[M, N]`` to ``[1, N]``."""


@kernel_only
def col_prod(x: Value) -> Value:
    """The product of each column, ``[M, N]`` to ``[1, N]``."""


@kernel_only
def row_expand(target: Value, v: Value) -> Value:
    """The column ``v``, ``[M, 1]``, repeated to the shape of ``target``."""


@kernel_only
def row_expand_add(x: Value, v: Value) -> Value:
    """``[M, N]`` plus one value a row, ``[M, 1]``."""


@kernel_only
def row_expand_sub(x: Value, v: Value) -> Value:
    """``[M, N]`` minus one value a row, ``[M, 1]``."""


@kernel_only
def row_expand_mul(x: Value, v: Value) -> Value:
    """``[M, N]`` times one value a row, ``[M, 1]``."""


@kernel_only
def row_expand_div(x: Value, v: Value) -> Value:
    """``[M, N]`` divided by one value a row, ``[M, 1]``."""


@kernel_only
def row_expand_max(x: Value, v: Value) -> Value:
    """The larger of ``[M, N]`` and one value a row, ``[M, 1]``."""


@kernel_only
def row_expand_min(x: Value, v: Value) -> Value:
    """The smaller of ``[M, N]`` and one value a row, ``[M, 1]``."""


@kernel_only
def row_expand_expdif(x: Value, v: Value) -> Value:
    """``exp(x - v)`` for ``[M, N]`` and one value a row, ``[M, 1]``."""


@kernel_only
def col_expand(target: Value, v: Value) -> Value:
    """The row ``v``, ``[1, N]``, repeated to the shape of ``target``."""


@kernel_only
def col_expand_add(x: Value, v: Value) -> Value:
    """``[M, N]`` plus one value a column, ``[1, N]``."""


@kernel_only
def col_expand_sub(x: Value, v: Value) -> Value:
    """``[M, N]`` minus one value a column, ``[1, N]``."""


@kernel_only
def col_expand_mul(x: Value, v: Value) -> Value:
    """``[M, N]`` times one value a column, ``[1, N]``."""


@kernel_only
def col_expand_div(x: Value, v: Value) -> Value:
    """``[M, N]`` divided by one value a column, ``[1, N]``."""


@kernel_only
def col_expand_max(x: Value, v: Value) -> Value:
    """The larger of ``[M, N]`` and one value a column, ``[1, N]``."""


@kernel_only
def col_expand_min(x: Value, v: Value) -> Value:
    """The smaller of ``[M, N]`` and one value a column, ``[1, N]``."""


@kernel_only
def matmul(
    lhs: Value,
    rhs: Value,
    out_dtype: DataType | None = None,
    a_trans: bool = False,
    b_trans: bool = False,
    c_matrix_nz: bool = False,
) -> Value:
    """Matrix product, accumulated in fp32 (int32 for integers). Tiles are in Mat, Left or Right.

    ``out_dtype`` converts the result, ``a_trans`` and ``b_trans`` exchange a factor's last two
    axes first; these, and more than two axes, exist for tensors only: a product of batches, which
    broadcast. ``c_matrix_nz`` asks for the result in boxes, an order that no program can see here.
    """


@kernel_only
def matmul_acc(
    acc: Value,
    lhs: Value,
    rhs: Value,
    a_trans: bool = False,
    b_trans: bool = False,
    init_cond: Value = False,
) -> Value:
    """``acc + lhs @ rhs``, where ``acc`` came from a matrix product.

    Where ``init_cond`` holds, which may be a run-time scalar, the result is ``lhs @ rhs`` alone.
    ``a_trans`` and ``b_trans`` exchange a factor's axes first; they exist for tensors only.
    """


@kernel_only
def cast(x: Value, target_type: DataType, mode: str = "round") -> Value:
    """Elements, or a scalar, converted to another type.

    ``mode``, a name or its number, rounds what the type cannot hold: ``none`` (0) and ``rint`` (1)
    to the nearest, ties to even, ``round`` (2) ties away from zero, ``floor`` (3), ``ceil`` (4),
    ``trunc`` (5) towards zero, ``odd`` (6) towards zero, then to the odd neighbour.

    To an integer, numbers out of range become the nearest end of it and NaN 0. To fp16 and bf16,
    numbers out of range become infinite, or the largest finite value where the mode rounds
    towards zero. To bool, everything but 0 is true.
    """


# The forms with a number on the right under names of their own.
adds = add
subs = sub
muls = mul
divs = div
maximums = maximum
minimums = minimum
fmods = fmod
ands = and_
ors = or_
xors = xor
shls = shl
cmps = cmp
sels = sel
shrs = shr
