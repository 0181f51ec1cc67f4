"""Result types of the operations on one element of a tensor or a tile.

``tensor.read`` and ``tensor.write`` stand in orchestration code and on a core. A tensor is memory,
so writing an element changes it under every name; a tile is a value, so ``tile.write`` gives
another one, which memory planning puts where the first was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto.ir.dtypes import INDEX
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import (
    AttrValue,
    Const,
    MemorySpace,
    Operand,
    ScalarType,
    TensorType,
    TileType,
    Type,
)
from pypto.ir.typing_rules import show_type, type_of


def check_indices(type_: TensorType | TileType, indices: Sequence[Operand]) -> None:
    """One index for each axis, and inside it where both are known; else :class:`IrTypeError`."""
    if len(indices) != len(type_.shape):
        raise IrTypeError(
            f"an element of a {show_type(type_)} has {len(type_.shape)} indices, not {len(indices)}"
        )
    for axis, (index, extent) in enumerate(zip(indices, type_.shape, strict=True)):
        if type_of(index) != ScalarType(INDEX):
            raise IrTypeError(f"an index is a whole number, not a {show_type(type_of(index))}")
        if not isinstance(index, Const):
            continue
        if index.value < 0 or (isinstance(extent, int) and index.value >= extent):
            raise IrTypeError(
                f"index {index.value} is outside axis {axis} of a {show_type(type_)}; indices "
                "count from 0 and cannot be negative"
            )


def _container(operand: Operand) -> TensorType | TileType:
    type_ = type_of(operand)
    if isinstance(type_, TileType) and type_.space is not MemorySpace.Vec:
        raise IrTypeError(
            f"elements of a tile can be used in Vec only, but it is in {type_.space.name}; move "
            "it there with pl.move"
        )
    assert isinstance(type_, TensorType | TileType)
    return type_


def element_read(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The element at the indices that follow the tensor or the tile."""
    type_ = _container(operands[0])
    check_indices(type_, operands[1:])
    return ScalarType(type_.dtype)


def element_write(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The whole of the first operand, after the last one is written at the indices between."""
    type_ = _container(operands[0])
    check_indices(type_, operands[1:-1])
    value = type_of(operands[-1])
    if value != ScalarType(type_.dtype):
        raise IrTypeError(
            f"the elements of a {show_type(type_)} are {type_.dtype}, but the value is a "
            f"{show_type(value)}; convert it with pl.cast"
        )
    return type_
