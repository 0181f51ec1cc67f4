"""The five messages of REAPI v2 that entries are made of, as bytes and back.

A message is encoded in one way only (fields ascending, defaults left out, shortest numbers), so
that its digest names it. Only what the store uses is in it:

    Digest       = { 1: hash, text; 2: size_bytes, integer }
    Command      = { 1: arguments, text, repeated }
    Action       = { 1: command_digest, Digest; 2: input_root_digest, Digest }
    OutputFile   = { 1: path, text; 2: digest, Digest; 4: is_executable, truth }
    ActionResult = { 2: output_files, OutputFile, repeated; 4: exit_code, integer of 32 bits }

Decoding takes what protocol buffers take: fields in any order, fields that are not known here (they
are skipped, groups included), a number or a text given again (the last one counts) and a message
given in parts. It refuses with MessageError what is cut off, a number of more than 64 bits, text
that is not UTF-8, a known field of another kind, and a digest that names no blob. What it makes is
no larger than a fixed multiple of what it is given, and that is bounded by whoever read it
(ENTRY_LIMIT).

Version history: these are the fields of REAPI 2.0; later versions of 2 have them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_store.digest import Digest
from pypto_store.remote.blob_store import BlobDigest

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
_GROUP_DEPTH = 100  # what other implementations allow
_FIELD_LIMIT = 2**29 - 1  # the largest field number
_TAG_LIMIT = 5  # bytes; other implementations refuse longer spellings
_INT32 = range(-(2**31), 2**31)


class MessageError(ValueError):
    """Bytes that are no such message."""


@dataclass(frozen=True, slots=True)
class Command:
    """What was asked for, as words."""

    arguments: tuple[str, ...]

    def encode(self) -> bytes:
        """The message's bytes; UnicodeEncodeError (a ValueError) for a lone surrogate."""
        return b"".join(_bytes_field(1, word.encode()) for word in self.arguments)

    @classmethod
    def decode(cls, data: bytes) -> Command:
        """The command that `data` is."""
        return cls(tuple(_text(value) for value in _Fields(data).every(1)))


@dataclass(frozen=True, slots=True)
class Action:
    """A command and what it is given: the digest of an action's encoding names an entry."""

    command: BlobDigest
    input_root: BlobDigest

    def encode(self) -> bytes:
        """The message's bytes."""
        return _bytes_field(1, encode_digest(self.command)) + _bytes_field(
            2, encode_digest(self.input_root)
        )

    @classmethod
    def decode(cls, data: bytes) -> Action:
        """The action that `data` is."""
        fields = _Fields(data)
        return cls(decode_digest(fields.message(1)), decode_digest(fields.message(2)))


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One file of a result. `path` is whatever the message says: nothing here makes it harmless."""

    path: str
    digest: BlobDigest
    executable: bool = False

    def encode(self) -> bytes:
        """The message's bytes; UnicodeEncodeError (a ValueError) for a lone surrogate."""
        return (
            (_bytes_field(1, self.path.encode()) if self.path else b"")
            + _bytes_field(2, encode_digest(self.digest))
            + _integer_field(4, int(self.executable))
        )

    @classmethod
    def decode(cls, data: bytes) -> OutputFile:
        """The file that `data` is."""
        fields = _Fields(data)
        return cls(_text(fields.last(1)), decode_digest(fields.message(2)), fields.integer(4) != 0)


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What came of an action. `exit_code` is 0 for success, within 32 bits with sign."""

    output_files: tuple[OutputFile, ...]
    exit_code: int = 0

    def __post_init__(self) -> None:
        if type(self.exit_code) is not int or self.exit_code not in _INT32:
            raise ValueError(f"an exit code has 32 bits, not {self.exit_code!r}")

    def encode(self) -> bytes:
        """The message's bytes; files in the order that they have here."""
        files = [_bytes_field(2, file.encode()) for file in self.output_files]
        return b"".join(files) + _integer_field(4, self.exit_code)

    @classmethod
    def decode(cls, data: bytes) -> ActionResult:
        """The result that `data` is."""
        fields = _Fields(data)
        files = tuple(OutputFile.decode(value) for value in fields.every(2))
        # Of a number that is too large, the 32 lower bits count.
        return cls(files, (fields.integer(4) + 2**31) % 2**32 - 2**31)


