"""The functions of the kernel language.

They exist inside kernels only, where the parser translates calls of them; their signatures are
what it binds arguments to. Calling one anywhere else raises :class:`RuntimeError`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pypto.ir.dtypes import FP32, DataType
from pypto.ir.nodes import MemorySpace
from pypto.language.markers import Level

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Tiles, tensors and scalars are values of the kernel, which have no Python type to speak of.
Value = Any


def _kernel_only(function: Callable[_P, _T]) -> Callable[_P, _T]:
    @functools.wraps(function)
    def outside(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        raise RuntimeError(
            f"pl.{function.__name__} exists inside kernels only: call it in a function decorated "
            "with @pl.jit, @pl.jit.incore or @pl.jit.inline, whose body is compiled and never "
            "executed by Python"
        )

    return outside


# --- structure -----------------------------------------------------------------------------


@_kernel_only
def at(
    level: Level,
    role: Value = None,
    *,
    optimizations: Value = None,
    deps: Value = None,
    name_hint: str = "",
) -> Value:
    """``with pl.at(level=pl.Level.CORE_GROUP):`` runs its block on one core group."""


@_kernel_only
def range(*bounds: Value, init_values: Value = ()) -> Value:
    """``for i in pl.range(stop)``, ``(start, stop)`` or ``(start, stop, step)``: a loop.

    Bounds are ints or run-time scalars. With ``init_values`` the loop is written
    ``for i, (a, b) in pl.range(n, init_values=(a0, b0))`` and its body ends in ``pl.yield_``.
    """


@_kernel_only
def yield_(*values: Value) -> Value:
    """The next values of what a loop or a branch carries; also its results."""


@_kernel_only
def static_assert(condition: Value, message: str = "") -> None:
    """Stops compilation with ``message`` unless ``condition`` holds."""


@_kernel_only
def static_print(*values: Value) -> None:
    """Prints values and types while the kernel is compiled."""


@_kernel_only
def const(value: Value, dtype: DataType) -> Value:
    """A literal of a chosen element type."""


# --- data movement -------------------------------------------------------------------------


@_kernel_only
def load(
    tensor: Value,
    offsets: Value,
    shapes: Value,
    valid_shape: Value = None,
    target_memory: MemorySpace = MemorySpace.Vec,
    clamp: bool = False,
) -> Value:
    """The region of ``tensor`` at ``offsets`` as a tile of ``shapes`` in Vec or Mat.

    ``valid_shape`` limits the region that is read and later stored; with ``clamp`` it is what
    lies inside the tensor.
    """


@_kernel_only
def store(tile: Value, offsets: Value, output_tensor: Value) -> Value:
    """Writes a tile's valid region into a tensor at ``offsets``; the result is that tensor."""


@_kernel_only
def move(tile: Value, target_memory: MemorySpace) -> Value:
    """The same tile in another on-chip memory space."""


@_kernel_only
def create_tensor(shape: Value, dtype: DataType = FP32) -> Value:
    """A new tensor in global memory; its contents are undefined. Orchestration only."""


@_kernel_only
def create_tile(
    shape: Value, dtype: DataType = FP32, target_memory: MemorySpace = MemorySpace.Vec
) -> Value:
    """A tile whose contents are undefined."""


@_kernel_only
def full(shape: Value, dtype: DataType = FP32, value: Value = 0) -> Value:
    """A tile that holds ``value`` everywhere."""


@_kernel_only
def dim(tensor: Value, axis: int) -> Value:
    """The extent of one axis of a tensor."""


# --- computation ---------------------------------------------------------------------------


@_kernel_only
def add(lhs: Value, rhs: Value) -> Value:
    """Elementwise sum; a number or scalar applies to every element."""


@_kernel_only
def sub(lhs: Value, rhs: Value) -> Value:
    """Elementwise difference."""


@_kernel_only
def mul(lhs: Value, rhs: Value) -> Value:
    """Elementwise product."""


@_kernel_only
def div(lhs: Value, rhs: Value) -> Value:
    """Elementwise quotient of floating point elements."""


@_kernel_only
def maximum(lhs: Value, rhs: Value) -> Value:
    """The larger of each pair of elements."""


