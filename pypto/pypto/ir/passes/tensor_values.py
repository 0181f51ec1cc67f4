"""Tensor-level values of a scope: which variables are values, and the extents of their tiles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

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
from pypto.ir.op_spec import Role
from pypto.ir.ops import OPS
from pypto.ir.passes.rewrite import bindings, reads, walk


def computed_values(body: Sequence[Stmt]) -> frozenset[Var]:
    """The tensor variables of a scope that are values, not names of memory."""
    values: set[Var] = set()
    size = -1
    while size != len(values):
        size = len(values)
        for stmt in walk(body):
            match stmt:
                case Op() if stmt.op.startswith("tensor.") and stmt.result is not None:
                    spec = OPS[stmt.op]
                    if spec.aliases is not None:
                        if stmt.operands[spec.aliases] in values:
                            values.add(stmt.result)
                    elif spec.role is not Role.MEMORY:
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
    return any(isinstance(s, Op) and OPS[s.op].writes for s in walk(body))


def space_of(tile: Var) -> MemorySpace:
    """Where a tile lives."""
    assert isinstance(tile.type, TileType)
    return tile.type.space


def tensor_type(var: Var) -> TensorType:
    """The type of a variable that is a tensor."""
    assert isinstance(var.type, TensorType)
    return var.type


def region_of(op: Op) -> tuple[int, int]:
    """The last two extents of the region that a slice or an assembly names, as of a matrix."""
    shape = op.attrs["shape"]
    assert isinstance(shape, tuple)
    rows, cols = (1, *(e for e in shape if isinstance(e, int)))[-2:]
    return rows, cols


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
