"""Operations that schedule: blocks of a task, task ids, and arrays of scalars.

``array.*`` and ``task.*`` stand in orchestration code alone, the others on a core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pypto.ir.dtypes import INDEX, TASK_ID, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import ArrayType, AttrValue, Const, Operand, ScalarType, Type
from pypto.ir.op_spec import OperandKind, OpSpec
from pypto.ir.typing_rules import show_type, type_of

MAX_ARRAY = 4096  # scalars; an array lives on the orchestrator's stack


def _array_create(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    size, dtype = attrs["size"], attrs["dtype"]
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_ARRAY:
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


def _array_read(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    return ScalarType(_element(operands).dtype)


def _array_write(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    array, value = _element(operands), type_of(operands[2])
    if value != ScalarType(array.dtype):
        raise IrTypeError(f"cannot write a {show_type(value)} into an {show_type(array)}")
    return array


def _task_none(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    return ScalarType(TASK_ID)


def _block(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    return ScalarType(INDEX)


def scheduling_rows() -> Iterator[OpSpec]:
    """The rows of these operations."""
    array, scalar = OperandKind.ARRAY, OperandKind.SCALAR
    yield OpSpec(
        "array.create",
        (),
        ("size", "dtype"),
        _array_create,
        "",
        "",
        "An array of scalars: numbers are 0, truth values false, task ids none.",
    )
    yield OpSpec("array.read", (array, scalar), (), _array_read, "", "", "One element of an array.")
    yield OpSpec(
        "array.write",
        (array, scalar, scalar),
        (),
        _array_write,
        "",
        "",
        "An element of the array takes the last operand's value; there is no result.",
    )
    yield OpSpec("task.none", (), (), _task_none, "", "", "The id of no task.")
    for name, doc in (
        ("get_block_idx", "Which block of its task this is, from 0."),
        ("get_block_num", "How many blocks its task has."),
    ):
        yield OpSpec(f"tile.{name}", (), (), _block, "", "", doc)
