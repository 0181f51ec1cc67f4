"""What an ELF file tells the dynamic loader, and whether it was built for a sanitizer.

Only what a loader goes by is read: the program headers and the dynamic segment. Section headers
may be stripped, or may say something else.
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_MAX_STRINGS = 64 << 20

_TEXT_TAGS = {
    "DT_SONAME": "soname",
    "DT_RPATH": "rpath",
    "DT_RUNPATH": "runpath",
}
# They add libraries or code by rules of their own.
_UNMODELLED_TAGS = ("DT_AUXILIARY", "DT_FILTER", "DT_AUDIT", "DT_DEPAUDIT")

# Names that only an instrumented build, or the runtime it needs, defines or asks for.
_SANITIZER = re.compile(
    rb"\0(__(?:asan_init|asan_report_[a-z0-9_]+|tsan_init|tsan_func_entry|msan_init|hwasan_init"
    rb"|lsan_init|ubsan_handle_[a-z0-9_]+|dfsan_[a-z0-9_]+))\0"
)


class ElfUnreadable(ValueError):
    """The file is no ELF file that a loader would take; the text names it and says why."""


@dataclass(frozen=True, slots=True)
class ElfForm:
    """What all files of one process have in common. `machine` is named as in ``elf.h``."""

    bits: int
    little_endian: bool
    machine: str


@dataclass(frozen=True, slots=True)
class DynamicFacts:
    """An ELF file as the loader sees it.

    `rpath` is None where the file has a RUNPATH too, which the loader then goes by alone.
    `unmodelled` names the tags that make the loader do what is not modelled here. `sanitizer` is a
    name of a sanitizer's runtime that the file mentions.
    """

    form: ElfForm
    interpreter: str | None
    needed: tuple[str, ...]
    soname: str | None
    rpath: str | None
    runpath: str | None
    unmodelled: tuple[str, ...]
    sanitizer: str | None


def read_dynamic(path: str) -> DynamicFacts:
    """What the ELF file at `path` tells the loader.

    Raises OSError, ElfUnreadable, and ImportError without pyelftools.
    """
    from elftools.common.exceptions import ELFError
    from elftools.construct.core import ConstructError
    from elftools.elf.elffile import ELFFile

    # O_NONBLOCK: a FIFO in the place of a library must not wait for a writer.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as stream:
        try:
            return _read(ELFFile(stream), stream)
        except (
            # What a damaged file makes the parser raise, apart from its own errors.
            *(ELFError, ConstructError, struct.error),
            *(ValueError, KeyError, IndexError, AttributeError, TypeError, AssertionError),
            *(OverflowError, MemoryError, StopIteration, OSError),
        ) as error:
            raise ElfUnreadable(f"{path} is no ELF file that can be loaded: {error}") from error


def _read(elf: ELFFile, stream: IO[bytes]) -> DynamicFacts:
    from elftools.elf.dynamic import DynamicSegment

    interpreter = None
    tags: list[tuple[Any, int]] = []
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_INTERP":
            interpreter = os.fsdecode(_at(stream, segment["p_offset"], segment["p_filesz"]))
            interpreter = interpreter.split("\0", 1)[0]
        elif isinstance(segment, DynamicSegment):
            tags = [(tag.entry.d_tag, tag.entry.d_val) for tag in segment.iter_tags()]
    strings = _strings(elf, stream, dict(tags))
    texts = {name: _text(strings, value) for tag, value in tags if (name := _TEXT_TAGS.get(tag))}
    found = _SANITIZER.search(b"\0" + strings)
    return DynamicFacts(
        form=ElfForm(elf.elfclass, elf.little_endian, str(elf["e_machine"])),
        interpreter=interpreter,
        needed=tuple(_text(strings, value) for tag, value in tags if tag == "DT_NEEDED"),
        soname=texts.get("soname"),
        rpath=None if "runpath" in texts else texts.get("rpath"),
        runpath=texts.get("runpath"),
        unmodelled=tuple(sorted({tag for tag, _ in tags if tag in _UNMODELLED_TAGS})),
        sanitizer=None if found is None else found.group(1).decode("ascii"),
    )


def _strings(elf: ELFFile, stream: IO[bytes], tags: dict[Any, int]) -> bytes:
    """The string table of the dynamic segment; empty for a file without one."""
    address, size = tags.get("DT_STRTAB"), tags.get("DT_STRSZ", 0)
    if address is None:
        return b""
    if size > _MAX_STRINGS:
        raise ValueError(f"a string table of {size} bytes")
    return _at(stream, next(iter(elf.address_offsets(address))), size)


def _at(stream: IO[bytes], offset: int, size: int) -> bytes:
    stream.seek(offset)
    data = stream.read(size)
    if len(data) != size:
        raise ValueError("headers that point outside the file")
    return data


def _text(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    if not 0 <= offset < len(strings) or end < 0:
        raise ValueError("a name that lies outside the string table")
    return os.fsdecode(strings[offset:end])
