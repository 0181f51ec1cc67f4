"""A tensor in the memory of a chip."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pypto.ir.dtypes import DataType


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTensor:
    """A contiguous tensor that a worker allocated and that lives until it is freed or closed.

    ``data_ptr`` is a device address: the worker's `copy_to` and `copy_from` take it, the host may
    not read through it.
    """

    data_ptr: int
    shape: tuple[int, ...]
    dtype: DataType

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return math.prod(self.shape) * self.dtype.get_byte()
