"""Typed, named, framed records: how several values become one digest.

Two different records never encode alike: every part is preceded by its kind and its length, so
neighbouring values cannot blur into each other and `1`, `1.0`, `True` and `"1"` stay four values.

Grammar of the encoding (integers in lengths and counts are 8 bytes, big-endian):

    record   = "PR" version name *field
    version  = %x01
    name     = length *OCTET                 ; UTF-8, never empty
    field    = name value                    ; names are unique within a record; order counts
    value    = "t" length *OCTET             ; text, UTF-8
             / "i" length *OCTET             ; integer, shortest two's complement, big-endian
             / "b" (%x00 / %x01)             ; boolean
             / "r" 8OCTET                    ; real, IEEE 754 binary64; every NaN is one NaN
             / "y" length *OCTET             ; bytes
             / "d" 32OCTET                   ; digest
             / "n"                           ; absent
             / "s" count *value              ; sequence

A record's digest is the SHA-256 of its encoding. A present optional value is encoded like the plain
one, so that making a field optional later changes no digest.

Version history: 1, the first.
"""

from __future__ import annotations

import hashlib
import math
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from pypto_store.digest import Digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Scalar: TypeAlias = "str | int | bool | float | bytes | Digest | None"
Value: TypeAlias = "Scalar | tuple[Value, ...] | list[Value]"

# RecordBuilder has a method of this name, as it has one for every kind of value.
_Bytes: TypeAlias = bytes

_MAGIC = b"PR\x01"
_NAN = struct.pack(">Q", 0x7FF8_0000_0000_0000)


_length = struct.Struct(">Q").pack


def _framed(data: bytes) -> bytes:
    return _length(len(data)) + data


@lru_cache(maxsize=512)
def _name(name: str) -> bytes:
    """A framed name; the same few are used in every request."""
    if not name:
        raise ValueError("records and their fields need names")
    return _framed(name.encode("utf-8"))


def _text(value: str) -> bytes:
    # A lone surrogate has no UTF-8 form: UnicodeEncodeError, which is a ValueError.
    return b"t" + _framed(value.encode("utf-8"))


def _integer(value: int) -> bytes:
    size = value.bit_length() // 8 + 1  # one more bit than the magnitude: the sign
    return b"i" + _framed(value.to_bytes(size, "big", signed=True))


def _boolean(value: bool) -> bytes:
    return b"b\x01" if value else b"b\x00"


def _real(value: float) -> bytes:
    # Signed zeros stay apart: they give different results. NaN payloads do not.
    return b"r" + (_NAN if math.isnan(value) else struct.pack(">d", value))


def _bytes(value: bytes) -> bytes:
    return b"y" + _framed(value)


def _digest(value: Digest) -> bytes:
    return b"d" + value.raw


def _sequence(values: Iterable[Value]) -> bytes:
    parts = [encode_value(item) for item in values]
    return b"s" + _length(len(parts)) + b"".join(parts)


# By exact type: a bool is no int here, and an enum that is also a str is refused.
_ENCODERS: Mapping[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"n",
    str: _text,
    int: _integer,
    bool: _boolean,
    float: _real,
    bytes: _bytes,
    Digest: _digest,
    tuple: _sequence,
    list: _sequence,
}


def encode_value(value: Value) -> bytes:
    """The encoding of one value by its exact type; TypeError for a type that has none."""
    encode = _ENCODERS.get(type(value))
    if encode is None:
        # Subclasses (enums, str subclasses) are refused: the caller says which value is meant.
        kind = type(value)
        raise TypeError(f"a record cannot hold a {kind.__module__}.{kind.__qualname__}")
    return encode(value)


class RecordBuilder:
    """Collects named fields in order and turns them into bytes or a digest.

    Every method checks its argument's exact type (TypeError) and returns the builder. A field name
    given twice is a ValueError.
    """

    __slots__ = ("_names", "_parts")

    def __init__(self, name: str) -> None:
        self._parts: list[_Bytes] = [_MAGIC, _name(name)]
        self._names: set[str] = set()

    def _field(self, name: str, encoded: _Bytes) -> RecordBuilder:
        if name in self._names:
            raise ValueError(f"record field {name!r} is given twice")
        self._names.add(name)
        self._parts += (_name(name), encoded)
        return self

    @staticmethod
    def _exactly(name: str, value: object, kind: type) -> None:
        if type(value) is not kind:
            raise TypeError(
                f"record field {name!r} wants {kind.__name__}, not {type(value).__name__}"
            )

    def text(self, name: str, value: str) -> RecordBuilder:
        """Add a string."""
        self._exactly(name, value, str)
        return self._field(name, _text(value))

    def integer(self, name: str, value: int) -> RecordBuilder:
        """Add an integer of any size (a bool is not one)."""
        self._exactly(name, value, int)
        return self._field(name, _integer(value))

    def boolean(self, name: str, value: bool) -> RecordBuilder:
        """Add a truth value."""
        self._exactly(name, value, bool)
        return self._field(name, _boolean(value))

    def real(self, name: str, value: float) -> RecordBuilder:
        """Add a float; 0.0 and -0.0 differ, all NaNs are one."""
        self._exactly(name, value, float)
        return self._field(name, _real(value))

    def bytes(self, name: str, value: _Bytes) -> RecordBuilder:
        """Add a byte string."""
        self._exactly(name, value, _Bytes)
        return self._field(name, _bytes(value))

    def digest(self, name: str, value: Digest) -> RecordBuilder:
        """Add a digest."""
        self._exactly(name, value, Digest)
        return self._field(name, _digest(value))

    def optional_text(self, name: str, value: str | None) -> RecordBuilder:
        """Add a string or its absence (which is not the empty string)."""
        return self._field(name, b"n") if value is None else self.text(name, value)

    def sequence(self, name: str, values: Iterable[Value]) -> RecordBuilder:
        """Add a sequence of values, each encoded by its own type; sequences may nest."""
        if isinstance(values, (str, _Bytes)):
            raise TypeError(f"record field {name!r} wants a sequence of values, not one {values!r}")
        return self._field(name, encode_value(tuple(values)))

    def encode(self) -> _Bytes:
        """The record's bytes."""
        return b"".join(self._parts)

    def finish(self) -> Digest:
        """The record's digest."""
        return Digest(hashlib.sha256(self.encode()).hexdigest())
