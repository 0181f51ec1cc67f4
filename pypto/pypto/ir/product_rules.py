"""Result types of matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import (
    ArrayType,
    AttrValue,
    MemorySpace,
    Operand,
    ScalarType,
    TensorType,
    TileType,
    Type,
)
from pypto.ir.typing_rules import (
    Shaped,
    rank2,
    same_dtype,
    show_shape,
    show_type,
    static_agree,
    type_of,
    valid_of,
)

_MATMUL_DTYPES = (FP32, FP16, BF16, INT8)


def _product(operands: Sequence[Operand], first: int) -> tuple[Shaped, Shaped, DataType]:
    """The two factors and the accumulator's element type."""
    left, right = type_of(operands[first]), type_of(operands[first + 1])
    if isinstance(left, ScalarType | ArrayType) or isinstance(right, ScalarType | ArrayType):
        raise IrTypeError(f"cannot multiply a {show_type(left)} by a {show_type(right)}")
    for index, side, own in (
        (first, left, MemorySpace.Left),
        (first + 1, right, MemorySpace.Right),
    ):
        if isinstance(side, TileType) and side.space not in (MemorySpace.Mat, own):
            raise IrTypeError(
                f"argument {index + 1} is a {show_type(side)}; it must be in Mat or {own.name}: "
                "load it with target_memory=pl.Mem.Mat"
            )
    (rows, inner), (inner2, cols) = rank2(left, first), rank2(right, first + 1)
    if inner != inner2:
        raise IrTypeError(
            f"inner dimensions differ: {show_shape((rows, inner))} x {show_shape((inner2, cols))} "
            f"({show_shape((inner,))[1:-1]} columns on the left, "
            f"{show_shape((inner2,))[1:-1]} rows on the right)"
        )
    same_dtype(left, right)
    if left.dtype not in _MATMUL_DTYPES:
        names = ", ".join(str(d) for d in _MATMUL_DTYPES)
        raise IrTypeError(f"cannot multiply {left.dtype} matrices; use one of {names}")
    if not static_agree((valid_of(left)[1],), (valid_of(right)[0],)):
        raise IrTypeError(
            f"valid inner dimensions differ: {show_shape(valid_of(left))} x "
            f"{show_shape(valid_of(right))}"
        )
    return left, right, FP32 if left.dtype.is_float else INT32


def matmul(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``[M, K] x [K, N]``, accumulated in fp32 or int32."""
    left, right, dtype = _product(operands, 0)
    if isinstance(left, TensorType):
        return TensorType((left.shape[0], right.shape[1]), dtype)
    assert isinstance(right, TileType)
    valid = (left.valid[0], right.valid[1])
    return TileType((left.shape[0], right.shape[1]), dtype, MemorySpace.Acc, valid)


def matmul_acc(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``acc + l @ r``."""
    acc = type_of(operands[0])
    left, right, dtype = _product(operands, 1)
    wanted: Type = matmul(operands[1:], attrs)
    if not isinstance(acc, TileType | TensorType) or type(acc) is not type(left):
        raise IrTypeError(f"argument 1 must be a {show_type(wanted)}, but is a {show_type(acc)}")
    if acc.shape != (left.shape[0], right.shape[1]) or acc.dtype != dtype:
        raise IrTypeError(f"argument 1 must be a {show_type(wanted)}, but is a {show_type(acc)}")
    if isinstance(acc, TileType) and acc.space is not MemorySpace.Acc:
        raise IrTypeError(
            f"argument 1 must be in Acc, but is a {show_type(acc)}: start from pl.matmul or from "
            "pl.create_tile(..., target_memory=pl.Mem.Acc)"
        )
    return acc
