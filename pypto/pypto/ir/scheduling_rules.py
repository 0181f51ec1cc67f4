"""Result types of operations that schedule: blocks of a task, task ids, and arrays of scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto.ir.dtypes import INDEX, TASK_ID, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import ArrayType, AttrValue, Const, Operand, ScalarType, Type
from pypto.ir.typing_rules import is_whole, show_type, type_of

MAX_ARRAY = 4096  # scalars; an array lives on the orchestrator's stack


def array_create(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """An array of ``size`` scalars."""
    size, dtype = attrs["size"], attrs["dtype"]
    if not is_whole(size) or not 1 <= size <= MAX_ARRAY:
        raise IrTypeError(f"an array holds 1 to {MAX_ARRAY} scalars, not {size!r}")
    if not isinstance(dtype, DataType):
        raise IrTypeError(f"dtype must be an element type such as pl.TASK_ID, not {dtype!r}")
    return ArrayType(size, dtype)


def _element(operands: Sequence[Operand]) -> ArrayType:
    array, index = type_of(operands[0]), operands[1]
    assert isinstance(array, ArrayType)
    at = type_of(index)
    if at != ScalarType(INDEX):
        raise IrTypeError(f"an index is a whole number, not a {show_type(at)}")
    if isinstance(index, Const) and not 0 <= index.value < array.size:
        raise IrTypeError(f"index {index.value} is outside the {show_type(array)}")
    return array


def array_read(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The element at the index."""
    return ScalarType(_element(operands).dtype)


def array_write(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The array, after one element took the last operand's value."""
    array, value = _element(operands), type_of(operands[2])
    if value != ScalarType(array.dtype):
        raise IrTypeError(f"cannot write a {show_type(value)} into an {show_type(array)}")
    return array


def task_none(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The id of no task."""
    return ScalarType(TASK_ID)


def block(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """An index or a count of blocks."""
    return ScalarType(INDEX)
