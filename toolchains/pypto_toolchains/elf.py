"""Reading a GNU Build-ID from an ELF file without reading the file.

Only the header, the program headers and the note segments are touched, all of them within a
bound, so that a 35 MB compiler costs as much as a 10 KB one. Anything that is not a well-formed
ELF file is a typed error: an identity is never guessed. A file without a Build-ID is identified by
every byte it has.
"""

from __future__ import annotations

import hashlib
import os
import struct

_HEAD_BYTES = 4096
_MAX_PROGRAM_HEADERS = 256
_MAX_NOTE_BYTES = 64 * 1024  # of all note segments together
_MAX_BUILD_ID_BYTES = 64
_PT_NOTE = 4
_NT_GNU_BUILD_ID = 3
_CHUNK_BYTES = 1 << 20
# A pipe in a file's place is no reason to wait for who may write into it.
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
# Of a program header, by whether the file is 64-bit: type, offset, size in the file, alignment.
_SEGMENT = {True: "I4xQ16xQ8xQ", False: "II8xI8xI"}


class NotElf(ValueError):
    """The file does not start with the ELF magic: a script, or something else entirely."""


class MalformedElf(ValueError):
    """The file claims to be ELF but its headers point nowhere or exceed the bounds."""


def read_build_id(path: str) -> bytes | None:
    """The full Build-ID of the ELF file at `path`, or None if it carries none.

    Raises NotElf, MalformedElf, or the OSError of opening or reading the file.
    """
    fd = os.open(path, _OPEN_FLAGS)
    try:
        return _build_id_of(fd, path)
    finally:
        os.close(fd)


def native_identity(path: str) -> str:
    """What identifies a native file: ``build-id:<hex>``, or ``sha256:<hex>`` without one.

    Raises as `read_build_id` does.
    """
    fd = os.open(path, _OPEN_FLAGS)
    try:
        build_id = _build_id_of(fd, path)
        if build_id:
            return "build-id:" + build_id.hex()
        return "sha256:" + _content_digest(fd)
    finally:
        os.close(fd)


def _content_digest(fd: int) -> str:
    content = hashlib.sha256()
    offset = 0
    while chunk := os.pread(fd, _CHUNK_BYTES, offset):
        content.update(chunk)
        offset += len(chunk)
    return content.hexdigest()


def _build_id_of(fd: int, path: str) -> bytes | None:
    # The headers, and nearly always the notes too, lie in the first page: one read.
    head = os.pread(fd, _HEAD_BYTES, 0)
    if head[:4] != b"\x7fELF":
        raise NotElf(f"{path} is not an ELF file")
    if len(head) < 52:
        raise MalformedElf(f"{path} ends inside its ELF header")
    order = {1: "<", 2: ">"}.get(head[5])
    wide = {1: False, 2: True}.get(head[4])
    if order is None or wide is None:
        raise MalformedElf(f"{path} has an unknown ELF class or byte order")
    if wide and len(head) < 64:
        raise MalformedElf(f"{path} ends inside its ELF header")
    if wide:
        (table,) = struct.unpack_from(order + "Q", head, 32)
        entry_size, count = struct.unpack_from(order + "HH", head, 54)
        size_of_entry = 56
    else:
        (table,) = struct.unpack_from(order + "I", head, 28)
        entry_size, count = struct.unpack_from(order + "HH", head, 42)
        size_of_entry = 32
    if count == 0:
        return None
    # Loaders insist on the size too.
    if count > _MAX_PROGRAM_HEADERS or entry_size != size_of_entry:
        raise MalformedElf(f"{path} has an implausible program header table")
    headers = _slice(fd, head, table, entry_size * count, path)
    layout = struct.Struct(order + _SEGMENT[wide])
    left = _MAX_NOTE_BYTES
    for fields in layout.iter_unpack(headers):
        if fields[0] != _PT_NOTE:
            continue
        _, offset, size, align = fields
        left -= size
        if left < 0:
            raise MalformedElf(f"{path} has more than {_MAX_NOTE_BYTES} bytes of notes")
        found = _build_id_in(_slice(fd, head, offset, size, path), order, align, path)
        if found is not None:
            return found
    return None


def _slice(fd: int, head: bytes, offset: int, size: int, path: str) -> bytes:
    if offset + size <= len(head):
        return head[offset : offset + size]
    if offset >= 1 << 62:
        raise MalformedElf(f"{path} has headers that point outside the file")
    data = os.pread(fd, size, offset)
    if len(data) != size:
        raise MalformedElf(f"{path} has headers that point outside the file")
    return data


def _build_id_in(notes: bytes, order: str, align: int, path: str) -> bytes | None:
    # The gABI says 4, and 8 for notes of 64-bit property segments; 0 and 1 mean 4.
    unit = 8 if align == 8 else 4
    at = 0
    while at + 12 <= len(notes):
        name_size, content_size, kind = struct.unpack_from(order + "III", notes, at)
        name_at = at + 12
        content_at = name_at + _padded(name_size, unit, name_at)
        end = content_at + content_size
        if end > len(notes):
            raise MalformedElf(f"{path} has a note that exceeds its segment")
        if kind == _NT_GNU_BUILD_ID and notes[name_at : name_at + name_size] == b"GNU\0":
            if not 0 < content_size <= _MAX_BUILD_ID_BYTES:
                raise MalformedElf(f"{path} has a Build-ID of {content_size} bytes")
            return notes[content_at:end]
        at = content_at + _padded(content_size, unit, content_at)
    return None


def _padded(size: int, unit: int, start: int) -> int:
    """`size` plus the padding that brings ``start + size`` to a multiple of `unit`."""
    end = start + size
    return size + (-end % unit)
