"""Result types of matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto.ir.dtypes import BOOL, FP32, INT32, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import (
    ArrayType,
    AttrValue,
    Dim,
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


def _matrix(factor: Shaped, index: int) -> tuple[Dim, Dim]:
    """The last two extents; a tensor may have more in front, a batch of matrices."""
    if len(factor.shape) < 2:
        rank2(factor, index)
    return factor.shape[-2], factor.shape[-1]


def batch_of(left: TensorType, right: TensorType) -> tuple[Dim, ...]:
    """The extents in front of the matrices of a product, which broadcast as numpy's do."""
    rank = max(len(left.shape), len(right.shape))
    a, b = (((1,) * (rank - len(f.shape)) + f.shape)[:-2] for f in (left, right))
    if any(x not in (1, y) and y != 1 for x, y in zip(a, b, strict=True)):
        raise IrTypeError(
            f"the extents in front of the matrices do not fit: {show_shape(left.shape)} x "
            f"{show_shape(right.shape)}"
        )
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))


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
    (rows, inner), (inner2, cols) = _matrix(left, first), _matrix(right, first + 1)
    if inner != inner2:
        raise IrTypeError(
            f"inner dimensions differ: {show_shape((rows, inner))} x {show_shape((inner2, cols))} "
            f"({show_shape((inner,))[1:-1]} columns on the left, "
            f"{show_shape((inner2,))[1:-1]} rows on the right)"
        )
    same_dtype(left, right)
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
        assert isinstance(right, TensorType)
        return TensorType((*batch_of(left, right), left.shape[-2], right.shape[-1]), dtype)
    assert isinstance(right, TileType)
    valid = (left.valid[0], right.valid[1])
    return TileType((left.shape[0], right.shape[1]), dtype, MemorySpace.Acc, valid)


def matmul_acc(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``acc + l @ r``."""
    acc = type_of(operands[0])
    left, _right, dtype = _product(operands, 1)
    wanted = matmul(operands[1:], attrs)
    assert isinstance(wanted, TileType | TensorType)
    if (
        not isinstance(acc, TileType | TensorType)
        or type(acc) is not type(left)
        or (acc.shape, acc.dtype) != (wanted.shape, dtype)
    ):
        raise IrTypeError(f"argument 1 must be a {show_type(wanted)}, but is a {show_type(acc)}")
    if isinstance(acc, TileType) and acc.space is not MemorySpace.Acc:
        raise IrTypeError(
            f"argument 1 must be in Acc, but is a {show_type(acc)}: start from pl.matmul or from "
            "pl.create_tile(..., target_memory=pl.Mem.Acc)"
        )
    return acc


def matmul_init(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """``l @ r`` if the second operand holds, else ``acc + l @ r``."""
    condition = type_of(operands[1])
    if condition.dtype != BOOL:
        raise IrTypeError(f"init_cond must be a truth value, but is a {show_type(condition)}")
    return matmul_acc((operands[0], *operands[2:]), attrs)
