"""A part of a tensor or a tile that an operation reads or writes: how it is said and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto.ir.dtypes import BF16, FP16, FP32, INT8, INT16, INT32
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import (
    AtomicType,
    AttrValue,
    Const,
    MemorySpace,
    Operand,
    ScalarType,
    TensorLayout,
    TensorType,
    TileType,
    Type,
)
from pypto.ir.typing_rules import show_shape, show_type, type_of

_ATOMIC_DTYPES = (FP32, FP16, BF16, INT32, INT16, INT8)
# A fractal of layout NZ: so many rows, of so many bytes each.
NZ_BLOCK_ROWS = 16
NZ_BLOCK_BYTES = 32


def load_attrs(
    shape: tuple[int, ...], space: MemorySpace, *, has_valid: bool = False
) -> dict[str, AttrValue]:
    """The attributes of ``tile.load``; with ``has_valid`` its last operands bound what is read."""
    return {"shape": shape, "space": space, "has_valid": has_valid}


def slice_attrs(
    shape: tuple[int, ...],
    *,
    drop: tuple[int, ...] = (),
    has_valid: bool = False,
    pad: str = "",
) -> dict[str, AttrValue]:
    """The attributes of ``tensor.slice``; with ``has_valid`` its last operands bound what is read.

    ``pad`` says what fills the rest, if anything.
    """
    return {"shape": shape, "drop": drop, "has_valid": has_valid, "pad": pad}


def tile_slice_attrs(
    shape: tuple[int, ...], *, has_valid: bool = False, pad: str = "", clamp: bool = False
) -> dict[str, AttrValue]:
    """The attributes of ``tile.slice``; with ``clamp`` the region may reach past the tile."""
    return {"shape": shape, "has_valid": has_valid, "pad": pad, "clamp": clamp}


def show_tuple(values: Sequence[object]) -> str:
    """``[1, 2]``."""
    return "[" + ", ".join(str(v) for v in values) + "]"


def check_region(
    tensor: TensorType, offsets: Sequence[Operand], sizes: Sequence[int | None], verb: str
) -> None:
    """Constant offsets and sizes against static extents."""
    if len(offsets) != len(tensor.shape):
        raise IrTypeError(
            f"needs {len(tensor.shape)} offsets for a {show_type(tensor)}, got {len(offsets)}"
        )
    if tensor.layout is TensorLayout.NZ:
        _check_fractals(tensor, offsets[-1], sizes[-1], verb)
    for axis, (offset, size, dim) in enumerate(zip(offsets, sizes, tensor.shape, strict=True)):
        extent = dim if isinstance(dim, int) else None
        type_ = type_of(offset)
        if not isinstance(type_, ScalarType) or not type_.dtype.is_int:
            raise IrTypeError(f"offset {axis} must be an integer, but is a {show_type(type_)}")
        if isinstance(offset, Const):
            start = int(offset.value)
            if start < 0:
                raise IrTypeError(f"offset {axis} is {start}; offsets count from 0")
            if extent is not None and start + (size or 0) > extent:
                raise IrTypeError(
                    f"{verb} elements {start} to {start + (size or 0)} of axis {axis}, which has "
                    f"{extent}: out of range"
                )
        elif extent is not None and size is not None and size > extent:
            raise IrTypeError(
                f"{verb} {size} elements of axis {axis}, which has {extent}: out of range"
            )


def _check_fractals(tensor: TensorType, offset: Operand, size: int | None, verb: str) -> None:
    """A region of a tensor in layout NZ begins and ends between two column blocks."""
    block = NZ_BLOCK_BYTES // tensor.dtype.get_byte()
    start = int(offset.value) if isinstance(offset, Const) else 0
    if size is None or size % block or start % block:
        region = f"columns {start} to {start + size}" if size else "columns known at run time only"
        raise IrTypeError(
            f"{verb} {region} of a tensor in layout NZ, which takes multiples of {block}"
        )


def region_sizes(rank: int, valid: tuple[int | None, int | None]) -> tuple[int | None, ...]:
    """How many elements of each axis a tile covers."""
    return (1,) * (rank - 2) + valid if rank > 1 else valid[1:]


def const_extent(operand: Operand, limit: int, what: str) -> int | None:
    """A valid extent of 0 to ``limit``; ``None`` where it is a run-time value."""
    type_ = type_of(operand)
    if not isinstance(type_, ScalarType) or not type_.dtype.is_int:
        raise IrTypeError(f"{what} must be an integer, but is a {show_type(type_)}")
    if not isinstance(operand, Const):
        return None
    value = int(operand.value)
    if not 0 <= value <= limit:
        raise IrTypeError(f"{what} is {value}, outside 0 to {limit}")
    return value


def region_extents(tensor: TensorType, shape: Sequence[object]) -> tuple[int, ...]:
    """The extents of a region that one tile can hold."""
    extents = tuple(extent for extent in shape if isinstance(extent, int))
    rank = len(tensor.shape)
    if len(extents) != rank:
        raise IrTypeError(f"needs {rank} extents for a {show_type(tensor)}, got {len(extents)}")
    if any(extent != 1 for extent in extents[:-2]):
        raise IrTypeError(
            f"all but the last two extents of a region must be 1, but it is {show_tuple(extents)}"
        )
    return extents


def check_store_dtype(source: Type, target: TensorType) -> None:
    """Refuses elements of another type, but for fp32 of Acc, which is narrowed on its way out."""
    if source.dtype == target.dtype:
        return
    narrowing = (
        isinstance(source, TileType)
        and source.space is MemorySpace.Acc
        and source.dtype == FP32
        and target.dtype in (FP16, BF16)
    )
    if not narrowing:
        raise IrTypeError(
            f"element types differ: the value is a {show_type(source)}, the target a "
            f"{show_type(target)}; convert the value with pl.cast(x, {target.dtype!r})"
        )


def check_atomic(target: TensorType, attrs: Mapping[str, AttrValue]) -> None:
    """:class:`IrTypeError` unless the target can be written in the way that ``atomic`` says."""
    atomic = attrs.get("atomic", AtomicType.None_)
    if atomic not in (AtomicType.None_, AtomicType.Add):
        raise IrTypeError(f"atomic must be pl.AtomicType.Add or None_, not {atomic!r}")
    if atomic is AtomicType.Add and target.dtype not in _ATOMIC_DTYPES:
        names = ", ".join(str(dtype) for dtype in _ATOMIC_DTYPES)
        raise IrTypeError(
            f"cannot add atomically to a {show_type(target)}; its elements must be one of {names}"
        )


def check_layout(tensor: TensorType, layout: TensorLayout) -> None:
    """:class:`IrTypeError` unless the tensor can be stored in that order."""
    if layout is TensorLayout.DN:
        raise IrTypeError("a tensor is not stored by columns: use pl.ND, and pl.transpose a tile")
    if layout is TensorLayout.NZ:
        block = NZ_BLOCK_BYTES // tensor.dtype.get_byte()
        rows, cols = tensor.shape[-2:] if len(tensor.shape) == 2 else (0, 0)
        if not isinstance(rows, int) or not isinstance(cols, int) or not rows:
            raise IrTypeError("a tensor in layout NZ has two constant extents")
        if rows % NZ_BLOCK_ROWS or cols % block:
            raise IrTypeError(
                f"a tensor of {tensor.dtype} in layout NZ has a multiple of {NZ_BLOCK_ROWS} rows "
                f"and of {block} columns, not {show_shape(tensor.shape)}"
            )
