"""The typed encoding of a captured value: equal bytes exactly where a kernel sees no difference.

``True`` is not ``1``, ``0.0`` is not ``-0.0``, a list is not a tuple. A value without an
encoding has no identity, and whoever uses it gets no persistent artifact.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import struct
from collections.abc import Callable

Encoder = Callable[[object], "bytes | None"]
"""Encodes the values a caller knows more about; None for any other."""

_MAX_DEPTH = 32
_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
_NAN = float("nan")


class Unidentifiable(Exception):
    """A value that has no identity across processes; the text says which."""


def is_immutable(value: object) -> bool:
    """Whether `value` cannot change in place: an atom, an enum member, or a tuple
    or frozen dataclass of those."""
    kind = type(value)
    if kind in _ATOMS or isinstance(value, enum.Enum):
        return True
    if isinstance(value, tuple) and kind is tuple:
        return all(map(is_immutable, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and _frozen(kind):
        return all(is_immutable(getattr(value, field.name)) for field in dataclasses.fields(value))
    return False


def encode(value: object, special: Encoder, depth: int = 0) -> bytes:
    """The encoding of `value`; Unidentifiable if it, or something in it, has none."""
    if depth > _MAX_DEPTH:
        raise Unidentifiable("a value is nested too deeply")
    own = special(value)
    if own is not None:
        return _framed(b"o", own)
    kind = type(value)
    if value is None:
        return b"n"
    if value is Ellipsis:
        return b"."
    if kind is bool:
        return b"b1" if value else b"b0"
    if isinstance(value, enum.Enum):
        inside = encode(value.value, special, depth + 1)
        return _framed(b"e", _name(kind) + b"." + _utf8(value.name) + b"\0" + inside)
    if isinstance(value, int) and kind is int:
        return _framed(b"i", b"%x" % value)  # hexadecimal: decimal digits are limited
    if isinstance(value, float) and kind is float:
        return b"f" + struct.pack(">d", _NAN if math.isnan(value) else value)
    if isinstance(value, complex) and kind is complex:
        return b"c" + struct.pack(">dd", value.real, value.imag)
    if isinstance(value, str) and kind is str:
        return _framed(b"s", _utf8(value))
    if isinstance(value, bytes) and kind is bytes:
        return _framed(b"y", value)
    if isinstance(value, tuple | list) and kind in (tuple, list):
        items = b"".join(encode(item, special, depth + 1) for item in value)
        return _framed(b"t" if kind is tuple else b"l", items)
    if isinstance(value, dict) and kind is dict:
        items = b"".join(
            encode(key, special, depth + 1) + encode(item, special, depth + 1)
            for key, item in value.items()
        )
        return _framed(b"d", items)
    if isinstance(value, set | frozenset) and kind in (set, frozenset):
        encoded = sorted(encode(item, special, depth + 1) for item in value)
        return _framed(b"S" if kind is set else b"F", b"".join(encoded))
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and _frozen(kind):
        items = b"".join(
            encode(getattr(value, field.name), special, depth + 1)
            for field in dataclasses.fields(value)
        )
        return _framed(b"D", _name(kind) + b"\0" + items)
    if kind.__module__ == "torch" and kind.__name__ == "dtype":
        return _framed(b"T", _utf8(str(value)))
    raise Unidentifiable(f"a {kind.__module__}.{kind.__qualname__} has no identity")


def _frozen(kind: type) -> bool:
    return bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _name(kind: type) -> bytes:
    return _utf8(f"{kind.__module__}:{kind.__qualname__}")


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _framed(tag: bytes, content: bytes) -> bytes:
    return tag + b"%d:" % len(content) + content
