"""Subscripts on the left of an assignment."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from pypto.ir.dtypes import INDEX
from pypto.ir.nodes import AttrValue, Const, Dim, Operand, TensorType, TileType, Var
from pypto.ir.typing_rules import show_shape, show_type
from pypto.language.parser.arrays import write_into_array
from pypto.language.parser.assigning import assign_whole, narrowed
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserTypeError,
)
from pypto.language.parser.elements import write_element
from pypto.language.parser.expressions import evaluate
from pypto.language.parser.frame import Frame
from pypto.language.parser.partial import shaped_on_core
from pypto.language.parser.slices import Region, element_of, region_of
from pypto.language.parser.values import Value, is_array, is_scalar, is_tensor, is_tile, show_value
from pypto.language.parser.views import assign_part, subscript_view


def assign_region(frame: Frame, target: ast.Subscript, value: Value) -> None:
    """``out[:] = e``, ``out[a:b, c:d] = tile`` and ``out[i, j] = s``."""
    container = evaluate(frame, target.value)
    if is_array(container):
        write_into_array(frame, container, evaluate(frame, target.slice), value, target)
        return
    if not is_tensor(container) and not is_tile(container):
        raise frame.error(
            InvalidOperationError, target, f"cannot write into {show_value(container)} with []"
        )
    if is_scalar(value):
        indices = element_of(frame, container, target.slice, evaluate)
        if indices is None:
            raise frame.error(
                ParserTypeError,
                target,
                f"a scalar is written to one element, by an index for each axis of "
                f"{show_value(container)}; fill a region with pl.full",
            )
        write_element(frame, container, indices, value, target, target.value)
        return
    if not is_tile(value) and not is_tensor(value):
        raise frame.error(
            ParserTypeError,
            target,
            f"what is written into {show_value(container)} must be a tile, a tensor or a scalar, "
            f"not {show_value(value)}",
        )
    value = shaped_on_core(frame, value, target)
    if is_tile(container):
        result = _into_tile(frame, container, value, target)
    elif not frame.on_core and is_tensor(value):
        part = container
        if not _is_whole(target.slice):
            part = subscript_view(frame, container, target, container.name, evaluate)
        assign_part(frame, part, value, target)
        return
    else:
        result = _into_tensor(frame, container, value, target)
        frame.values.record_write(result, container)
    if isinstance(target.value, ast.Name):
        frame.env[target.value.id] = result


def _is_whole(index: ast.expr) -> bool:
    """Whether a subscript is ``[:]``, ``[...]`` or ``[:, :]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(p, ast.Slice) and p.lower is None and p.upper is None and p.step is None)
        or (isinstance(p, ast.Constant) and p.value is Ellipsis)
        for p in parts
    )


def _into_tensor(frame: Frame, tensor: Var, value: Var, target: ast.Subscript) -> Var:
    assert isinstance(tensor.type, TensorType)
    if is_tile(value):
        if not frame.on_core:
            raise frame.error(InvalidOperationError, target, "a tile can be stored on a core only")
        return _store_tile(frame, tensor, value, target)
    if _is_whole(target.slice):
        return assign_whole(frame, tensor, value, target, tensor.name)
    region = region_of(frame, tensor, target.slice, evaluate)
    assert isinstance(value.type, TensorType)
    # As in numpy, leading extents of 1 are no dimensions.
    if _without_leading_ones(region.extents) != _without_leading_ones(value.type.shape):
        raise frame.error(
            InvalidOperationError,
            target,
            f"a {show_type(value.type)} does not fill a region of {show_shape(region.extents)}",
        )
    source = narrowed(frame, value, tensor.type.dtype, target)
    operands: list[Operand] = [tensor, *region.offsets, source]
    attrs: dict[str, AttrValue] = {"shape": region.shape}
    return frame.emit("tensor.assemble", operands, target, hint=tensor.name, attrs=attrs)


def _without_leading_ones(extents: Sequence[Dim]) -> tuple[Dim, ...]:
    return tuple(itertools.dropwhile(lambda extent: extent == 1, extents))


def _store_tile(frame: Frame, tensor: Var, tile: Var, target: ast.Subscript) -> Var:
    """A tile fills a region of a tensor."""
    assert isinstance(tensor.type, TensorType) and isinstance(tile.type, TileType)
    if _is_whole(target.slice):
        rank = len(tensor.type.shape)
        shape = tile.type.shape[1:] if rank == 1 else (1,) * (rank - 2) + tile.type.shape
        if tensor.type.shape != shape:
            raise frame.error(
                InvalidOperationError,
                target.slice,
                f"a tile of {show_shape(tile.type.shape)} does not fill a tensor of "
                f"{show_shape(tensor.type.shape)}; write out[a:b, c:d] = tile or use pl.store",
            )
        offsets: list[Operand] = [Const(0, INDEX)] * rank
    else:
        region = region_of(frame, tensor, target.slice, evaluate)
        tile = _fitting(frame, region, tile, target)
        offsets = region.offsets
    return frame.emit("tile.store", [tile, *offsets, tensor], target, hint=tensor.name)


def _fitting(frame: Frame, region: Region, tile: Var, target: ast.Subscript) -> Var:
    """The tile in the shape of a region that it fills; a row may fill a column."""
    assert isinstance(tile.type, TileType)
    shape = region.shape if len(region.shape) > 1 else (1, *region.shape)
    if (1,) * (len(shape) - 2) + tile.type.shape == shape:
        return tile
    column = (*((1,) * (len(shape) - 2)), tile.type.shape[1], 1)
    if region.drop and tile.type.shape[0] == 1 and shape == column:
        return frame.emit("tile.reshape", [tile], target, attrs={"shape": shape[-2:]})
    raise frame.error(
        InvalidOperationError,
        target.slice,
        f"the region has {show_shape(region.shape)} elements, but the tile has "
        f"{show_shape(tile.type.shape)}",
    )


def _into_tile(frame: Frame, tile: Var, value: Var, target: ast.Subscript) -> Var:
    if is_tensor(value):
        raise frame.error(
            ParserTypeError,
            target,
            f"cannot write {show_value(value)} into a tile; load it with pl.load",
        )
    assert isinstance(value.type, TileType) and isinstance(tile.type, TileType)
    if _is_whole(target.slice):
        if value.type.shape != tile.type.shape:
            raise frame.error(
                InvalidOperationError,
                target.slice,
                f"a {show_type(value.type)} does not fill a {show_type(tile.type)}",
            )
        if value.type == tile.type:
            return value
        offsets: list[Operand] = [Const(0, INDEX)] * 2
    else:
        region = region_of(frame, tile, target.slice, evaluate)
        value = _fitting(frame, region, value, target)
        offsets = region.offsets
    return frame.emit("tile.assemble", [tile, *offsets, value], target, hint=tile.name)
