"""What a kernel function takes, in the order of its text and in the order of a task's payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    Direction,
    DynDim,
    Function,
    MemorySpace,
    Op,
    ScalarType,
    TensorType,
    TileType,
    Var,
)
from pypto.ir.ops import OPS
from pypto.ir.passes.rewrite import bindings, walk

# What one task carries, and what a whole program takes.
MAX_TENSORS = 32
MAX_SCALARS = 16
MAX_ENTRY_TENSORS = 256
MAX_ENTRY_SCALARS = 128

# What a kernel may ask about where it runs, and the field of the runtime's that says it.
PLACES: Mapping[str, str] = MappingProxyType(
    {name: spec.place for name, spec in OPS.items() if spec.place}
)

_CUBE_SPACES = (
    MemorySpace.Mat,
    MemorySpace.Left,
    MemorySpace.Right,
    MemorySpace.Acc,
    MemorySpace.Bias,
)


@dataclass(frozen=True, slots=True)
class KernelAbi:
    """A kernel's parameters.

    A task's payload is every tensor, then every scalar, each in the order of declaration. The
    function in the `.pto` text takes `parameters` in the order of declaration, then one index for
    each of `extents`, the run-time extents (tensor, axis) of its tensors, then one for each of
    `strides`, the run-time strides (tensor, axis) of those that may be parts of larger ones, then
    the `places` that it asks for: which block it is, and of how many.
    """

    parameters: tuple[Var, ...]
    tensors: tuple[Var, ...]
    scalars: tuple[Var, ...]
    extents: tuple[tuple[Var, int], ...]
    strides: tuple[tuple[Var, int], ...]
    signature: tuple[Direction, ...]
    places: tuple[str, ...] = ()


def abi_of(
    function: Function, *, max_tensors: int = MAX_TENSORS, max_scalars: int = MAX_SCALARS
) -> KernelAbi:
    """The interface of a function; CompileError where it takes more than the limits."""
    parameters = tuple(p.var for p in function.params)
    tensors = tuple(v for v in parameters if isinstance(v.type, TensorType))
    scalars = tuple(v for v in parameters if isinstance(v.type, ScalarType))
    for what, count, limit in (
        ("tensors", len(tensors), max_tensors),
        ("scalars", len(scalars), max_scalars),
    ):
        if count > limit:
            raise CompileError(
                f"{function.name} uses {count} {what}, but it can take at most "
                f"{limit}: split it into several",
                function.span,
            )
    extents = tuple(
        (v, axis)
        for v in tensors
        if isinstance(v.type, TensorType)
        for axis, extent in enumerate(v.type.shape)
        if isinstance(extent, DynDim)
    )
    strides = tuple(
        (v, axis)
        for v in tensors
        if isinstance(v.type, TensorType)
        for axis in v.type.run_time_strides
    )
    directions = tuple(p.direction for p in function.params if isinstance(p.var.type, TensorType))
    used = {stmt.op for stmt in walk(function.body) if isinstance(stmt, Op)}
    places = tuple(op for op in PLACES if op in used)
    return KernelAbi(parameters, tensors, scalars, extents, strides, directions, places)


def core_type(function: Function) -> str:
    """The core that runs a kernel: `aic` when any of its tiles is in a matrix space, else `aiv`.

    A function with both kinds of work is one `aic` kernel: the instruction model executes vector
    operations on every core, so nothing is gained here by splitting it over two cores.
    """
    for var in bindings(function.body):
        if isinstance(var.type, TileType) and var.type.space in _CUBE_SPACES:
            return "aic"
    return "aiv"
