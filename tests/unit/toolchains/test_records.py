"""What is saved is read again, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pypto_toolchains.records import MAX_RECORD_BYTES, ProbeRecords, sealed, unsealed

NAME = "ab" * 32


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root" / "tools"


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, MAX_RECORD_BYTES])
def test_a_record_of_every_size_is_read_again(directory: Path, size: int) -> None:
    content = os.urandom(size)
    records = ProbeRecords(str(directory))
    assert records.save(NAME, content)
    assert records.load(NAME) == content
    assert os.listdir(directory) == [f"{NAME}.json"]


def test_what_could_not_be_read_again_is_not_kept(directory: Path) -> None:
    records = ProbeRecords(str(directory))
    assert records.save(NAME, b"small")
    assert not records.save(NAME, bytes(MAX_RECORD_BYTES + 1))
    assert records.load(NAME) == b"small"
    (directory / f"{NAME}.json").write_bytes(bytes(MAX_RECORD_BYTES + 1))
    assert records.load(NAME) is None


def test_what_is_no_file_is_no_record(directory: Path) -> None:
    directory.mkdir()
    records = ProbeRecords(str(directory))
    assert records.load(NAME) is None
    path = directory / f"{NAME}.json"
    path.mkdir()
    assert records.load(NAME) is None
    path.rmdir()
    os.mkfifo(path)
    assert unsealed(records.load(NAME)) is None
    path.unlink()
    path.symlink_to(__file__)
    assert records.load(NAME) is None


def test_nothing_is_kept_nowhere() -> None:
    assert not ProbeRecords(None).save(NAME, b"x")
    assert ProbeRecords(None).load(NAME) is None


def test_a_place_that_cannot_be_written_costs_the_record_alone(directory: Path) -> None:
    directory.write_bytes(b"")
    assert not ProbeRecords(str(directory)).save(NAME, b"x")
    assert directory.read_bytes() == b""


@pytest.mark.parametrize("present", [True, False])
def test_a_read_only_root_is_not_even_tried(
    directory: Path, monkeypatch: pytest.MonkeyPatch, present: bool
) -> None:
    if present:
        directory.mkdir()
    place = directory if present else directory.parent
    asked = []

    def access(path: str, mode: int) -> bool:
        asked.append((path, mode))
        return False

    monkeypatch.setattr("os.access", access)
    monkeypatch.setattr("os.open", lambda *_, **__: pytest.fail("it was tried"))
    monkeypatch.setattr("os.mkdir", lambda *_, **__: pytest.fail("it was tried"))
    assert not ProbeRecords(str(directory)).save(NAME, b"x")
    assert asked == [(str(place), os.W_OK)]


@pytest.mark.parametrize("body", [b"", b"x", b"\n\n", os.urandom(1000)])
def test_a_seal_shows_every_change(body: bytes) -> None:
    whole = sealed(body)
    assert unsealed(whole) == body
    for place in range(min(len(whole), 80)):
        damaged = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        assert unsealed(damaged) is None
    assert unsealed(whole + b"\n") is None
    assert unsealed(None) is None
