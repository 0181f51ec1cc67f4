"""Transposition and products of tensors that one tile holds with their leading axes collapsed.

A tensor ``[B, M, N]`` is a tile ``[B * M, N]``: ``B`` matrices below one another. What works on
each matrix takes them apart and puts the results together in a tile of the same space.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from pypto.ir.dtypes import INDEX
from pypto.ir.errors import CompileError
from pypto.ir.nodes import Const, MemorySpace, Op, Span, TileType, Var
from pypto.ir.passes.rewrite import ZERO
from pypto.ir.passes.scope_values import ScopeValues
from pypto.ir.passes.tensor_values import static_extents, tensor_type, whole_extents
from pypto.ir.regions import tile_slice_attrs

# Matrices are taken apart one by one, in code that is as long as they are many.
_MOST_PARTS = 1024


def transposed(at: ScopeValues, op: Op, space: MemorySpace) -> Var:
    """The tile in ``space`` that holds a transposed tensor."""
    source, result = op.operands[0], op.result
    assert isinstance(source, Var) and result is not None
    shape = _static_shape(source, op.span)
    first, second = op.attrs["axis1"], op.attrs["axis2"]
    assert isinstance(first, int) and isinstance(second, int)
    tile = at.tile(source, space, op.span)
    if len(shape) == 2 and space is MemorySpace.Vec:
        attrs = {"axis1": first, "axis2": second}
        return at.tile_op("tile.transpose", (tile,), result.name, op.span, **attrs)
    last = len(shape) - 1
    steps = [(first, second)]
    if second == last and first != last - 1:
        steps = [(first, last - 1), (last - 1, last), (first, last - 1)]
    for step in steps:
        tile, shape = _exchanged(at, tile, shape, step, result.name, op.span)
    return tile


def batched_product(at: ScopeValues, op: Op, factors: Sequence[Var]) -> Var:
    """The tile in Vec that holds the product of two tensors, a matrix for each place in front."""
    result = op.result
    assert result is not None
    batch = _static_shape(result, op.span)[:-2]
    _check_count(math.prod(batch), op.span)
    wholes = [at.tile(factor, MemorySpace.Mat, op.span) for factor in factors]
    target = _blank(at, result, op.span)
    rows = _static_shape(result, op.span)[-2]
    for position, place in enumerate(itertools.product(*map(range, batch))):
        sides = [
            _matrix_at(at, whole, factor, place, op.span)
            for whole, factor in zip(wholes, factors, strict=True)
        ]
        product = at.tile_op("tile.matmul", tuple(sides), result.name, op.span)
        target = _put(at, target, product, position * rows, op.span)
    return target


def _matrix_at(at: ScopeValues, whole: Var, factor: Var, place: tuple[int, ...], span: Span) -> Var:
    """The matrix of a factor at a place of the product; axes of 1 repeat."""
    shape = _static_shape(factor, span)
    lead, (rows, cols) = shape[:-2], shape[-2:]
    if math.prod(lead) == 1:
        return whole
    index = 0
    for extent, position in zip(lead, place[len(place) - len(lead) :], strict=True):
        index = index * extent + (position if extent > 1 else 0)
    return _part(at, whole, index * rows, (rows, cols), span)


def _exchanged(
    at: ScopeValues,
    tile: Var,
    shape: tuple[int, ...],
    axes: tuple[int, int],
    hint: str,
    span: Span,
) -> tuple[Var, tuple[int, ...]]:
    """A tile with two axes of the tensor exchanged: the last two, or two before the last."""
    first, second = axes
    new = list(shape)
    new[first], new[second] = new[second], new[first]
    last = len(shape) - 1
    if second == last:
        count = math.prod(shape[:-2])
        if count == 1:
            return at.tile_op("tile.transpose_view", (tile,), hint, span), tuple(new)
        _check_count(count, span)
        target = _create(at, tile, (count * shape[-1], shape[-2]), hint, span)
        for index in range(count):
            part = _part(at, tile, index * shape[-2], (shape[-2], shape[-1]), span)
            turned = at.tile_op("tile.transpose_view", (part,), hint, span)
            target = _put(at, target, turned, index * shape[-1], span)
        return target, tuple(new)
    # Blocks of rows find new places; what is inside a block stays as it is.
    block = math.prod(shape[second + 1 : -1])
    outer = shape[: second + 1]
    _check_count(math.prod(outer), span)
    target = _create(at, tile, (math.prod(shape[:-1]), shape[-1]), hint, span)
    for position, place in enumerate(itertools.product(*map(range, outer))):
        moved = list(place)
        moved[first], moved[second] = moved[second], moved[first]
        index = 0
        for extent, coordinate in zip(new[: second + 1], moved, strict=True):
            index = index * extent + coordinate
        part = _part(at, tile, position * block, (block, shape[-1]), span)
        target = _put(at, target, part, index * block, span)
    return target, tuple(new)


def _part(at: ScopeValues, tile: Var, row: int, shape: tuple[int, int], span: Span) -> Var:
    operands = (tile, Const(row, INDEX), ZERO)
    return at.tile_op("tile.slice", operands, tile.name, span, **tile_slice_attrs(shape))


def _put(at: ScopeValues, target: Var, source: Var, row: int, span: Span) -> Var:
    operands = (target, Const(row, INDEX), ZERO, source)
    return at.tile_op("tile.assemble", operands, target.name, span)


def _create(at: ScopeValues, like: Var, shape: tuple[int, int], hint: str, span: Span) -> Var:
    assert isinstance(like.type, TileType)
    space, dtype = like.type.space, like.type.dtype
    return at.tile_op("tile.create", (), hint, span, shape=shape, dtype=dtype, space=space)


def _blank(at: ScopeValues, var: Var, span: Span) -> Var:
    shape, dtype = whole_extents(var, span), tensor_type(var).dtype
    space = MemorySpace.Vec
    return at.tile_op("tile.create", (), var.name, span, shape=shape, dtype=dtype, space=space)


def _static_shape(var: Var, span: Span) -> tuple[int, ...]:
    whole_extents(var, span)  # says that run-time extents cannot be
    return static_extents(tensor_type(var))


def _check_count(count: int, span: Span) -> None:
    if count > _MOST_PARTS:
        raise CompileError(
            f"this works on {count} matrices one by one, more than {_MOST_PARTS}: write a loop "
            "over the first axis",
            span,
        )
