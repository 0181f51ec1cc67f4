"""Reading back what `values.encode` made, for people: the text says exactly what a digest covers.

Taking the values a second time instead could show others than those that were hashed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

_PLAIN = {b"n": "None", b".": "...", b"b0": "False", b"b1": "True"}
_BRACKETS = {b"t": ("(", ")"), b"l": ("[", "]"), b"S": ("{", "}"), b"F": ("{", "}")}
_OWN_KINDS = (b"function\0", b"module\0", b"name\0")
_LONG_INTEGER = 4096  # digits; Python refuses to write longer ones in decimal


class Undecodable(ValueError):
    """Bytes that no encoding has."""


class ValueReader:
    """Reads encodings one after the other from `data`.

    units: what `function` references count, in order.
    """

    def __init__(self, data: bytes, units: Sequence[str]) -> None:
        self._data = data
        self._units = units
        self._at = 0

    @property
    def done(self) -> bool:
        """Whether everything was read."""
        return self._at == len(self._data)

    def accept(self, expected: bytes) -> bool:
        """Read `expected` if it comes next."""
        if not self._data.startswith(expected, self._at):
            return False
        self._at += len(expected)
        return True

    def until(self, ending: bytes) -> bytes:
        """Read up to `ending`, and over it; Undecodable if it does not come."""
        end = self._data.find(ending, self._at)
        if end < 0:
            raise Undecodable(f"no {ending!r}")
        found = self._data[self._at : end]
        self._at = end + len(ending)
        return found

    def comes_next(self, *beginnings: bytes) -> bool:
        """Whether one of `beginnings` comes next; nothing is read."""
        return self._data.startswith(beginnings, self._at)

    def value(self) -> str:
        """The text of the value that comes next; Undecodable if none does."""
        try:
            return self._value()
        except (ValueError, IndexError, struct.error, RecursionError) as error:
            raise Undecodable(str(error)) from None

    def _value(self) -> str:
        for encoding, text in _PLAIN.items():
            if self.accept(encoding):
                return text
        tag = self._take(1)
        if tag == b"f":
            return repr(struct.unpack(">d", self._take(8))[0])
        if tag == b"c":
            return repr(complex(*struct.unpack(">dd", self._take(16))))
        content = self._take(int(self.until(b":")))
        if tag == b"i":
            value = int(content, 16)
            return str(value) if len(content) < _LONG_INTEGER else hex(value)
        if tag == b"s":
            return repr(_text(content))
        if tag == b"y":
            return repr(content)
        if tag == b"T":
            return _text(content)
        if tag == b"o":
            return own_text(content, self._units)
        inside = ValueReader(content, self._units)
        if tag == b"e":
            name = inside.until(b"\0")
            return f"{_text(name)} = {inside.value()}"
        if tag == b"D":
            name = inside.until(b"\0")
            return f"{_text(name)}({', '.join(inside._values())})"
        if tag == b"d":
            items = inside._values()
            pairs = zip(items[::2], items[1::2], strict=True)
            return f"{{{', '.join(f'{key}: {value}' for key, value in pairs)}}}"
        if tag in _BRACKETS:
            items = inside._values()
            lone = "," if tag == b"t" and len(items) == 1 else ""
            opening, closing = _BRACKETS[tag]
            text = f"{opening}{', '.join(items)}{lone}{closing}"
            return f"frozenset({text})" if tag == b"F" else text
        raise Undecodable(f"tag {tag!r}")

    def _values(self) -> list[str]:
        values = []
        while not self.done:
            values.append(self._value())
        return values

    def _take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) != count:
            raise Undecodable("it ends too early")
        self._at += count
        return found

    def _members(self) -> str:
        """The attributes of an enum member or a record that follow its own encoding."""
        members = []
        while not self.done:
            if self._take(1) != b"m":
                raise Undecodable("no member where one should be")
            name = _text(self._take(int(self.until(b":"))))
            members.append(f"{name} = {self._value()}")
        return f" with {', '.join(members)}" if members else ""


def own_text(content: bytes, units: Sequence[str]) -> str:
    """The text of what the encoder had its own name for: our names, functions, members."""
    for kind in _OWN_KINDS:
        if content.startswith(kind):
            rest = content[len(kind) :]
            if kind == b"function\0":
                return f"function {units[int(rest)]}"
            return f"module {_text(rest)}" if kind == b"module\0" else _text(rest)
    reader = ValueReader(content, units)
    return reader._value() + reader._members()


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