def encode_digest(digest: BlobDigest) -> bytes:
    """The bytes of a Digest message."""
    return _bytes_field(1, digest.sha256.hex.encode()) + _integer_field(2, digest.size)


def decode_digest(data: bytes) -> BlobDigest:
    """The blob that a Digest message names."""
    fields = _Fields(data)
    try:
        return BlobDigest(Digest(_text(fields.last(1))), fields.integer(2))
    except MessageError:
        raise
    except ValueError as error:
        raise MessageError(str(error)) from None


def _varint(value: int) -> bytes:
    """A number below 2**64, seven bits a byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes_field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _integer_field(number: int, value: int) -> bytes:
    """A field of a number; nothing for 0. Negative ones are 64 bits of two's complement."""
    return _varint(number << 3 | _VARINT) + _varint(value % 2**64) if value else b""


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MessageError(f"a text is not UTF-8 ({error.reason})") from None


class _Fields:
    """The fields of one message by number: integers and bytes, in the order of their bytes."""

    __slots__ = ("_values",)

    def __init__(self, data: bytes) -> None:
        self._values: dict[int, list[int | bytes]] = {}
        for number, value in _scan(data):
            self._values.setdefault(number, []).append(value)

    def every(self, number: int) -> Iterator[bytes]:
        """All values of a repeated text or message."""
        for value in self._values.get(number, ()):
            if not isinstance(value, bytes):
                raise MessageError(f"field {number} is a number")
            yield value

    def last(self, number: int) -> bytes:
        """The value of a text; empty without one."""
        value = b""
        for given in self.every(number):
            value = given
        return value

    def message(self, number: int) -> bytes:
        """The value of a message: parts of one are merged by being read one after another."""
        return b"".join(self.every(number))

    def integer(self, number: int) -> int:
        """The value of a number, as 64 bits with sign; 0 without one."""
        value = self._values.get(number, [0])[-1]
        if not isinstance(value, int):
            raise MessageError(f"field {number} is no number")
        return value - 2**64 if value >= 2**63 else value


def _scan(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each varint and length-delimited field outside groups."""
    place, end = 0, len(data)
    open_groups: list[int] = []
    while place < end:
        start = place
        tag, place = _read_varint(data, place)
        if place - start > _TAG_LIMIT:
            raise MessageError(f"the number of a field has {place - start} bytes")
        number, kind = tag >> 3, tag & 7
        if not 0 < number <= _FIELD_LIMIT:
            raise MessageError(f"a field has the number {number}")
        value: int | bytes | None = None
        if kind == _VARINT:
            value, place = _read_varint(data, place)
        elif kind == _BYTES:
            size, place = _read_varint(data, place)
            if size > end - place:
                raise MessageError(f"field {number} has {size} bytes, but {end - place} are left")
            value = data[place : place + size]
            place += size
        elif kind in (_FIXED64, _FIXED32):
            place += 8 if kind == _FIXED64 else 4
            if place > end:
                raise MessageError(f"field {number} is cut off")
        elif kind == _GROUP:
            open_groups.append(number)
            if len(open_groups) > _GROUP_DEPTH:
                raise MessageError(f"more than {_GROUP_DEPTH} groups are in one another")
        elif kind == _GROUP_END:
            if not open_groups or open_groups.pop() != number:
                raise MessageError(f"group {number} ends without having begun")
        else:
            raise MessageError(f"field {number} is of no known kind ({kind})")
        if value is not None and not open_groups:
            yield number, value
    if open_groups:
        raise MessageError(f"group {open_groups[-1]} does not end")


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    """The number at `place`, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise MessageError("a number is cut off")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 2**64:
                raise MessageError("a number has more than 64 bits")
            return value, place
    raise MessageError("a number has more than 64 bits")
