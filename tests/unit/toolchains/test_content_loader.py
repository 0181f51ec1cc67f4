"""Reading what the dynamic loader reads: its cache, and ELF files of every form."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from pypto_toolchains.elf_dynamic import ElfUnreadable, read_dynamic
from pypto_toolchains.loader_cache import (
    CACHE_PATH,
    LoaderCacheUnreadable,
    parse_loader_cache,
    read_loader_cache,
)
from pypto_toolchains.loader_search import ClosureUnknown, library_directories

ENTRIES = [
    ("libb.so.1", "/b2/libb.so.1", 4),
    ("libb.so.1", "/b/libb.so.1", 0),
    ("liba.so", "/a", 0),
]


def cache(entries: list[tuple[str, str, int]] = ENTRIES) -> bytes:
    """A cache in the new format."""
    strings = b""
    rows = []
    base = 48 + 24 * len(entries)
    for name, path, capability in entries:
        first, second = base + len(strings), base + len(strings) + len(name) + 1
        strings += f"{name}\0{path}\0".encode()
        rows.append(struct.pack("=iIIIQ", 0x303, first, second, 0, capability))
    header = b"glibc-ld.so.cache1.1" + struct.pack("=IIB3xI12x", len(entries), len(strings), 2, 0)
    return header + b"".join(rows) + strings


def old_before(new: bytes, count: int) -> bytes:
    """The same behind an old format with some entries."""
    old = b"ld.so-1.7.0\0" + struct.pack("=I", count) + bytes(12 * count)
    return old + bytes(-len(old) % 8) + new


def test_paths_come_in_the_order_of_the_file() -> None:
    assert parse_loader_cache(cache()) == {
        "libb.so.1": (("/b2/libb.so.1", True), ("/b/libb.so.1", False)),
        "liba.so": (("/a", False),),
    }
    assert parse_loader_cache(cache([])) == {}


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_the_new_format_behind_an_old_one(count: int) -> None:
    assert parse_loader_cache(old_before(cache(), count)) == parse_loader_cache(cache())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"ld.so-1.7.0\0",
        b"ld.so-1.7.0\0" + bytes(20),
        b"glibc-ld.so.cache1.0" + bytes(40),
        cache()[:47],
        cache()[:60],
        cache()[:-1],
        cache().replace(struct.pack("=I", 3), struct.pack("=I", 2**31), 1),
    ],
)
def test_other_forms_are_refused(data: bytes) -> None:
    with pytest.raises(LoaderCacheUnreadable):
        parse_loader_cache(data)


def test_the_cache_of_this_machine_says_what_ldconfig_says() -> None:
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/usr/bin")
    if ldconfig is None or not Path(CACHE_PATH).exists():
        pytest.skip("this machine has no loader cache")
    told = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in told.splitlines() if " => " in line]
    found = read_loader_cache(CACHE_PATH)
    ours = [(name, path) for name, paths in found.items() for path, _ in paths]
    assert sorted(ours) == sorted((words[0], words[-1]) for words in lines)


@pytest.mark.parametrize(
    ("value", "directories"),
    [(None, ()), ("", ()), ("/a", ("/a",)), ("/a:/b;/c", ("/a", "/b", "/c"))],
)
def test_directories_of_the_environment(value: str | None, directories: tuple[str, ...]) -> None:
    assert library_directories(value) == directories


@pytest.mark.parametrize("value", [":", "/a:", "/a;;/b", "lib", "/a:./b", "/$LIB", "/a:/${ORIGIN}"])
def test_directories_that_mean_more_than_one(value: str) -> None:
    with pytest.raises(ClosureUnknown, match="LD_LIBRARY_PATH has the entry"):
        library_directories(value)


def test_a_damaged_file_is_refused_or_read(tmp_path: Path) -> None:
    """Whatever bytes a native file has, nothing but the one error comes of them."""
    tool = shutil.which("ls")
    assert tool is not None
    whole = Path(tool).read_bytes()
    choice = random.Random(98)
    path = tmp_path / "damaged"
    for _ in range(400):
        content = bytearray(whole[: choice.choice([len(whole), choice.randrange(len(whole))])])
        for _ in range(choice.randrange(1, 6)):
            # Most of them where the headers are.
            place = choice.randrange(min(len(content), choice.choice([64, 1024, len(whole)])) or 1)
            if place < len(content):
                content[place] = choice.randrange(256)
        path.write_bytes(content)
        with contextlib.suppress(ElfUnreadable):
            read_dynamic(str(path))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises((ElfUnreadable, OSError)):
        read_dynamic(str(path))
