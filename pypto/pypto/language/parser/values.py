"""The values that names of a kernel stand for while it is parsed.

A value is one of

* a :class:`~pypto.ir.nodes.Var`: known when the kernel runs
* a :class:`~pypto.ir.nodes.Const`: a literal of a chosen element type (``pl.const``)
* a tuple, which may hold values of any kind
* any other Python object: known when the kernel is compiled
* :class:`Unbound`: the name has no value here, and why
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import TypeGuard

from pypto.ir.dtypes import BOOL, FP32, INDEX, INT_RANGES, TASK_ID, DataType
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import ArrayType, Const, Operand, ScalarType, TensorType, TileType, Var
from pypto.ir.typing_rules import show_type
from pypto.language.markers import DynVar
from pypto.language.source import FunctionSource

Value = object


@dataclass(frozen=True, slots=True)
class Unbound:
    """A name without a value. ``reason`` completes "'x' ...".

    ``departed`` says that the value stayed behind in a ``pl.at`` block.
    """

    reason: str
    departed: bool = False


def is_number(value: Value) -> TypeGuard[bool | int | float]:
    """Whether it is a number known when the kernel is compiled."""
    return isinstance(value, bool | int | float) and not isinstance(value, enum.Enum)


def is_tile(value: Value) -> TypeGuard[Var]:
    """Whether it is a tile."""
    return isinstance(value, Var) and isinstance(value.type, TileType)


def is_tensor(value: Value) -> TypeGuard[Var]:
    """Whether it is a tensor."""
    return isinstance(value, Var) and isinstance(value.type, TensorType)


def is_runtime_scalar(value: Value) -> TypeGuard[Var]:
    """Whether it is a scalar known only when the kernel runs."""
    return isinstance(value, Var) and isinstance(value.type, ScalarType)


def is_scalar(value: Value) -> TypeGuard[Operand | bool | int | float]:
    """Whether it is a scalar of any kind."""
    return is_number(value) or isinstance(value, Const) or is_runtime_scalar(value)


def is_task(value: Value) -> TypeGuard[Var]:
    """Whether it is the id of a task."""
    return is_runtime_scalar(value) and value.type == ScalarType(TASK_ID)


def is_array(value: Value) -> TypeGuard[Var]:
    """Whether it is an array of scalars."""
    return isinstance(value, Var) and isinstance(value.type, ArrayType)


def holds_runtime(value: Value) -> bool:
    """Whether a value, or an item of a tuple or list, is known only when the kernel runs."""
    if isinstance(value, tuple | list):
        return any(holds_runtime(item) for item in value)
    return isinstance(value, Var | Const | Unbound)


def natural_dtype(value: bool | int | float) -> DataType:
    """The element type of a plain literal."""
    if isinstance(value, bool):
        return BOOL
    return INDEX if isinstance(value, int) else FP32


def scalar_dtype(value: Operand | bool | int | float) -> DataType:
    """The element type of any scalar."""
    if isinstance(value, Var):
        assert isinstance(value.type, ScalarType)
        return value.type.dtype
    return value.dtype if isinstance(value, Const) else natural_dtype(value)


def literal(value: bool | int | float, dtype: DataType) -> Const:
    """A number as a literal of ``dtype``; :class:`IrTypeError` where it does not fit."""
    if dtype.is_float:
        try:
            return Const(float(value), dtype)
        except OverflowError:
            raise IrTypeError(f"{value} is too large for {dtype}") from None
    if dtype == TASK_ID:
        raise IrTypeError(f"{value} is a number, which names no task")
    if dtype == BOOL:
        if value not in (0, 1):
            raise IrTypeError(f"{value} is not a truth value")
        return Const(bool(value), dtype)
    if isinstance(value, float):
        if not value.is_integer():
            raise IrTypeError(f"{value} is not a whole number, as {dtype} needs")
        value = int(value)
    low, high = INT_RANGES[dtype.name]
    if not low <= value <= high:
        raise IrTypeError(f"{value} is outside the range of {dtype}, {low} to {high}")
    return Const(int(value), dtype)


def same_static(left: Value, right: Value) -> bool:
    """Whether two compile-time values are the same; ``1``, ``1.0`` and ``True`` are not."""
    if left is right:
        return True
    if type(left) is not type(right) or holds_runtime(left) or holds_runtime(right):
        return False
    if isinstance(left, tuple | list):
        assert isinstance(right, tuple | list)
        return len(left) == len(right) and all(
            same_static(a, b) for a, b in zip(left, right, strict=True)
        )
    return isinstance(left, bool | int | float | str | DataType | DynVar) and left == right


def show_value(value: Value) -> str:
    """A value as messages name it."""
    if isinstance(value, Var):
        return f"a {show_type(value.type)}"
    if isinstance(value, Const):
        return f"the {value.dtype} constant {value.value}"
    if isinstance(value, FunctionSource):
        return f"the kernel function {value.name!r}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__!r}"
    if isinstance(value, FunctionType):
        return f"the function {value.__name__!r}"
    if isinstance(value, type):
        return f"the class {value.__name__!r}"
    if value is None or isinstance(value, bool | int | float | str | DataType | enum.Enum | DynVar):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a Python {type(value).__name__}"
