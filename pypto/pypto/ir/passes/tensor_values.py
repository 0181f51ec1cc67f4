"""Tensor-level values of a scope: which variables are values, and the extents of their tiles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    For,
    If,
    MemorySpace,
    Op,
    Span,
    Stmt,
    TensorType,
    TileType,
    Var,
    While,
)
from pypto.ir.passes.liveness import IN_PLACE
from pypto.ir.passes.rewrite import bindings, reads, walk

# Tensor operations that name memory; all others of ``tensor.*`` compute a value.
_MEMORY = (
    "tensor.create",
    "tensor.dim",
    "tensor.assign",
    "tensor.assemble",
    "tensor.reshape",
    "tensor.view",
    "tensor.read",
    "tensor.write",
)
# Those whose result is a value where their first operand is one.
_SAME = ("tensor.assign", "tensor.assemble", "tensor.reshape", "tensor.write")
_STORES = ("tile.store", "tensor.assign", "tensor.assemble", "tensor.write")
# Elementwise operations are those that may write over an operand, and those that would but for
# the size of their elements.
ELEMENTWISE = frozenset(
    "tensor." + name.removeprefix("tile.")
    for name in (
        *(*IN_PLACE, "tile.cast", "tile.cmp", "tile.cmps"),
        *("tile.row_expand", "tile.col_expand"),
    )
) - {"tensor.matmul_acc", "tensor.matmul_init", "tensor.move", "tensor.assemble", "tensor.write"}
# The axis that a reduction makes 1.
REDUCED_AXES: Mapping[str, int] = MappingProxyType(
    {
        f"tensor.{prefix}_{name}": axis
        for prefix, axis in (("row", 1), ("col", 0))
        for name in ("sum", "max", "min", "prod")
    }
)
PRODUCTS = ("tensor.matmul", "tensor.matmul_acc", "tensor.matmul_init")


def computed_values(body: Sequence[Stmt]) -> frozenset[Var]:
    """The tensor variables of a scope that are values, not names of memory."""
    values: set[Var] = set()
    size = -1
    while size != len(values):
        size = len(values)
        for stmt in walk(body):
            match stmt:
                case Op() if stmt.op.startswith("tensor.") and stmt.result is not None:
                    if stmt.op in _SAME:
                        if stmt.operands[0] in values:
                            values.add(stmt.result)
                    elif stmt.op not in _MEMORY:
                        values.add(stmt.result)
                case For() | While():
                    for carried, after in zip(stmt.carried, stmt.yields, strict=True):
                        if isinstance(carried.arg.type, TensorType) and (
                            carried.init in values or after in values
                        ):
                            values.update((carried.arg, carried.result))
                case If():
                    pairs = zip(stmt.results, stmt.then_yields, stmt.else_yields, strict=True)
                    for result, first, second in pairs:
                        if isinstance(result.type, TensorType) and (
                            first in values or second in values
                        ):
                            values.add(result)
                case _:
                    pass
    return frozenset(values)


def escaping_values(body: Sequence[Stmt], total: Mapping[Var, int]) -> frozenset[Var]:
    """What a scope binds and something after it reads; ``total`` counts every read."""
    inside = Counter(reads(body))
    return frozenset(v for v in bindings(body) if total[v] > inside[v])


def stores(body: Sequence[Stmt]) -> bool:
    """Whether a body writes a tensor."""
    return any(isinstance(s, Op) and s.op in _STORES for s in walk(body))


def space_of(tile: Var) -> MemorySpace:
    """Where a tile lives."""
    assert isinstance(tile.type, TileType)
    return tile.type.space


def tensor_type(var: Var) -> TensorType:
    """The type of a variable that is a tensor."""
    assert isinstance(var.type, TensorType)
    return var.type


def static_extents(type_: TensorType) -> tuple[int, ...]:
    """The extents of a type all of whose extents are known to be constants."""
    return tuple(extent for extent in type_.shape if isinstance(extent, int))


def whole_extents(var: Var, span: Span) -> tuple[int, int]:
    """The extents of the tile that holds a whole tensor."""
    shape = tensor_type(var).shape
    static = [extent for extent in shape if isinstance(extent, int)]
    if len(static) != len(shape):
        raise CompileError(
            f"{var.name} has extents that are known at run time only, so it cannot be used as a "
            "whole: load tiles of constant shape with pl.load",
            span,
        )
    return math.prod(static[:-1]), static[-1]
