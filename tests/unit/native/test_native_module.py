"""The chip object, the tables, and file hashing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pypto
import pytest
from pypto import _native


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


def test_build_info_is_plain() -> None:
    info = _native.build_info()
    assert {"compiler", "kernel_abi", "python"} <= info.keys()
