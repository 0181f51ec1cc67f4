"""Result types of the operations on run-time scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto.ir.dtypes import BOOL, TASK_ID, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import AttrValue, Const, Operand, ScalarType, Type
from pypto.ir.typing_rules import Infer, show_type, type_of


def _scalar(operand: Operand, index: int) -> ScalarType:
    type_ = type_of(operand)
    if not isinstance(type_, ScalarType):
        raise IrTypeError(f"operand {index + 1} is a {show_type(type_)}, not a scalar")
    if type_.dtype == TASK_ID:
        raise IrTypeError(
            "does not work on task ids, which are no numbers; name them in deps, keep them in a "
            "pl.Array"
        )
    return type_


def _pair(operands: Sequence[Operand]) -> DataType:
    left, right = _scalar(operands[0], 0), _scalar(operands[1], 1)
    if left.dtype != right.dtype:
        raise IrTypeError(
            f"scalar types differ: {left.dtype} and {right.dtype}; convert one with pl.cast"
        )
    return left.dtype


def arithmetic(*, accepts: str = "number") -> Infer:
    """Two scalars of one type give that type; ``accepts`` is ``number``, ``int`` or ``float``."""

    def infer(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
        dtype = _pair(operands)
        if dtype == BOOL or (accepts == "int" and not dtype.is_int):
            raise IrTypeError(f"does not work on {dtype} scalars")
        if accepts == "float" and not dtype.is_float:
            raise IrTypeError(f"does not work on {dtype} scalars; use // for whole numbers")
        return ScalarType(dtype)

    return infer


def power(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """Two numbers of one type give that type; whole numbers have no negative powers."""
    dtype, exponent = _pair(operands), operands[1]
    if dtype == BOOL:
        raise IrTypeError(f"does not work on {dtype} scalars")
    if dtype.is_int and isinstance(exponent, Const) and exponent.value < 0:
        raise IrTypeError(
            f"a whole number to the power {exponent.value} is no whole number; convert the base "
            "with pl.cast(x, pl.FP32)"
        )
    return ScalarType(dtype)


def bitwise(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """Two integers, or two truth values, of one type give that type."""
    dtype = _pair(operands)
    if dtype.is_float:
        raise IrTypeError(f"does not work on {dtype} scalars")
    return ScalarType(dtype)


def compare(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """Two scalars of one type give a truth value."""
    _pair(operands)
    return ScalarType(BOOL)


def logic(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """Truth values give a truth value."""
    for index, operand in enumerate(operands):
        if _scalar(operand, index).dtype != BOOL:
            raise IrTypeError(
                f"needs truth values, but operand {index + 1} is a "
                f"{show_type(type_of(operand))}; compare it with something"
            )
    return ScalarType(BOOL)


def negate(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """One number gives its type."""
    type_ = _scalar(operands[0], 0)
    if type_.dtype == BOOL:
        raise IrTypeError("does not work on bool scalars")
    return type_


def convert(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The same number in ``attrs['dtype']``; True is 1.

    Floats go to integers towards zero and integers wrap, or, with a ``mode``, numbers are rounded
    as it says and saturate.
    """
    source, dtype = _scalar(operands[0], 0).dtype, attrs["dtype"]
    assert isinstance(dtype, DataType)
    if dtype == BOOL or TASK_ID in (source, dtype):
        raise IrTypeError(f"cannot convert {source} to {dtype}")
    return ScalarType(dtype)
