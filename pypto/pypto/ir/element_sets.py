"""Which element types an operation takes, and what to do about the others."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.dtypes import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DataType,
)


@dataclass(frozen=True, slots=True)
class Elements:
    """A set of element types. ``words`` is what a table calls it.

    ``demand`` opens the message about any other type and ``remedy`` closes it.
    """

    words: str
    dtypes: tuple[DataType, ...]
    demand: str
    remedy: str

    def __contains__(self, dtype: object) -> bool:
        return dtype in self.dtypes


_FLOATS = (FP32, FP16, BF16)
_SIGNED = (INT8, INT16, INT32, INT64)
_UNSIGNED = (UINT8, UINT16, UINT32, UINT64)
_TO_INT = "convert it with pl.cast(x, pl.INT32)"

FLOATS = Elements(
    "floats",
    _FLOATS,
    "needs floating point elements, but got",
    "convert it with pl.cast(x, pl.FP32)",
)
INTS = Elements("integers", (*_SIGNED, *_UNSIGNED), "needs integer elements, but got", _TO_INT)
SIGNED = Elements(
    "floats, signed integers",
    (*_FLOATS, *_SIGNED),
    "needs elements that have a sign, but got",
    _TO_INT,
)
NUMBERS = Elements(
    "numbers", (*_FLOATS, *_SIGNED, *_UNSIGNED), "cannot compute on", "convert it with pl.cast"
)
BITS = Elements(
    "integers, bool", (*_SIGNED, *_UNSIGNED, BOOL), "needs integer elements, but got", _TO_INT
)
STORED = Elements(
    "all", (*_FLOATS, *_SIGNED, *_UNSIGNED, BOOL), "cannot hold", "use another element type"
)
# Factors of a matrix product; their sums are fp32 and int32.
FACTORS = Elements(
    "floats, int8, uint8, int16, int32",
    (*_FLOATS, INT8, UINT8, INT16, INT32),
    "cannot multiply",
    "convert it with pl.cast(x, pl.FP32)",
)
