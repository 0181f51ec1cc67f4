from __future__ import annotations

import contextlib
import os
import random
import shutil
import struct
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from pypto_toolchains.elf import MalformedElf, NotElf, native_identity, read_build_id


def elf64(notes: bytes, *, align: int = 4, note_size: int | None = None) -> bytes:
    """A minimal ELF image: a header, one PT_NOTE program header, the notes."""
    start = 64 + 56
    size = len(notes) if note_size is None else note_size
    header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 4, start, 0, 0, size, size, align)
    return header + segment + notes


def note(name: bytes, kind: int, content: bytes, unit: int = 4) -> bytes:
    head = struct.pack("<III", len(name), len(content), kind) + name
    head += bytes(-len(head) % unit)
    return head + content + bytes(-len(content) % unit)


BUILD_ID = bytes(range(20))


def test_finds_the_build_id_behind_other_notes(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(
        elf64(
            note(b"GNU\0", 1, b"abi-tag") + note(b"Go\0", 3, b"x" * 7) + note(b"GNU\0", 3, BUILD_ID)
        )
    )
    assert read_build_id(str(path)) == BUILD_ID
    assert native_identity(str(path)) == f"build-id:{BUILD_ID.hex()}"


def test_notes_of_an_eight_byte_segment(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(
        elf64(note(b"GNU\0", 5, b"p" * 4, unit=8) + note(b"GNU\0", 3, BUILD_ID, unit=8), align=8)
    )
    assert read_build_id(str(path)) == BUILD_ID


def test_without_build_id_the_content_identifies(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(elf64(note(b"GNU\0", 1, b"abi-tag")))
    assert read_build_id(str(path)) is None
    before = native_identity(str(path))
    assert before.startswith("sha256:")
    path.write_bytes(path.read_bytes() + b"tail")
    assert native_identity(str(path)) != before


def test_with_build_id_the_rest_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(elf64(note(b"GNU\0", 3, BUILD_ID)))
    before = native_identity(str(path))
    path.write_bytes(path.read_bytes() + b"tail")
    assert native_identity(str(path)) == before


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fEL"])
def test_what_is_no_elf_is_said_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tool"
    path.write_bytes(content)
    with pytest.raises(NotElf, match="tool"):
        read_build_id(str(path))


def test_headers_that_lie_are_malformed(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    whole = elf64(note(b"GNU\0", 3, BUILD_ID))
    damaged = {
        "short header": whole[:40],
        "no program headers": whole[:64],
        "segment past the end": elf64(note(b"GNU\0", 3, BUILD_ID), note_size=5000),
        "segment too large": elf64(b"", note_size=1 << 20),
        "note past its segment": elf64(struct.pack("<III", 4, 400, 3) + b"GNU\0"),
        "empty build-id": elf64(note(b"GNU\0", 3, b"")),
        "unknown class": whole[:4] + b"\x07" + whole[5:],
    }
    for reason, content in damaged.items():
        path.write_bytes(content)
        with pytest.raises(MalformedElf):
            pytest.fail(f"{reason}: {native_identity(str(path))}")


def test_every_truncation_ends_in_an_answer_or_a_typed_error(tmp_path: Path) -> None:
    whole = elf64(note(b"GNU\0", 1, b"abi") + note(b"GNU\0", 3, BUILD_ID))
    path = tmp_path / "lib.so"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with contextlib.suppress(NotElf, MalformedElf):
            assert read_build_id(str(path)) in (None, BUILD_ID)


def test_agrees_with_the_reference_reader_on_a_real_file(tmp_path: Path) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    executable = Path(shutil.which("ld") or sys.executable).resolve()
    with executable.open("rb") as stream:
        expected = [
            found["n_desc"]
            for section in elffile.ELFFile(stream).iter_sections()
            if section["sh_type"] == "SHT_NOTE"
            for found in section.iter_notes()
            if found["n_type"] == "NT_GNU_BUILD_ID"
        ]
    found = read_build_id(str(executable))
    assert [found.hex()] == expected if found else expected == []


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all reads from now on, as they are made."""
    sizes: list[int] = []
    pread = os.pread

    def counted(fd: int, size: int, offset: int) -> bytes:
        data = pread(fd, size, offset)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    return sizes


@pytest.mark.conforms("cache.93")
def test_only_headers_and_notes_of_a_file_with_a_build_id_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.so"
    path.write_bytes(elf64(note(b"GNU\0", 3, BUILD_ID)))
    os.truncate(path, 1 << 30)
    sizes = counted_reads(monkeypatch)
    assert native_identity(str(path)) == f"build-id:{BUILD_ID.hex()}"
    assert sum(sizes) <= 4096


@pytest.mark.conforms("cache.93")
def test_every_byte_of_a_file_without_a_build_id_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.so"
    path.write_bytes(elf64(note(b"GNU\0", 1, b"abi-tag")))
    os.truncate(path, 3 << 20)
    sizes = counted_reads(monkeypatch)
    assert native_identity(str(path)) == f"sha256:{sha256(path.read_bytes()).hexdigest()}"
    assert sum(sizes) >= 3 << 20


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        with pytest.raises((OSError, NotElf)):
            native_identity(str(path))


def test_many_small_note_segments_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments, size = 200, 4096
    header = bytearray(elf64(b"")[:64])
    struct.pack_into("<H", header, 56, segments)
    segment = struct.pack("<IIQQQQQQ", 4, 4, 0x4000, 0, 0, size, size, 4)
    path = tmp_path / "lib.so"
    path.write_bytes(bytes(header) + segment * segments)
    os.truncate(path, 1 << 20)
    sizes = counted_reads(monkeypatch)
    with pytest.raises(MalformedElf, match="bytes of notes"):
        native_identity(str(path))
    assert sum(sizes) < 100_000


@pytest.mark.parametrize("seed", range(8))
def test_damage_of_any_kind_ends_in_a_typed_error_and_small_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random_ = random.Random(seed)
    whole = elf64(note(b"GNU\0", 1, b"abi") + note(b"GNU\0", 3, BUILD_ID)) + bytes(300)
    path = tmp_path / "lib.so"
    sizes = counted_reads(monkeypatch)
    for _ in range(400):
        content = bytearray(whole[: random_.choice([len(whole), random_.randrange(len(whole))])])
        for _ in range(random_.randrange(1, 5)):
            at = random_.randrange(4, 220)
            width = random_.choice([1, 2, 4, 8])
            value = random_.choice([0, 1, 3, 4, 0x7F, 0xFF, 1 << 16, 1 << 31, (1 << 62) - 1, -1])
            content[at : at + width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
        path.write_bytes(content)
        sizes.clear()
        with contextlib.suppress(NotElf, MalformedElf):
            found = read_build_id(str(path))
            assert found is None or 0 < len(found) <= 64
        assert sum(sizes) <= 4096 + 256 * 56 + (64 << 10)
