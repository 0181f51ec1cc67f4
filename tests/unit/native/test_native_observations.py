"""The native core gives the answers of pypto_toolchains.disk, or none."""

from __future__ import annotations

import os
import shutil
import struct
import sys
from pathlib import Path

import pytest
from pypto import _native
from pypto_toolchains.disk import QUESTIONS, SYSTEM_DISK, Observation, unchanged
from pypto_toolchains.elf import MalformedElf, NotElf


def answers(path: str) -> list[Observation]:
    """Every question about `path` that has an answer."""
    found = []
    for kind, ask in QUESTIONS.items():
        if kind == "resolved" and not os.path.exists(path):
            continue  # it declines: what is resolved for an identity is there
        try:
            found.append((kind, path, ask(SYSTEM_DISK, path)))
        except (OSError, NotElf, MalformedElf):
            continue
    return found


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    tools = [shutil.which(name) for name in ("g++", "as", "ld", "sh")]
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "script").chmod(0o755)
    (tmp_path / "large").write_bytes(os.urandom(1_500_000))
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "around").symlink_to("around")
    (tmp_path / "away").symlink_to(sys.executable)
    (tmp_path / os.fsdecode(b"odd\xff")).symlink_to(os.fsdecode(b"\xfe"))
    (tmp_path / "directory" / "below" / "test").mkdir(parents=True)
    (tmp_path / "directory" / "below" / "up").symlink_to("..")
    (tmp_path / "directory" / "away").symlink_to(tmp_path / "tools")
    for name in ("below/file", "below.file", "below/test/file", os.fsdecode(b"\xff"), "line\nend"):
        (tmp_path / "directory" / name).write_text(name, errors="surrogateescape")
    os.mkfifo(tmp_path / "directory" / "pipe")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "tool").symlink_to(sys.executable)
    names = ["absent", "script/below", *sorted(os.listdir(tmp_path))]
    return [*filter(None, tools), sys.executable, *(f"{tmp_path}/{name}" for name in names)]


def test_it_agrees_where_the_answer_is_right(paths: list[str]) -> None:
    for path in paths:
        found = answers(path)
        assert len(found) >= 2, path
        assert _native.observations_hold(found), path
    assert _native.observations_hold([item for path in paths for item in answers(path)])
    assert _native.observations_hold([])


def test_it_refuses_every_other_answer(paths: list[str]) -> None:
    for path in paths:
        for kind, _, answer in answers(path):
            for other in ("1", "", "x", answer + "0", answer[:-1], answer.upper()):
                if other != answer:
                    assert not _native.observations_hold([(kind, path, other)]), (kind, path)
    good = answers(paths[0])
    assert not _native.observations_hold([*good, ("exists", paths[0], "")])
    assert not _native.observations_hold([("unheard", paths[0], "1")])


def elf(notes: bytes, align: int = 4, *, kind: int = 4, size: int | None = None) -> bytes:
    """A 64-bit file with one segment that holds `notes`."""
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0
    )
    length = len(notes) if size is None else size
    return header + struct.pack("<IIQQQQQQ", kind, 4, 120, 0, 0, length, length, align) + notes


def note(name: bytes, kind: int, content: bytes) -> bytes:
    padded = content + bytes(-len(content) % 4)
    return struct.pack("<III", len(name), len(content), kind) + name + padded


ID = note(b"GNU\0", 3, bytes(range(20)))
OTHER = note(b"GNU\0", 1, b"\1" * 5)
FILES = {
    "build-id": elf(ID),
    "after another note": elf(OTHER + ID),
    "two": elf(ID + note(b"GNU\0", 3, b"second")),
    "another owner": elf(note(b"XYZ\0", 3, b"0123")),
    "no note segment": elf(ID, kind=1),
    "empty id": elf(note(b"GNU\0", 3, b"")),
    "long id": elf(note(b"GNU\0", 3, bytes(65))),
    "ends early": elf(ID[:-4]),
    "note beyond its segment": elf(struct.pack("<III", 4, 2**32 - 1, 3) + b"GNU\0"),
    "segment beyond the file": elf(ID, size=4096 * 3),
    "huge segment": elf(ID, size=2**20),
    "aligned to eight": elf(ID, align=8),
    "far": elf(bytes(8000))[:64] + elf(ID)[64:],
    "no header table": elf(ID)[:56] + b"\0\0" + elf(ID)[58:],
    "short": elf(ID)[:60],
    "32-bit": b"\x7fELF\x01" + elf(ID)[5:],
    "big-endian": b"\x7fELF\x02\x02" + elf(ID)[6:],
    "no magic": b"\x7fELG" + elf(ID)[4:],
}


@pytest.mark.parametrize("name", FILES)
def test_native_files_of_any_form_never_get_another_identity(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(FILES[name])
    guesses = {"build-id:" + bytes(range(20)).hex(), "build-id:", "sha256:", "1", ""}
    try:
        right = SYSTEM_DISK.identity(str(path))
    except (NotElf, MalformedElf):
        right = None
    for guess in guesses - {right}:
        assert not _native.observations_hold([("identity", str(path), guess)])
    # It may decline what is uncommon, but these are not.
    if name in ("build-id", "after another note", "two", "another owner", "no note segment"):
        assert right is not None
        assert _native.observations_hold([("identity", str(path), right)])
    if right is not None:
        assert unchanged([("identity", str(path), right)])