@_kernel_only
def minimum(lhs: Value, rhs: Value) -> Value:
    """The smaller of each pair of elements."""


@_kernel_only
def min(lhs: Value, rhs: Value) -> Value:
    """The smaller of two scalars."""


@_kernel_only
def max(lhs: Value, rhs: Value) -> Value:
    """The larger of two scalars."""


@_kernel_only
def exp(x: Value) -> Value:
    """Elementwise exponential."""


@_kernel_only
def log(x: Value) -> Value:
    """Elementwise natural logarithm."""


@_kernel_only
def sqrt(x: Value) -> Value:
    """Elementwise square root."""


@_kernel_only
def rsqrt(x: Value) -> Value:
    """Elementwise ``1 / sqrt(x)``."""


@_kernel_only
def recip(x: Value) -> Value:
    """Elementwise ``1 / x``."""


@_kernel_only
def relu(x: Value) -> Value:
    """Elementwise ``max(x, 0)``."""


@_kernel_only
def neg(x: Value) -> Value:
    """Elementwise negation."""


@_kernel_only
def abs(x: Value) -> Value:
    """Elementwise absolute value."""


@_kernel_only
def row_max(x: Value, tmp_tile: Value = None) -> Value:
    """The largest of each row, ``[M, N]`` to ``[M, 1]``. Tiles need a scratch tile like ``x``."""


@_kernel_only
def row_min(x: Value, tmp_tile: Value = None) -> Value:
    """The smallest of each row, ``[M, N]`` to ``[M, 1]``. Tiles need a scratch tile like ``x``."""


@_kernel_only
def row_sum(x: Value, tmp_tile: Value = None) -> Value:
    """The sum of each row, ``[M, N]`` to ``[M, 1]``. Tiles need a scratch tile like ``x``."""


@_kernel_only
def row_expand_add(x: Value, v: Value) -> Value:
    """``[M, N]`` plus one value a row, ``[M, 1]``."""


@_kernel_only
def row_expand_sub(x: Value, v: Value) -> Value:
    """``[M, N]`` minus one value a row, ``[M, 1]``."""


@_kernel_only
def row_expand_mul(x: Value, v: Value) -> Value:
    """``[M, N]`` times one value a row, ``[M, 1]``."""


@_kernel_only
def row_expand_div(x: Value, v: Value) -> Value:
    """``[M, N]`` divided by one value a row, ``[M, 1]``."""


@_kernel_only
def col_expand(target: Value, v: Value) -> Value:
    """The row ``v``, ``[1, N]``, repeated to the shape of ``target``."""


@_kernel_only
def col_expand_add(x: Value, v: Value) -> Value:
    """``[M, N]`` plus one value a column, ``[1, N]``."""


@_kernel_only
def col_expand_sub(x: Value, v: Value) -> Value:
    """``[M, N]`` minus one value a column, ``[1, N]``."""


@_kernel_only
def col_expand_mul(x: Value, v: Value) -> Value:
    """``[M, N]`` times one value a column, ``[1, N]``."""


@_kernel_only
def col_expand_div(x: Value, v: Value) -> Value:
    """``[M, N]`` divided by one value a column, ``[1, N]``."""


@_kernel_only
def matmul(lhs: Value, rhs: Value, out_dtype: DataType | None = None) -> Value:
    """Matrix product, accumulated in fp32 (int32 for int8). Tiles must be in Mat, Left or Right.

    ``out_dtype`` converts the result; it exists for tensors only.
    """


@_kernel_only
def matmul_acc(acc: Value, lhs: Value, rhs: Value) -> Value:
    """``acc + lhs @ rhs``, where ``acc`` came from a matrix product."""


@_kernel_only
def cast(x: Value, target_type: DataType, mode: str = "round") -> Value:
    """Elements, or a scalar, converted to another type.

    ``mode`` rounds: ``none``, ``rint`` (ties to even), ``round`` (ties away from zero), ``floor``,
    ``ceil``, ``trunc``, ``odd``.
    """


@_kernel_only
def reshape(x: Value, shape: Value) -> Value:
    """The same elements in row-major order under another shape."""


@_kernel_only
def concat(a: Value, b: Value) -> Value:
    """The columns of ``a`` and ``b`` side by side."""
