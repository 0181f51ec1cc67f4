"""The chip object, the tables, and file hashing."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pypto
import pytest
from pypto import _native
from pypto_toolchains.packages import SKIPPED_DIRECTORIES, SUFFIXES, hash_sources


def test_chip_options_are_checked() -> None:
    with pytest.raises(ValueError, match="platform 'a9sim' is not one of a2a3sim, a5sim"):
        _native.Chip("a9sim")
    with pytest.raises(ValueError, match="clusters"):
        _native.Chip("a2a3sim", clusters=0)
    chip = _native.Chip("a5sim", clusters=3)
    assert (chip.platform, chip.clusters, chip.closed) == ("a5sim", 3, False)
    chip.close()
    chip.close()
    assert chip.closed


def test_limits_are_the_sdks() -> None:
    sdk = json.loads((Path(pypto.__file__).parent / "_sdk" / "sdk.json").read_text())
    assert _native.on_chip_limits() == sdk["limits"]


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000, 262143, 262144, 700001])
def test_sha256_of_files(tmp_path, size) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(i * 7 % 251 for i in range(size)))
    assert _native.sha256_files([str(path)]) == [hashlib.sha256(path.read_bytes()).digest()]


@pytest.mark.parametrize("count", [3, 200])
def test_sha256_keeps_the_order_and_names_what_is_missing(tmp_path, count) -> None:
    paths = []
    for i in range(count):
        path = tmp_path / f"f{i}"
        path.write_text(str(i))
        paths.append(str(path))
    digests = [hashlib.sha256(str(i).encode()).digest() for i in range(count)]
    assert _native.sha256_files(paths[::-1]) == digests[::-1]
    assert _native.sha256_files([]) == []
    absent = str(tmp_path / "absent")
    with pytest.raises(FileNotFoundError) as caught:
        _native.sha256_files([*paths[1:], absent])
    assert caught.value.filename == absent


def _sources(top: Path, count: int) -> None:
    for i in range(count):
        directory = top / ("inner" if i % 2 else "") / ("more" if i % 3 else "")
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"m{i}.py").write_text(str(i))
    (top / "notes.txt").write_text("no source")
    (top / "plain").write_text("no directory")
    (top / "data.json").write_text("{}")
    (top / "empty").mkdir()
    for name in ("__pycache__", "dotted.dir"):
        (top / name).mkdir()
        (top / name / "hidden.py").write_text("")
    (top / os.fsdecode(b"odd\xff.py")).write_text("")
    (top / "linked").symlink_to(top / "inner")


@pytest.mark.parametrize("count", [2, 100])
def test_sources_are_hashed_as_in_plain_python(tmp_path, count) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        root.mkdir()
        _sources(root, count)
    directories = [str(root) for root in roots]
    hashing = _native.hash_sources(directories, SUFFIXES, SKIPPED_DIRECTORIES)
    expected = hash_sources(directories)()
    assert expected[0][0].count(b"\0") > count
    assert hashing.wait() == expected
    assert hashing.wait() == expected  # again


def test_what_cannot_be_listed_or_read_shows_when_waiting(tmp_path) -> None:
    _sources(tmp_path, 40)
    absent = _native.hash_sources([str(tmp_path / "absent")], SUFFIXES, ())
    with pytest.raises(FileNotFoundError) as caught:
        absent.wait()
    assert caught.value.filename == str(tmp_path / "absent")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        _native.hash_sources([str(tmp_path)], SUFFIXES, ()).wait()


def test_a_forked_child_hashes_for_itself(tmp_path) -> None:
    _sources(tmp_path, 300)
    hashing = _native.hash_sources([str(tmp_path)], SUFFIXES, SKIPPED_DIRECTORIES)
    child = os.fork()
    if child == 0:
        os._exit(0 if hashing.wait() == hash_sources([str(tmp_path)])() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert hashing.wait() == hash_sources([str(tmp_path)])()


def test_build_info_is_plain() -> None:
    info = _native.build_info()
    assert {"compiler", "kernel_abi", "python"} <= info.keys()
