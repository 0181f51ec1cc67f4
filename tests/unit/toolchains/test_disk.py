"""Reading files that somebody else may change, or put something else in the place of."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pypto_toolchains.disk import SYSTEM_DISK, WatchedDisk, read_whole
from pypto_toolchains.loader_cache import read_loader_cache
from pypto_toolchains.packages import hash_files
from pypto_toolchains.sdk import actual_revision
from pypto_toolchains.toolchain_inventory import InventoryError, read_inventory

READERS: dict[str, Callable[[str], object]] = {
    "a digest": SYSTEM_DISK.sha256,
    "a whole file": lambda path: read_whole(path, SYSTEM_DISK, 9),
    "many files": lambda path: hash_files([path]),
    "the loader's cache": read_loader_cache,
    "an SDK": lambda path: actual_revision(Path(path).parent),
    "an inventory": lambda path: read_inventory(path, ""),
}


def test_a_whole_file_is_what_its_digest_is_of(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("12345")
    watched = WatchedDisk(SYSTEM_DISK)
    assert read_whole(str(path), watched, 5) == b"12345"
    assert [kind for kind, _, _ in watched.observations] == ["sha256"]
    path.write_text("54321")
    with pytest.raises(OSError, match="changed while it was read"):
        read_whole(str(path), watched, 5)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("12345")
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_whole(str(path), SYSTEM_DISK, 4)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_neither_waited_for_nor_read(
    tmp_path: Path, make: Callable[[str], None], reader: str
) -> None:
    path = str(tmp_path / "file")
    make(path)
    with pytest.raises((OSError, InventoryError), match="no regular file"):
        READERS[reader](path)


def test_nothing_stays_open_of_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(OSError, match="no regular file"):
            SYSTEM_DISK.sha256(str(tmp_path / "pipe"))
    assert len(os.listdir("/proc/self/fd")) == before
