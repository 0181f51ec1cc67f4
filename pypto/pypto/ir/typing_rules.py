"""Result types of the operations: one function a family, over both tiles and tensors.

Each takes the operands and attributes of an operation and gives its result type, or raises
:class:`IrTypeError` with a message that the caller prefixes with the operation's public name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from pypto.ir.dtypes import BOOL, INDEX, TASK_ID, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import (
    ArrayType,
    AttrValue,
    Const,
    Dim,
    DynDim,
    MemorySpace,
    Operand,
    ScalarType,
    TensorType,
    TileType,
    Type,
)

Infer = Callable[[Sequence[Operand], Mapping[str, AttrValue]], Type]
Shaped = TensorType | TileType

CAST_MODES: tuple[str, ...] = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")

# By number: 0 eq, 1 ne, ...
COMPARISONS: tuple[str, ...] = ("eq", "ne", "lt", "le", "gt", "ge")

PADS: tuple[str, ...] = ("zero", "max", "min")

MAX_RANK = 5


def type_of(operand: Operand) -> Type:
    """The type of a variable or of a literal."""
    return ScalarType(operand.dtype) if isinstance(operand, Const) else operand.type


def rank_of(operand: Operand) -> int:
    """How many axes a tile or a tensor has."""
    type_ = type_of(operand)
    assert isinstance(type_, TileType | TensorType)
    return len(type_.shape)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value of Python is a whole number; a truth value is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def show_shape(shape: Sequence[Dim | None]) -> str:
    """``[16, N]``: symbols by name, unknown extents as ``?``."""
    parts = [d.symbol if isinstance(d, DynDim) else "?" if d is None else str(d) for d in shape]
    return "[" + ", ".join(parts) + "]"


def show_type(type_: Type) -> str:
    """A type as messages show it, such as ``tile fp32[16, 64] in Vec``."""
    if isinstance(type_, ScalarType):
        return "task id" if type_.dtype == TASK_ID else f"scalar {type_.dtype}"
    if isinstance(type_, ArrayType):
        return f"array of {type_.size} {type_.dtype}"
    if isinstance(type_, TensorType):
        return f"tensor {type_.dtype}{show_shape(type_.shape)}"
    valid = "" if type_.valid == type_.shape else f" (valid {show_shape(type_.valid)})"
    return f"tile {type_.dtype}{show_shape(type_.shape)}{valid} in {type_.space.name}"


def _shaped(operands: Sequence[Operand], index: int) -> Shaped:
    """An operand that is a tile in Vec or a tensor."""
    type_ = type_of(operands[index])
    if isinstance(type_, ScalarType | ArrayType):
        raise IrTypeError(f"argument {index + 1} is a {show_type(type_)}, not a tile or a tensor")
    if isinstance(type_, TileType) and type_.space is not MemorySpace.Vec:
        raise IrTypeError(
            f"argument {index + 1} is a {show_type(type_)}; vector operations read tiles in Vec: "
            "copy it with pl.move(x, pl.Mem.Vec) first"
        )
    return type_


def _tile(operands: Sequence[Operand], index: int) -> TileType:
    type_ = type_of(operands[index])
    if not isinstance(type_, TileType):
        raise IrTypeError(f"argument {index + 1} is a {show_type(type_)}, not a tile")
    return type_


def _tensor(operands: Sequence[Operand], index: int) -> TensorType:
    type_ = type_of(operands[index])
    if not isinstance(type_, TensorType):
        raise IrTypeError(f"argument {index + 1} is a {show_type(type_)}, not a tensor")
    return type_


def valid_of(type_: Shaped) -> tuple[int | None, int | None]:
    """The static valid region; unknown for tensors."""
    return type_.valid if isinstance(type_, TileType) else (None, None)


def _like(
    model: Shaped,
    shape: Sequence[Dim],
    valid: tuple[int | None, int | None],
    dtype: DataType | None = None,
) -> Shaped:
    """A type of the same kind as ``model``; ``valid`` matters to tiles only."""
    element = model.dtype if dtype is None else dtype
    if isinstance(model, TensorType):
        return TensorType(tuple(shape), element)
    rows, cols = shape
    assert isinstance(rows, int) and isinstance(cols, int)  # a tile's shape is static
    return TileType((rows, cols), element, MemorySpace.Vec, valid)


def rank2(type_: Shaped, index: int) -> tuple[Dim, Dim]:
    """The two extents of an operand that must be a matrix."""
    if len(type_.shape) != 2:
        raise IrTypeError(
            f"argument {index + 1} must have two dimensions, but is a {show_type(type_)}"
        )
    return type_.shape[0], type_.shape[1]


def same_dtype(left: Type, right: Type) -> None:
    """Refuses operands of two element types."""
    if left.dtype != right.dtype:
        raise IrTypeError(
            f"element types differ: {show_type(left)} and {show_type(right)}; "
            "convert one with pl.cast"
        )


def static_agree(left: Sequence[int | None], right: Sequence[int | None]) -> bool:
    """Whether extents are equal wherever both are known."""
    return all(a is None or b is None or a == b for a, b in zip(left, right, strict=True))


def binary(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """Elementwise over two operands of one shape."""
    left, right = _shaped(operands, 0), _shaped(operands, 1)
    if left.shape != right.shape:
        raise IrTypeError(f"shapes differ: {show_shape(left.shape)} and {show_shape(right.shape)}")
    same_dtype(left, right)
    _same_valid(left, right)
    return _like(left, left.shape, valid_of(left))


def _same_valid(left: Shaped, right: Shaped) -> None:
    if not static_agree(valid_of(left), valid_of(right)):
        raise IrTypeError(
            f"valid regions differ: {show_shape(valid_of(left))} and "
            f"{show_shape(valid_of(right))}; load both with the same valid_shape"
        )


def with_scalar(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """Elementwise over a tile or tensor and one scalar of its element type."""
    left, scalar = _shaped(operands, 0), type_of(operands[1])
    if not isinstance(scalar, ScalarType):
        raise IrTypeError(f"argument 2 is a {show_type(scalar)}, not a scalar")
    same_dtype(left, scalar)
    return _like(left, left.shape, valid_of(left))


def unary(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """Elementwise over one operand."""
    operand = _shaped(operands, 0)
    return _like(operand, operand.shape, valid_of(operand))


def comparison(infer: Infer) -> Infer:
    """A mask of the shape that ``infer`` gives."""

    def compared(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
        cmp_type = attrs["cmp_type"]
        if isinstance(cmp_type, bool) or cmp_type not in range(len(COMPARISONS)):
            raise IrTypeError(f"cmp_type must be 0 to {len(COMPARISONS) - 1}, not {cmp_type}")
        type_ = infer(operands, attrs)
        assert isinstance(type_, TileType | TensorType)
        return replace(type_, dtype=BOOL)

    return compared


def selection(infer: Infer) -> Infer:
    """What ``infer`` gives for the operands after a mask, which has the same shape."""

    def selected(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
        mask, type_ = _shaped(operands, 0), infer(operands[1:], attrs)
        assert isinstance(type_, TileType | TensorType)
        if mask.dtype != BOOL:
            raise IrTypeError(
                f"the mask must have bool elements, but is a {show_type(mask)}; pl.cmp makes one"
            )
        if mask.shape != type_.shape:
            raise IrTypeError(
                f"the mask has the shape {show_shape(mask.shape)}, but what it selects from has "
                f"{show_shape(type_.shape)}"
            )
        _same_valid(mask, type_)
        return type_

    return selected


def row_reduce(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``[M, N]`` to ``[M, 1]``; tiles may bring a scratch tile."""
    operand = _shaped(operands, 0)
    rows, _cols = rank2(operand, 0)
    if len(operands) == 2:
        _check_scratch(operand, _tile(operands, 1))
    return _like(operand, (rows, 1), (valid_of(operand)[0], 1))


