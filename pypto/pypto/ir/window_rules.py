"""Result types of the operations on a part of a tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pypto.ir.dtypes import BF16, FP16, FP32
from pypto.ir.errors import IrTypeError
from pypto.ir.memory_rules import MOVES, tile_extents
from pypto.ir.nodes import (
    AttrValue,
    Const,
    Dim,
    MemorySpace,
    Operand,
    ScalarType,
    TensorType,
    TileType,
    Type,
)
from pypto.ir.regions import const_extent, show_tuple
from pypto.ir.typing_rules import PADS, show_type, type_of

_FACTOR_SPACES = (MemorySpace.Left, MemorySpace.Right, MemorySpace.Bias)


def tile_slice(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """A region of a tile as a tile of its own in the same space.

    What is valid of it is what is valid in the source, cut by ``valid_shape`` if there is one.
    """
    tile, shape, pad = _readable(operands[0]), tile_extents(attrs), attrs["pad"]
    if pad not in ("", *PADS):
        raise IrTypeError(f"pad_value must be one of {', '.join(PADS)}, not {pad}")
    offsets, bounds = list(operands[1:]), list[Operand]()
    if attrs["has_valid"]:
        offsets, bounds = offsets[:-2], offsets[-2:]
    starts = _starts(tile, offsets)
    valid: list[int | None] = []
    for axis, (start, extent) in enumerate(zip(starts, shape, strict=True)):
        if not attrs["clamp"]:
            _check_inside(tile, axis, start, extent, "reads")
        inside = region_valid(tile, axis, start, extent, clamp=bool(attrs["clamp"]))
        if bounds:
            bound = const_extent(bounds[axis], extent, f"valid_shape[{axis}]")
            inside = None if bound is None or inside is None else min(bound, inside)
        valid.append(inside)
    return TileType(shape, tile.dtype, tile.space, (valid[0], valid[1]))


def region_valid(
    tile: TileType, axis: int, start: int | None, extent: int, *, clamp: bool
) -> int | None:
    """How many of ``extent`` rows or columns from ``start`` on are valid, if that is known."""
    valid = tile.valid[axis]
    if valid == tile.shape[axis] and not clamp:
        return extent  # a region that does not lie inside ends the run
    if valid is None or start is None:
        return None
    return max(0, min(extent, valid - start))


def tile_assemble(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The first operand, a part of it replaced by the last one's valid region."""
    target, source = type_of(operands[0]), _readable(operands[-1])
    if not isinstance(target, TileType):
        raise IrTypeError(f"the target is a {show_type(target)}, not a tile")
    if target.space not in (MemorySpace.Vec, MemorySpace.Mat):
        raise IrTypeError(f"cannot write into a {show_type(target)}; assemble in Vec or Mat")
    if target.space is not source.space and target.space not in MOVES.get(source.space, ()):
        raise IrTypeError(
            f"cannot write a {show_type(source)} into a {show_type(target)}: no way leads from "
            f"{source.space.name} to {target.space.name}"
        )
    if source.dtype != target.dtype and not _narrows(source, target):
        raise IrTypeError(
            f"element types differ: the target is a {show_type(target)}, the source a "
            f"{show_type(source)}; convert the source with pl.cast(x, {target.dtype!r})"
        )
    for axis, start in enumerate(_starts(target, operands[1:-1])):
        _check_inside(target, axis, start, source.valid[axis] or 0, "writes")
    return target


def set_validshape(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The same elements, of which another part is valid. A tensor's type does not say which."""
    shaped, bounds = type_of(operands[0]), operands[1:]
    if isinstance(shaped, TensorType):
        extents: Sequence[Dim] = (1, *shaped.shape)[-2:]
    else:
        extents = _readable(operands[0]).shape
    if len(bounds) != 2:
        raise IrTypeError(f"needs the number of rows and of columns, got {len(bounds)} extents")
    valid = [
        const_extent(bound, extent if isinstance(extent, int) else 2**31, what)
        for bound, extent, what in zip(bounds, extents, ("rows", "cols"), strict=True)
    ]
    if isinstance(shaped, TensorType):
        return shaped
    assert isinstance(shaped, TileType)
    return replace(shaped, valid=(valid[0], valid[1]))


def _narrows(source: TileType, target: TileType) -> bool:
    """Whether a product is rounded to a narrower type on its way out of Acc."""
    leaves = source.space is MemorySpace.Acc and source.dtype == FP32
    return leaves and target.dtype in (FP16, BF16)


def _readable(operand: Operand) -> TileType:
    tile = type_of(operand)
    if not isinstance(tile, TileType):
        raise IrTypeError(f"a {show_type(tile)} is not a tile")
    if tile.space in _FACTOR_SPACES:
        raise IrTypeError(f"cannot read a part of a {show_type(tile)}; take it in Mat")
    return tile


def _starts(tile: TileType, offsets: Sequence[Operand]) -> list[int | None]:
    """The constant offsets; ``None`` for run-time values."""
    if len(offsets) != 2:
        raise IrTypeError(f"needs 2 offsets for a {show_type(tile)}, got {len(offsets)}")
    starts: list[int | None] = []
    for axis, offset in enumerate(offsets):
        type_ = type_of(offset)
        if not isinstance(type_, ScalarType) or not type_.dtype.is_int:
            raise IrTypeError(f"offset {axis} must be an integer, but is a {show_type(type_)}")
        starts.append(int(offset.value) if isinstance(offset, Const) else None)
        if isinstance(offset, Const) and offset.value < 0:
            raise IrTypeError(f"offset {axis} is {offset.value}; offsets count from 0")
    return starts


def _check_inside(tile: TileType, axis: int, start: int | None, extent: int, verb: str) -> None:
    limit = tile.shape[axis]
    if (start or 0) + extent > limit:
        what = f"{extent} elements" if start is None else f"elements {start} to {start + extent}"
        raise IrTypeError(
            f"{verb} {what} of axis {axis} of a tile of {show_tuple(tile.shape)}: out of range"
        )
