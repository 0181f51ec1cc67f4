"""Scalar arguments: which Python values a parameter takes, and the 64 bits it is passed as."""

from __future__ import annotations

import ctypes
import numbers
import operator
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pypto.ir.dtypes import INT_RANGES, DataType

_MASK = (1 << 64) - 1

_CTYPES: Mapping[str, type] = MappingProxyType(
    {
        "fp32": ctypes.c_float,
        "int8": ctypes.c_int8,
        "int16": ctypes.c_int16,
        "int32": ctypes.c_int32,
        "int64": ctypes.c_int64,
        "index": ctypes.c_int64,
        "uint8": ctypes.c_uint8,
        "uint16": ctypes.c_uint16,
        "uint32": ctypes.c_uint32,
        "uint64": ctypes.c_uint64,
        "bool": ctypes.c_bool,
    }
)
_CTYPES_BASE = ctypes.c_int.__mro__[1]


def encode_scalar(dtype: DataType, value: object, what: str) -> int:
    """The bits of ``value`` as a scalar of ``dtype``, in the low bytes of 64.

    ``what`` names the argument in errors: TypeError for a value of another kind (a ctypes object
    must have exactly the type of ``dtype``), ValueError for one out of range.
    """
    if isinstance(value, _CTYPES_BASE):
        expected = _CTYPES.get(dtype.name)
        if type(value) is not expected:
            wanted = "a Python number" if expected is None else f"ctypes.{expected.__name__}"
            raise TypeError(f"{what} must be {wanted}, got ctypes.{type(value).__name__}")
        value = value.value  # type: ignore[attr-defined]
    return _ENCODERS[dtype.name](dtype, value, what)


def _encode_int(dtype: DataType, value: object, what: str) -> int:
    # Tensors and arrays of one element can be an index, but are no numbers.
    if not isinstance(value, int | numbers.Integral):
        raise TypeError(f"{what} must be an integer, got {_shown(value)}")
    number = operator.index(value)
    low, high = INT_RANGES[dtype.name]
    if not low <= number <= high:
        raise ValueError(f"{what} must be from {low} to {high}, got {_shown(value)}")
    return number & _MASK


def _encode_bool(dtype: DataType, value: object, what: str) -> int:
    # numpy's bool is no number; it is recognised by the one thing it does like Python's.
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return int(bool(value))
    raise TypeError(f"{what} must be a bool, got {_shown(value)}")


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{what} must be a number, got {_shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{what} is out of range: {_shown(value)}") from None


def _pack(layout: str, value: float, dtype: DataType, what: str) -> int:
    try:
        packed = struct.pack(layout, value)
    except OverflowError:
        raise ValueError(f"{what} is out of the range of {dtype}: {value!r}") from None
    return int.from_bytes(packed, "little")


def _encode_fp32(dtype: DataType, value: object, what: str) -> int:
    return _pack("<f", _number(value, what), dtype, what)


def _encode_fp16(dtype: DataType, value: object, what: str) -> int:
    return _pack("<e", _number(value, what), dtype, what)


def _encode_bf16(dtype: DataType, value: object, what: str) -> int:
    number = _number(value, what)
    bits = _pack("<f", number, dtype, what)
    if number != number:
        return (bits >> 16) | 0x40
    # Ties to even on the 16 bits that are cut off.
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    if rounded & 0x7FFF == 0x7F80 and bits & 0x7FFFFFFF != 0x7F800000:
        raise ValueError(f"{what} is out of the range of {dtype}: {value!r}")
    return rounded


_ENCODERS: Mapping[str, Callable[[DataType, object, str], int]] = MappingProxyType(
    {
        "fp32": _encode_fp32,
        "fp16": _encode_fp16,
        "bfloat16": _encode_bf16,
        "bool": _encode_bool,
        **dict.fromkeys(INT_RANGES, _encode_int),
    }
)


def _shown(value: object) -> str:
    # Python refuses to write out a number of thousands of digits.
    if isinstance(value, int) and value.bit_length() > 128:
        return f"int of {value.bit_length()} bits"
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 40 else shown[:37] + '...'}"
