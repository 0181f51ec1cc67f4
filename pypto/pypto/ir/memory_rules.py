"""Result types of the operations that allocate, move or reinterpret data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pypto.ir.dtypes import INDEX, TASK_ID, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import (
    AttrValue,
    Dim,
    DynDim,
    MemorySpace,
    Operand,
    ScalarType,
    TensorLayout,
    TensorType,
    TileType,
    Type,
)
from pypto.ir.regions import (
    check_atomic,
    check_region,
    check_store_dtype,
    const_extent,
    region_extents,
    region_sizes,
    show_tuple,
)
from pypto.ir.typing_rules import MAX_RANK, show_shape, show_type, type_of

_LOAD_SPACES = (MemorySpace.Vec, MemorySpace.Mat)
# Where a tile can be copied to, by where it is.
MOVES: Mapping[MemorySpace, tuple[MemorySpace, ...]] = {
    MemorySpace.Vec: (MemorySpace.Vec,),
    MemorySpace.Mat: (MemorySpace.Left, MemorySpace.Right, MemorySpace.Bias, MemorySpace.Vec),
    MemorySpace.Acc: (MemorySpace.Vec, MemorySpace.Mat),
}


def tile_extents(attrs: Mapping[str, AttrValue]) -> tuple[int, int]:
    """The attribute ``shape`` as the extents of a tile."""
    shape = attrs["shape"]
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise IrTypeError(f"a tile has two dimensions, but shape is {shape!r}")
    rows, cols = shape
    if not isinstance(rows, int) or not isinstance(cols, int) or rows < 1 or cols < 1:
        raise IrTypeError(f"tile extents must be positive, but shape is {show_tuple(shape)}")
    return rows, cols


def _space(attrs: Mapping[str, AttrValue]) -> MemorySpace:
    space = attrs["space"]
    if not isinstance(space, MemorySpace):
        raise IrTypeError(f"target_memory must be a pl.MemorySpace, not {space!r}")
    return space


def _dtype(attrs: Mapping[str, AttrValue]) -> DataType:
    dtype = attrs["dtype"]
    if not isinstance(dtype, DataType):
        raise IrTypeError(f"dtype must be an element type such as pl.FP32, not {dtype!r}")
    if dtype in (INDEX, TASK_ID):
        raise IrTypeError(f"cannot hold {dtype} elements")
    return dtype


def check_tensor_type(shape: Sequence[Dim], dtype: DataType) -> TensorType:
    """A valid tensor type, or :class:`IrTypeError`."""
    if not 1 <= len(shape) <= MAX_RANK:
        raise IrTypeError(f"a tensor has 1 to {MAX_RANK} dimensions, not {len(shape)}")
    for extent in shape:
        if isinstance(extent, int) and extent < 1:
            raise IrTypeError(f"tensor extents must be positive, but shape is {show_shape(shape)}")
    if dtype == INDEX:
        raise IrTypeError("a tensor cannot hold index elements; use pl.INT64")
    return TensorType(tuple(shape), dtype)


def tensor_create(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """A new tensor; ``None`` extents take their value from the operands, in order."""
    shape, symbols = attrs["shape"], attrs.get("symbols", ())
    assert isinstance(shape, tuple) and isinstance(symbols, tuple)
    names = iter(symbols)
    extents: list[Dim] = []
    for extent in shape:
        if extent is None:
            symbol = next(names)
            assert isinstance(symbol, str)
            extents.append(DynDim(symbol))
        else:
            assert isinstance(extent, int)
            extents.append(extent)
    if len(operands) != len(symbols):
        raise IrTypeError("needs one operand for each extent that is not a constant")
    return check_tensor_type(extents, _dtype(attrs))


def axis_tensor(operands: Sequence[Operand]) -> TensorType:
    """The type of the tensor that is the first operand."""
    type_ = type_of(operands[0])
    if not isinstance(type_, TensorType):
        raise IrTypeError(f"argument 1 is a {show_type(type_)}, not a tensor")
    return type_


def tensor_dim(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The extent of one axis."""
    tensor, axis = axis_tensor(operands), attrs["axis"]
    if not isinstance(axis, int) or not 0 <= axis < len(tensor.shape):
        raise IrTypeError(f"axis {axis} is out of range for a {show_type(tensor)}")
    return ScalarType(INDEX)


