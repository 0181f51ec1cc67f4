"""Where a rebuilt file differs from the one that is kept, in words that say why.

A library is compared section by section: other code, another compiler's name and another Build-ID
are three different causes, and all of them change the same digest.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pypto_store import Entry

_ELF_64_LITTLE = b"\x7fELF\x02\x01"
_HEADER_BYTES = 64
# Of the header: where the section table begins; its entry size, its length, its table of names.
_TABLE_AT = struct.Struct("<Q")
_TABLE = struct.Struct("<HHH")
# Of a section: name, type, then (behind flags and address) offset and size.
_SECTION = struct.Struct("<II16xQQ24x")
_NOBITS = 8
_MAX_SECTIONS = 4096

_BUILD_ID = ".note.gnu.build-id"
_COMMENT = ".comment"
_SHOWN = 60  # characters of a line, or of a compiler's name
_NAMED = 6  # sections


@dataclass(frozen=True, slots=True)
class FileDifference:
    """A file that is not the same twice. The SHA-256 is None on the side that lacks it."""

    path: str
    expected: str | None
    actual: str | None
    where: str


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a library: its name, its place in the file, and its bytes there."""

    name: str
    offset: int
    size: int
    content: bytes


def differences(
    kept: Entry, rebuilt: Mapping[str, bytes], *, of: Iterable[str] | None = None
) -> tuple[FileDifference, ...]:
    """Every file that a validated entry and a rebuilt payload do not have alike, by path.

    `rebuilt` has the bytes of each file; `of` limits the comparison to some paths. EntryChanged
    or OSError if the entry cannot be read any more.
    """
    expected = {record.path: record.sha256 for record in kept.manifest.files}
    paths = expected.keys() | rebuilt.keys() if of is None else set(of)
    return tuple(_compared(kept, expected, rebuilt, sorted(paths)))


def _compared(
    kept: Entry, expected: Mapping[str, str], rebuilt: Mapping[str, bytes], paths: Iterable[str]
) -> Iterator[FileDifference]:
    for path in paths:
        data = rebuilt.get(path)
        before = expected.get(path)
        after = None if data is None else hashlib.sha256(data).hexdigest()
        if before == after:
            continue
        if data is None:
            where = "is kept, and is not made any more"
        elif before is None:
            where = "is made, and is not kept"
        else:
            where = place_of_difference(kept.read(path), data)
        yield FileDifference(path, before, after, where)


def place_of_difference(kept: bytes, rebuilt: bytes) -> str:
    """Where two different files first differ: a section, a line, or a byte."""
    before, after = sections(kept), sections(rebuilt)
    if before is not None and after is not None:
        found = list(_sections_that_differ(before, after))
        if found:
            return _told_sections(found)
    else:
        line = _line(kept, rebuilt)
        if line is not None:
            return line
    return f"from byte {_first_byte(kept, rebuilt)} of {len(kept)} (rebuilt: {len(rebuilt)})"


def sections(data: bytes) -> tuple[Section, ...] | None:
    """The sections of a 64-bit little-endian ELF file in the order of their place.

    None for any other file, and for one whose table points outside of it.
    """
    if not data.startswith(_ELF_64_LITTLE) or len(data) < _HEADER_BYTES:
        return None
    (table_at,) = _TABLE_AT.unpack_from(data, 40)
    entry_size, count, names_index = _TABLE.unpack_from(data, 58)
    if entry_size != _SECTION.size or not names_index < count <= _MAX_SECTIONS:
        return None
    if table_at + entry_size * count > len(data):
        return None
    rows = list(_SECTION.iter_unpack(data[table_at : table_at + entry_size * count]))
    _, _, names_at, names_size = rows[names_index]
    names = data[names_at : names_at + names_size]
    found = []
    for name_at, kind, offset, size in rows[1:]:
        content = b"" if kind == _NOBITS else data[offset : offset + size]
        if kind != _NOBITS and len(content) != size:
            return None
        name = names[name_at:].partition(b"\0")[0].decode("utf-8", "backslashreplace")
        found.append(Section(name, offset, size, content))
    return tuple(sorted(found, key=lambda section: section.offset))


@dataclass(frozen=True, slots=True)
class _Pair:
    """The sections of one name; None where there is none."""

    name: str
    before: Section | None
    after: Section | None

    @property
    def detail(self) -> str:
        """What tells more than the name."""
        if self.before is None:
            return f"{self.name} is only in the rebuilt file"
        if self.after is None:
            return f"{self.name} is only in the kept file"
        if self.name == _COMMENT:
            return f"{self.name} ({_makers(self.before)} -> {_makers(self.after)})"
        if self.before.content == self.after.content:
            return f"{self.name} ({self.before.size} -> {self.after.size} bytes)"
        at = _first_byte(self.before.content, self.after.content)
        return f"{self.name} from byte {at} of {self.before.size}"


def _sections_that_differ(
    before: tuple[Section, ...], after: tuple[Section, ...]
) -> Iterator[_Pair]:
    """In the order of the kept file, but the Build-ID last: it is a digest of all others."""
    old, new = _numbered(before), _numbered(after)
    last = None
    for key in (*old, *(key for key in new if key not in old)):
        pair = _Pair(key[0], old.get(key), new.get(key))
        one, other = pair.before, pair.after
        if one is not None and other is not None:
            if (one.size, one.content) == (other.size, other.content):
                continue
            if pair.name == _BUILD_ID:
                last = pair
                continue
        yield pair
    if last is not None:
        yield last


def _numbered(found: tuple[Section, ...]) -> dict[tuple[str, int], Section]:
    seen: dict[str, int] = {}
    numbered = {}
    for section in found:
        number = seen[section.name] = seen.get(section.name, 0) + 1
        numbered[(section.name, number)] = section
    return numbered


def _told_sections(found: list[_Pair]) -> str:
    first, *others = found
    if not others:
        return f"only section {first.detail}"
    names = ", ".join(pair.name for pair in others[:_NAMED])
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    told = f"first section {first.detail}; then {names}{more}"
    comment = next((pair for pair in others if pair.name == _COMMENT), None)
    return told if comment is None else f"{told}; {comment.detail}"


def _makers(section: Section) -> str:
    texts = [part.decode("utf-8", "replace") for part in section.content.split(b"\0") if part]
    return _shortened(", ".join(texts) or "nothing")


def _line(kept: bytes, rebuilt: bytes) -> str | None:
    """The first line that differs, of two files that are text."""
    try:
        before, after = (data.decode("utf-8").splitlines() for data in (kept, rebuilt))
    except UnicodeDecodeError:
        return None
    for number, (one, other) in enumerate(zip(before, after, strict=False), 1):
        if one != other:
            return f"from line {number}: {_shortened(one)!r} -> {_shortened(other)!r}"
    if len(before) != len(after):
        return f"{len(before)} -> {len(after)} lines, alike up to the shorter one's end"
    return None


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _first_byte(one: bytes, other: bytes) -> int:
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return position
    return min(len(one), len(other))
