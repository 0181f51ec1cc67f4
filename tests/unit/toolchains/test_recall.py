"""What an identity rests on is watched, kept, and asked again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from pypto_store.digest import Digest
from pypto_toolchains.disk import QUESTIONS, SYSTEM_DISK, WatchedDisk, unchanged
from pypto_toolchains.elf import NotElf
from pypto_toolchains.evidence import Evidence
from pypto_toolchains.identity import ToolchainIdentity
from pypto_toolchains.recall import circumstances, decode, encode
from pypto_toolchains.records import sealed

ODD = os.fsdecode(b"/odd\xff")
IDENTITY = ToolchainIdentity(
    Digest.of(b"identity"),
    (Evidence.of("ptoas", (("ptoas.native", "build-id:00"), ("path", ODD))),),
    (("policy", "build"), ("epoch", None)),
)
OBSERVATIONS = (("exists", ODD, ""), ("link", "/usr", ""))


def test_a_record_says_what_was_kept() -> None:
    recalled = decode(encode(IDENTITY, {"pypto": "0"}, OBSERVATIONS))
    assert recalled is not None
    assert recalled.identity == IDENTITY
    assert recalled.sources == {"pypto": "0"}
    assert tuple(map(tuple, recalled.observations)) == OBSERVATIONS


def test_a_damaged_record_says_nothing() -> None:
    whole = encode(IDENTITY, {"pypto": "0"}, OBSERVATIONS)
    assert decode(None) is None
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        assert decode(bytes(changed)) is None, place
        assert decode(whole[:place]) is None, place


@pytest.mark.parametrize(
    "observations", [None, 1, [["exists", "/"]], [["exists", "/", 1]], [["exists", None, ""]]]
)
def test_a_record_of_another_form_says_nothing(observations: object) -> None:
    document = json.loads(encode(IDENTITY, {}, OBSERVATIONS).split(b"\n", 1)[1])
    document["observations"] = observations
    assert decode(sealed(json.dumps(document).encode())) is None


@pytest.mark.parametrize("kind", ["unheard", ""])
def test_an_unknown_question_is_not_believed(kind: str) -> None:
    assert not unchanged([(kind, "/", "1")])


def test_circumstances_do_not_blur() -> None:
    values = [("a", None), ("a", "None"), ("a,", None), (("a",), None), ("a", ""), ("a", ODD)]
    assert len({circumstances(value) for value in values}) == len(values)


class Place:
    """Something of every kind that is asked about."""

    def __init__(self, top: Path) -> None:
        self.tool = top / "tool"
        tool = shutil.which("as")
        assert tool is not None
        shutil.copy(tool, self.tool)
        self.script = top / "script"
        self.script.write_text("#!/bin/sh\n")
        self.script.chmod(0o755)
        self.link = top / "link"
        self.link.symlink_to("tool")
        self.absent = top / "absent"
        self.plain = top / "plain"
        self.plain.write_bytes(b"")
        self.directory = top / "directory"
        self.directory.mkdir()
        self.full = top / "full"
        self.full.mkdir()
        for name in ("one", "two", os.fsdecode(b"\xff")):
            (self.full / name).touch()

    def watch(self) -> WatchedDisk:
        disk = WatchedDisk(SYSTEM_DISK)
        for path in map(str, vars(self).values()):
            disk.is_executable(path)
            disk.exists(path)
            disk.resolved(path)
            disk.listing(path)
        disk.link(str(self.link))
        disk.link(str(self.tool))
        disk.identity(str(self.link))
        disk.sha256(str(self.plain))
        disk.sha256(str(self.script))
        disk.tree(str(self.full))
        disk.modules(str(self.full))
        with pytest.raises(NotElf):
            disk.identity(str(self.script))
        with pytest.raises(FileNotFoundError):
            disk.link(str(self.absent))
        return disk


CHANGES = {
    "other content": lambda place: place.script.write_text("#!/bin/dash\n"),
    "no longer empty": lambda place: place.plain.write_bytes(b"x"),
    "no longer executable": lambda place: place.script.chmod(0o644),
    "now executable": lambda place: place.plain.chmod(0o755),
    "gone": lambda place: place.script.unlink(),
    "now there": lambda place: place.absent.write_bytes(b""),
    "now a directory": lambda place: place.absent.mkdir(),
    "linked elsewhere": lambda place: relink(place.link, "script"),
    "no link any more": lambda place: (place.link.unlink(), shutil.copy(place.tool, place.link)),
    "became a link": lambda place: (place.plain.unlink(), place.plain.symlink_to("empty")),
    "another tool": lambda place: shutil.copy(str(shutil.which("ld")), place.tool),
    "a script for a tool": lambda place: place.tool.write_text("#!/bin/sh\n"),
    "one more name": lambda place: (place.directory / "x").touch(),
    "one name less": lambda place: (place.full / "one").unlink(),
    "another name": lambda place: (place.full / "one").rename(place.full / "onf"),
    "truncated tool": lambda place: os.truncate(place.tool, 40),
}


def relink(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_shows(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path)
    disk = place.watch()
    assert {kind for kind, _, _ in disk.observations} == QUESTIONS.keys()
    assert unchanged(disk.observations)
    CHANGES[name](place)
    assert not unchanged(disk.observations)


def test_each_question_is_asked_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    disk = WatchedDisk(SYSTEM_DISK)
    assert not disk.exists(str(path))
    path.touch()
    assert not disk.exists(str(path))
    assert disk.observations == (("exists", str(path), ""),)
