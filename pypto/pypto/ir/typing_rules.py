"""Result types of the operations: one function a family, over both tiles and tensors.

Each takes the operands and attributes of an operation and gives its result type, or raises
:class:`IrTypeError` with a message that the caller prefixes with the operation's public name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pypto.ir.dtypes import BOOL, INDEX, TASK_ID, UINT8, DataType
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

PADS: tuple[str, ...] = ("zero", "max", "min")

MAX_RANK = 5


def type_of(operand: Operand) -> Type:
    """The type of a variable or of a literal."""
    return ScalarType(operand.dtype) if isinstance(operand, Const) else operand.type


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


def _needs_float(type_: Shaped) -> None:
    if not type_.dtype.is_float:
        raise IrTypeError(
            f"needs floating point elements, but got a {show_type(type_)}; "
            "convert it with pl.cast(x, pl.FP32)"
        )


def _needs_int(type_: Shaped) -> None:
    if not type_.dtype.is_int:
        raise IrTypeError(
            f"needs integer elements, but got a {show_type(type_)}; convert it with "
            "pl.cast(x, pl.INT32)"
        )


def _check_elements(type_: Shaped, floats_only: bool, ints_only: bool) -> None:
    if floats_only:
        _needs_float(type_)
    elif ints_only:
        _needs_int(type_)
    else:
        _not_bool(type_)


def _not_bool(type_: Shaped) -> None:
    if type_.dtype == BOOL:
        raise IrTypeError(f"cannot compute on {show_type(type_)}; convert it with pl.cast")


def static_agree(left: Sequence[int | None], right: Sequence[int | None]) -> bool:
    """Whether extents are equal wherever both are known."""
    return all(a is None or b is None or a == b for a, b in zip(left, right, strict=True))


def binary(*, floats_only: bool = False, ints_only: bool = False) -> Infer:
    """Elementwise over two operands of one shape."""

    def infer(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
        left, right = _shaped(operands, 0), _shaped(operands, 1)
        if left.shape != right.shape:
            raise IrTypeError(
                f"shapes differ: {show_shape(left.shape)} and {show_shape(right.shape)}"
            )
        same_dtype(left, right)
        _check_elements(left, floats_only, ints_only)
        if not static_agree(valid_of(left), valid_of(right)):
            raise IrTypeError(
                f"valid regions differ: {show_shape(valid_of(left))} and "
                f"{show_shape(valid_of(right))}; load both with the same valid_shape"
            )
        return _like(left, left.shape, valid_of(left))

    return infer


def with_scalar(*, floats_only: bool = False, ints_only: bool = False) -> Infer:
    """Elementwise over a tile or tensor and one scalar of its element type."""

    def infer(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
        left, scalar = _shaped(operands, 0), type_of(operands[1])
        if not isinstance(scalar, ScalarType):
            raise IrTypeError(f"argument 2 is a {show_type(scalar)}, not a scalar")
        same_dtype(left, scalar)
        _check_elements(left, floats_only, ints_only)
        return _like(left, left.shape, valid_of(left))

    return infer


def unary(*, floats_only: bool = False, ints_only: bool = False, signed: bool = False) -> Infer:
    """Elementwise over one operand."""

    def infer(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
        operand = _shaped(operands, 0)
        _check_elements(operand, floats_only, ints_only)
        if signed and operand.dtype == UINT8:
            raise IrTypeError(
                f"needs elements that have a sign, but got a {show_type(operand)}; "
                "convert it with pl.cast(x, pl.INT32)"
            )
        return _like(operand, operand.shape, valid_of(operand))

    return infer


def row_reduce(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``[M, N]`` to ``[M, 1]``; tiles may bring a scratch tile."""
    operand = _shaped(operands, 0)
    rows, _cols = rank2(operand, 0)
    _not_bool(operand)
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
    _not_bool(operand)
    return _like(operand, (1, cols), (1, valid_of(operand)[1]))


def transpose(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``[M, N]`` to ``[N, M]``; tiles may bring a scratch tile."""
    operand = _shaped(operands, 0)
    rows, cols = rank2(operand, 0)
    _not_bool(operand)
    if len(operands) == 2:
        _check_scratch(operand, _tile(operands, 1))
    valid_rows, valid_cols = valid_of(operand)
    return _like(operand, (cols, rows), (valid_cols, valid_rows))


def fillpad(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The same shape, wholly valid."""
    operand, pad = _shaped(operands, 0), attrs["pad"]
    _not_bool(operand)
    if pad not in PADS:
        raise IrTypeError(f"pad_value must be one of {', '.join(PADS)}, not {pad}")
    if isinstance(operand, TensorType):
        return operand
    return replace(operand, valid=operand.shape)


def with_slopes(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """Elementwise over floats and as many slopes; tiles may bring a scratch tile."""
    result = binary(floats_only=True)(operands[:2], attrs)
    if len(operands) == 3:
        _check_scratch(_shaped(operands, 0), _tile(operands, 2))
    return result


def row_expand(*, floats_only: bool = False) -> Infer:
    """``[M, N]`` with ``[M, 1]``, one value a row."""

    def infer(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
        full, vector = _shaped(operands, 0), _shaped(operands, 1)
        rows, cols = rank2(full, 0)
        rank2(vector, 1)
        if vector.shape != (rows, 1):
            raise IrTypeError(
                f"argument 2 must be {show_shape((rows, 1))} beside {show_shape((rows, cols))}, "
                f"but is {show_shape(vector.shape)}"
            )
        _check_expand(full, vector, floats_only, axis=0)
        return _like(full, full.shape, valid_of(full))

    return infer


def col_expand(*, floats_only: bool = False, needs_target_values: bool = True) -> Infer:
    """``[M, N]`` with ``[1, N]``, one value a column.

    Without ``needs_target_values`` the first operand gives its shape only.
    """

    def infer(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
        full, vector = _shaped(operands, 0), _shaped(operands, 1)
        rows, cols = rank2(full, 0)
        rank2(vector, 1)
        if vector.shape != (1, cols):
            raise IrTypeError(
                f"argument 2 must be {show_shape((1, cols))} beside {show_shape((rows, cols))}, "
                f"but is {show_shape(vector.shape)}"
            )
        _check_expand(full, vector, floats_only, axis=1)
        return _like(full, full.shape, valid_of(full))

    return infer


def _check_expand(full: Shaped, vector: Shaped, floats_only: bool, axis: int) -> None:
    same_dtype(full, vector)
    _needs_float(full) if floats_only else _not_bool(full)
    if not static_agree((valid_of(full)[axis],), (valid_of(vector)[axis],)):
        raise IrTypeError(
            f"valid regions differ: {show_shape(valid_of(full))} and {show_shape(valid_of(vector))}"
        )


def cast(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The same elements in ``attrs['dtype']``."""
    operand, dtype, mode = _shaped(operands, 0), attrs["dtype"], attrs["mode"]
    assert isinstance(dtype, DataType)
    if mode not in CAST_MODES:
        raise IrTypeError(f"unknown mode {mode!r}; use one of {', '.join(CAST_MODES)}")
    if BOOL in (dtype, operand.dtype) or dtype == INDEX:
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
