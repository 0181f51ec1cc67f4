"""Directories are made once, completely or again."""

from __future__ import annotations

import multiprocessing
import shutil
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from bootstrap.failure import SetupError
from bootstrap.progress import Progress
from bootstrap.steps import is_complete, make_once, remove_tree, require_space, write_atomically


def test_an_interrupted_step_is_made_again_from_nothing(tmp_path: Path, progress: Progress) -> None:
    directory = tmp_path / "step"

    def interrupted(target: Path) -> None:
        (target / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_once(directory, tmp_path / "lock", progress, interrupted)
    assert not is_complete(directory)

    def whole(target: Path) -> None:
        assert list(target.iterdir()) == []
        (target / "whole").write_text("whole")

    make_once(directory, tmp_path / "lock", progress, whole)
    assert is_complete(directory)
    assert not (directory / "half").exists()


def test_a_complete_step_is_left_alone(tmp_path: Path, progress: Progress) -> None:
    made = []
    for _ in range(2):
        make_once(tmp_path / "step", tmp_path / "lock", progress, made.append)
    assert made == [tmp_path / "step"]


def _make_and_count(directory: Path, lock: Path, log: Path) -> None:
    def make(_: Path) -> None:
        with log.open("a") as stream:
            stream.write("made\n")

    make_once(directory, lock, Progress(StringIO()), make)


def test_processes_that_race_make_it_once(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("fork")
    arguments = (tmp_path / "step", tmp_path / "lock", tmp_path / "log")
    racers = [spawn.Process(target=_make_and_count, args=arguments) for _ in range(4)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
        assert racer.exitcode == 0
    assert (tmp_path / "log").read_text() == "made\n"


def test_read_only_directories_can_be_removed(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    inner.chmod(0o555)
    remove_tree(tmp_path / "outer")
    assert not (tmp_path / "outer").exists()


def test_too_little_space_is_said_before_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10_000_000))
    require_space(tmp_path / "not" / "yet", 9_000_000, "it")
    with pytest.raises(SetupError) as raised:
        require_space(tmp_path / "not" / "yet", 2_000_000_000, "the test environment")
    assert "the test environment needs 2.0 GB" in raised.value.problem
    assert "BAZELW_CACHE" in raised.value.remedy


def test_a_written_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "rc" / "file"
    write_atomically(path, "one")
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]
