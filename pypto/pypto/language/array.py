"""``pl.array``: arrays of scalars in orchestration code, such as the ids of the tasks of a loop.

An array is a place: ``ids[i] = tid`` changes it for everybody who names it. ``ids[i]`` and
``ids[i] = v`` are the same as ``read`` and ``write``.
"""

from __future__ import annotations

from pypto.ir.dtypes import DataType
from pypto.language.functions import Value, kernel_only


@kernel_only
def create(size: int, dtype: DataType) -> Value:
    """An array of ``size`` scalars: numbers are 0, truth values false, task ids name no task."""


@kernel_only
def read(array: Value, index: Value) -> Value:
    """One element; an index that is out of range ends the run."""


@kernel_only
def write(array: Value, index: Value, value: Value) -> Value:
    """Changes one element; gives the array."""


__all__ = ["create", "read", "write"]