def _check_scratch(operand: Shaped, scratch: TileType) -> None:
    if scratch.shape != operand.shape or scratch.dtype != operand.dtype:
        raise IrTypeError(
            f"tmp must be a tile like the first argument, {show_type(operand)}, "
            f"but is a {show_type(scratch)}"
        )


def col_reduce(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``[M, N]`` to ``[1, N]``."""
    operand = _shaped(operands, 0)
    _rows, cols = rank2(operand, 0)
    return _like(operand, (1, cols), (1, valid_of(operand)[1]))


def transpose(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """Two axes exchanged."""
    operand = _shaped(operands, 0)
    first, second = attrs["axis1"], attrs["axis2"]
    axes = range(len(operand.shape))
    if first not in axes or second not in axes or first == second:
        raise IrTypeError(
            f"cannot exchange the axes {first} and {second} of a {show_type(operand)}"
        )
    assert isinstance(first, int) and isinstance(second, int)
    shape = list(operand.shape)
    shape[first], shape[second] = shape[second], shape[first]
    return _like(operand, shape, valid_of(operand)[::-1])


def transpose_view(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``[M, N]`` to ``[N, M]`` where the tile is, in Vec or Mat."""
    tile = _tile(operands, 0)
    if tile.space not in (MemorySpace.Vec, MemorySpace.Mat):
        raise IrTypeError(f"cannot transpose a {show_type(tile)}; transpose it in Vec or Mat")
    (rows, cols), (valid_rows, valid_cols) = tile.shape, tile.valid
    return replace(tile, shape=(cols, rows), valid=(valid_cols, valid_rows))


def _check_pad(pad: AttrValue) -> None:
    if pad not in PADS:
        raise IrTypeError(f"pad_value must be one of {', '.join(PADS)}, not {pad}")


def fillpad(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The same shape, wholly valid."""
    operand = _shaped(operands, 0)
    _check_pad(attrs["pad"])
    if isinstance(operand, TensorType):
        return operand
    return replace(operand, valid=operand.shape)


def fillpad_expand(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """A shape that is at least as large, wholly valid."""
    operand, shape = _shaped(operands, 0), attrs["shape"]
    _check_pad(attrs["pad"])
    rows, cols = rank2(operand, 0)
    assert isinstance(shape, tuple)
    if len(shape) != 2:
        raise IrTypeError(f"needs two extents, but shape is {list(shape)}")
    extents = [extent for extent in shape if isinstance(extent, int)]
    for old, new in zip((rows, cols), extents, strict=True):
        if not isinstance(old, int) or new < old:
            raise IrTypeError(
                f"cannot expand {show_shape(operand.shape)} to {list(shape)}: no extent may shrink"
            )
    return _like(operand, extents, (extents[0], extents[1]))


def with_slopes(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """Elementwise over floats and as many slopes; tiles may bring a scratch tile."""
    result = binary(operands[:2], attrs)
    if len(operands) == 3:
        _check_scratch(_shaped(operands, 0), _tile(operands, 2))
    return result


def row_expand(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``[M, N]`` with ``[M, 1]``, one value a row."""
    return _expanded(operands, axis=0)


def col_expand(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``[M, N]`` with ``[1, N]``, one value a column."""
    return _expanded(operands, axis=1)


def _expanded(operands: Sequence[Operand], axis: int) -> Type:
    """The first operand with one value of the second for each place along ``axis``."""
    full, vector = _shaped(operands, 0), _shaped(operands, 1)
    rows, cols = rank2(full, 0)
    rank2(vector, 1)
    wanted = (rows, 1) if axis == 0 else (1, cols)
    if vector.shape != wanted:
        raise IrTypeError(
            f"argument 2 must be {show_shape(wanted)} beside {show_shape((rows, cols))}, "
            f"but is {show_shape(vector.shape)}"
        )
    same_dtype(full, vector)
    if not static_agree((valid_of(full)[axis],), (valid_of(vector)[axis],)):
        raise IrTypeError(
            f"valid regions differ: {show_shape(valid_of(full))} and {show_shape(valid_of(vector))}"
        )
    return _like(full, full.shape, valid_of(full))


def cast(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The same elements in ``attrs['dtype']``."""
    operand, dtype, mode = _shaped(operands, 0), attrs["dtype"], attrs["mode"]
    assert isinstance(dtype, DataType)
    if mode not in CAST_MODES:
        raise IrTypeError(f"unknown mode {mode!r}; use one of {', '.join(CAST_MODES)}")
    if dtype in (INDEX, TASK_ID):
        raise IrTypeError(f"cannot convert {operand.dtype} to {dtype}")
    return _like(operand, operand.shape, valid_of(operand), dtype)


def concat(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The columns of two operands side by side."""
    left, right = _shaped(operands, 0), _shaped(operands, 1)
    (rows, cols), (rows2, cols2) = rank2(left, 0), rank2(right, 1)
    if rows != rows2:
        raise IrTypeError(
            f"row counts differ: {show_shape(left.shape)} and {show_shape(right.shape)}"
        )
    same_dtype(left, right)
    if not isinstance(cols, int) or not isinstance(cols2, int):
        raise IrTypeError("needs column counts that are known when the kernel is compiled")
    if isinstance(left, TileType) and left.valid[1] != cols:
        raise IrTypeError(
            f"the first operand must be valid to its last column, but is a {show_type(left)}"
        )
    if not static_agree((valid_of(left)[0],), (valid_of(right)[0],)):
        raise IrTypeError(
            f"valid regions differ: {show_shape(valid_of(left))} and {show_shape(valid_of(right))}"
        )
    valid_cols = valid_of(right)[1]
    valid = (valid_of(left)[0], None if valid_cols is None else cols + valid_cols)
    return _like(left, (rows, cols + cols2), valid)