def _check_count(old: Sequence[int], new: Sequence[int]) -> None:
    if math.prod(old) != math.prod(new):
        raise IrTypeError(
            f"cannot turn {show_tuple(old)} ({math.prod(old)} elements) into {show_tuple(new)} "
            f"({math.prod(new)} elements)"
        )


def tensor_reshape(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The same elements in row-major order under another shape."""
    tensor, shape = axis_tensor(operands), attrs["shape"]
    assert isinstance(shape, tuple)
    if tensor.layout is not TensorLayout.ND:
        raise IrTypeError(f"a tensor in layout {tensor.layout.name} cannot have another shape")
    if tensor.strided:
        raise IrTypeError(
            "the tensor is a part of a larger one with gaps between its elements, so it cannot "
            "have another shape; reshape the whole tensor and take the part of that"
        )
    old = [d for d in tensor.shape if isinstance(d, int)]
    new = [d for d in shape if isinstance(d, int)]
    if len(old) != len(tensor.shape) or len(new) != len(shape):
        raise IrTypeError("needs extents that are known when the kernel is compiled")
    _check_count(old, new)
    return check_tensor_type(new, tensor.dtype)


def tensor_slice(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """A region of a tensor as a tensor of its own, without the axes to drop."""
    tensor, shape, drop = axis_tensor(operands), attrs["shape"], attrs["drop"]
    assert isinstance(shape, tuple) and isinstance(drop, tuple)
    extents = region_extents(tensor, shape)
    for axis in drop:
        if not isinstance(axis, int) or not 0 <= axis < len(extents) or extents[axis] != 1:
            raise IrTypeError(f"cannot drop axis {axis} of a region of {show_tuple(extents)}")
    offsets, sizes = operands[1:], tuple[int | None, ...](extents)
    if attrs["has_valid"]:
        *offsets, rows, cols = operands[1:]
        matrix = (1, *extents)[-2:]
        valid = (
            const_extent(rows, matrix[0], "valid_shape[0]"),
            const_extent(cols, matrix[1], "valid_shape[1]"),
        )
        sizes = region_sizes(len(extents), valid)
    check_region(tensor, offsets, sizes, "reads")
    rest = [extent for axis, extent in enumerate(extents) if axis not in drop]
    return check_tensor_type(rest, tensor.dtype)


def tensor_assemble(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """A region of the first operand takes the last one's values."""
    target, source, shape = axis_tensor(operands), type_of(operands[-1]), attrs["shape"]
    assert isinstance(source, TensorType) and isinstance(shape, tuple)
    extents = region_extents(target, shape)
    own = [extent for extent in source.shape if isinstance(extent, int)]
    if len(own) != len(source.shape) or math.prod(own) != math.prod(extents):
        raise IrTypeError(f"a {show_type(source)} does not fill a region of {show_tuple(extents)}")
    check_region(target, operands[1:-1], extents, "writes")
    check_store_dtype(source, target)
    check_atomic(target, attrs)
    return target


def tensor_assign(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The whole of the first operand takes the second's values."""
    target, source = axis_tensor(operands), type_of(operands[1])
    if not isinstance(source, TensorType):
        raise IrTypeError(f"cannot assign a {show_type(source)} to a {show_type(target)}")
    if source.shape != target.shape:
        raise IrTypeError(
            f"shapes differ: the target is a {show_type(target)}, the value a {show_type(source)}"
        )
    check_store_dtype(source, target)
    return target


def tile_load(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """A region of a tensor as a tile."""
    tensor, shape, space = axis_tensor(operands), tile_extents(attrs), _space(attrs)
    if space not in _LOAD_SPACES:
        raise IrTypeError(f"cannot load into {space.name}; load into Vec or Mat, then use pl.move")
    rest = list(operands[1:])
    valid: tuple[int | None, int | None] = shape
    if attrs["has_valid"]:
        *rest, rows, cols = rest
        valid = (
            const_extent(rows, shape[0], "valid_shape[0]"),
            const_extent(cols, shape[1], "valid_shape[1]"),
        )
    rank = len(tensor.shape)
    if rank == 1 and shape[0] != 1:
        raise IrTypeError(f"a {show_type(tensor)} gives tiles of one row, not {show_shape(shape)}")
    sizes = region_sizes(rank, valid)
    check_region(tensor, rest, sizes, "reads")
    return TileType(shape, tensor.dtype, space, valid)


def tile_store(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The valid region of a tile into a tensor; the result is that tensor."""
    tile, target = type_of(operands[0]), type_of(operands[-1])
    if not isinstance(tile, TileType):
        raise IrTypeError(f"argument 1 is a {show_type(tile)}, not a tile")
    if not isinstance(target, TensorType):
        raise IrTypeError(f"the target is a {show_type(target)}, not a tensor")
    check_store_dtype(tile, target)
    check_atomic(target, attrs)
    rank = len(target.shape)
    if rank == 1 and tile.shape[0] != 1:
        raise IrTypeError(f"a {show_type(tile)} does not fit a {show_type(target)} of one axis")
    sizes = region_sizes(rank, tile.valid)
    check_region(target, operands[1:-1], sizes, "writes")
    return target


def tile_move(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The same tile in another memory space, or once more in its own."""
    tile, space = type_of(operands[0]), _space(attrs)
    if not isinstance(tile, TileType):
        raise IrTypeError(f"argument 1 is a {show_type(tile)}, not a tile; load it with pl.load")
    if space is tile.space:
        return tile  # a copy
    _refuse_unread(space)
    legal = MOVES.get(tile.space, ())
    if space not in legal:
        ways = ", ".join(s.name for s in legal) or "nowhere"
        raise IrTypeError(
            f"cannot move from {tile.space.name} to {space.name}; from {tile.space.name} a tile "
            f"can go to {ways}"
        )
    return TileType(tile.shape, tile.dtype, space, tile.valid)


# Spaces that exist and that no operation reads, each with what to do in its place.
_UNREAD: Mapping[MemorySpace, str] = {
    MemorySpace.LeftScale: "factors have no scales; scale the product in Vec with pl.mul",
    MemorySpace.RightScale: "factors have no scales; scale the product in Vec with pl.mul",
}


def _refuse_unread(space: MemorySpace) -> None:
    if space in _UNREAD:
        raise IrTypeError(f"no operation reads tiles in {space.name}; {_UNREAD[space]}")


def tile_create(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """A tile whose contents are undefined."""
    shape, space = tile_extents(attrs), _space(attrs)
    if space is MemorySpace.DDR:
        raise IrTypeError("a tile cannot live in DDR; use pl.create_tensor in the orchestration")
    _refuse_unread(space)
    return TileType(shape, _dtype(attrs), space, shape)


def tile_full(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """A tile that holds one value everywhere."""
    shape = tile_extents(attrs)
    return TileType(shape, _dtype(attrs), MemorySpace.Vec, shape)


def tensor_full(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """A tensor-level value that is one number everywhere."""
    shape = attrs["shape"]
    assert isinstance(shape, tuple)
    extents = [extent for extent in shape if isinstance(extent, int)]
    return check_tensor_type(extents, _dtype(attrs))


def tile_reshape(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The same elements in row-major order under another shape."""
    tile, shape = type_of(operands[0]), tile_extents(attrs)
    if not isinstance(tile, TileType) or tile.space is not MemorySpace.Vec:
        raise IrTypeError(f"argument 1 must be a tile in Vec, but is a {show_type(tile)}")
    _check_count(tile.shape, shape)
    if tile.valid == tile.shape:
        valid: tuple[int | None, int | None] = shape
    elif tile.shape[1] == 1 == shape[0] and tile.valid[1] == 1:
        valid = (1, tile.valid[0])
    elif tile.shape[0] == 1 == shape[1] and tile.valid[0] == 1:
        valid = (tile.valid[1], 1)
    elif shape == tile.shape:
        valid = tile.valid
    else:
        raise IrTypeError(f"a {show_type(tile)} is not wholly valid, so its elements cannot move")
    return TileType(shape, tile.dtype, MemorySpace.Vec, valid)
