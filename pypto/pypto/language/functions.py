"""The functions of the kernel language.

They exist inside kernels only, where the parser translates calls of them; their signatures are
what it binds arguments to. Calling one anywhere else raises :class:`RuntimeError`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pypto.ir.dtypes import FP32, DataType
from pypto.ir.nodes import AtomicType, MemorySpace
from pypto.language.markers import Level

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Tiles, tensors and scalars are values of the kernel, which have no Python type to speak of.
Value = Any


def kernel_only(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Declares a function of the language: its signature and what it means."""

    @functools.wraps(function)
    def outside(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        raise RuntimeError(
            f"pl.{function.__name__} exists inside kernels only: call it in a function decorated "
            "with @pl.jit, @pl.jit.incore or @pl.jit.inline, whose body is compiled and never "
            "executed by Python"
        )

    return outside


# --- structure -----------------------------------------------------------------------------


@kernel_only
def at(
    level: Level,
    role: Value = None,
    *,
    optimizations: Value = None,
    deps: Value = None,
    no_dep_args: Value = None,
    dumps: Value = None,
    allow_early_resolve: bool = False,
    name_hint: str = "",
    windowize: bool = False,
) -> Value:
    """``with pl.at(level=pl.Level.CORE_GROUP):`` runs its block on one core group, as one task.

    ``as tid`` names the task. ``deps`` is a list of tasks that complete before it: ids, arrays of
    them, and ``None``. The tensors of ``no_dep_args`` order it against no other task, those of
    ``dumps`` are shown where arguments are dumped. ``optimizations`` lists ``pl.split`` and
    ``pl.cross_core_slot``; like ``allow_early_resolve`` and ``windowize`` it changes no result.
    """


@kernel_only
def range(*bounds: Value, init_values: Value = ()) -> Value:
    """``for i in pl.range(stop)``, ``(start, stop)`` or ``(start, stop, step)``: a loop.

    Bounds are ints or run-time scalars. With ``init_values`` the loop is written
    ``for i, (a, b) in pl.range(n, init_values=(a0, b0))`` and its body ends in ``pl.yield_``.
    """


@kernel_only
def parallel(*bounds: Value, init_values: Value = ()) -> Value:
    """``for i in pl.parallel(..)``: like :func:`range`, of iterations that are independent.

    They may be carried out in any order.
    """


@kernel_only
def pipeline(*bounds: Value, stage: Value = None, init_values: Value = ()) -> Value:
    """``for i in pl.pipeline(.., stage=2)``: like :func:`range`, in order.

    Up to ``stage`` iterations, an int of at least 1, may overlap: one computes while the next
    loads.
    """


@kernel_only
def unroll(*bounds: Value, init_values: Value = ()) -> Value:
    """``for i in pl.unroll(..)``: the body once for each value, which is a constant in it.

    Bounds are known when the kernel is compiled. There are no ``init_values``; a name that the
    body rebinds simply keeps its last value.
    """


@kernel_only
def while_(*, init_values: Value = ()) -> Value:
    """``for (x,) in pl.while_(init_values=(x0,))``: a loop whose body begins with ``pl.cond``."""


@kernel_only
def cond(condition: Value) -> None:
    """Whether a loop over ``pl.while_`` goes on for another iteration."""


@kernel_only
def yield_(*values: Value) -> Value:
    """The next values of what a loop or a branch carries; also its results."""


@kernel_only
def static_assert(condition: Value, message: str = "") -> None:
    """Stops compilation with ``message`` unless ``condition`` holds."""


@kernel_only
def static_print(*values: Value) -> None:
    """Prints values and types while the kernel is compiled."""


@kernel_only
def const(value: Value, dtype: DataType) -> Value:
    """A literal of a chosen element type."""


# --- data movement -------------------------------------------------------------------------


@kernel_only
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


@kernel_only
def store(
    tile: Value,
    offsets: Value,
    output_tensor: Value,
    shapes: Value = None,
    *,
    atomic: AtomicType = AtomicType.None_,
) -> Value:
    """Writes a tile's valid region into a tensor at ``offsets``; the result is that tensor.

    With ``pl.AtomicType.Add`` it is added to what is there, and no addition of another core is
    lost; for elements of FP32, FP16, BF16, INT32, INT16 and INT8.
    ``shapes``, if given, is the region's shape in the tensor: the tile's, with 1 in front of it.
    """


@kernel_only
def move(tile: Value, target_memory: MemorySpace) -> Value:
    """The same tile in another on-chip memory space: from Mat in Left, Right, Bias or Vec, from Acc
    in Vec or Mat."""


@kernel_only
def create_tensor(
    shape: Value, dtype: DataType = FP32, init_value: Value = None, manual_dep: bool = False
) -> Value:
    """A new tensor in global memory. Orchestration only.

    Its elements are ``init_value``, a number known when the kernel is compiled, and undefined if
    that is left out. With ``manual_dep`` its memory orders no tasks: the kernel names them in
    ``deps``.
    """


@kernel_only
def create_tile(
    shape: Value, dtype: DataType = FP32, target_memory: MemorySpace = MemorySpace.Vec
) -> Value:
    """A tile whose contents are undefined."""


@kernel_only
def full(shape: Value, dtype: DataType = FP32, value: Value = 0) -> Value:
    """``value`` everywhere: a tile where the block of code works on tiles (it loads or stores one,
    moves one, makes one or names ``pl.Tile`` or ``pl.tile``), and else a tensor-level value."""


@kernel_only
def full_tile(shape: Value, dtype: DataType = FP32, value: Value = 0) -> Value:
    """A tile that holds ``value`` everywhere."""


@kernel_only
def full_tensor(shape: Value, dtype: DataType = FP32, value: Value = 0) -> Value:
    """A tensor-level value that is ``value`` everywhere. On a core only."""


@kernel_only
def assign(target: Value, source: Value) -> Value:
    """``target[:] = source`` as a function: its value names the tensor that has been written."""


@kernel_only
def read(x: Value, offsets: Value) -> Value:
    """One element of a tensor, or of a tile in Vec, as a scalar; also written ``x[i, j]``.

    ``offsets`` has one index for each axis. In orchestration code it waits for the tasks that write
    the tensor. An index that is out of range ends the run.
    """


@kernel_only
def write(x: Value, offsets: Value, value: Value) -> Value:
    """One element takes a number or a scalar; also written ``x[i, j] = s``.

    The result is ``x`` afterwards, for which the name given as ``x`` stands too, except that
    with ``strict_ssa`` the name of a tile keeps its value where the result is bound to another. In
    orchestration code it waits for the tasks that use the tensor.
    """


@kernel_only
def dim(tensor: Value, axis: int) -> Value:
    """The extent of one axis of a tensor."""
