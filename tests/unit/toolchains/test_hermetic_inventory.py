"""The list of a toolchain's files, held against the files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pypto_toolchains.packages import hash_files
from pypto_toolchains.toolchain_inventory import (
    Inventory,
    InventoryError,
    ListedFile,
    read_inventory,
)

FILES = {
    "LICENSE": b"free",
    "zig/lib/include/stddef.h": b"typedef",
    "zig/lib/libc/a.h": b"",
    "zig/zig": b"\x7fELF",
}


def line(path: str, content: bytes = b"", mode: str = "-", component: str = "tool") -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    return f"{digest} {len(content)} {mode} {component} {path}\n".encode()


LISTED = b"".join(
    line(path, content, "x" if path == "zig/zig" else "-")
    for path, content in sorted(FILES.items())
)


@pytest.fixture
def toolchain(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "toolchain" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "toolchain/zig/zig").chmod(0o755)
    # Beside the directories that it lists, others are nobody's.
    (tmp_path / "toolchain/identity.json").write_text("{}")
    (tmp_path / "toolchain/other").mkdir()
    (tmp_path / "toolchain/other/file").write_text("")
    return tmp_path / "toolchain"


def check(directory: Path) -> None:
    Inventory.parse(LISTED).check(str(directory), hash_files)


def test_a_list_is_read_whole() -> None:
    found = Inventory.parse(LISTED + line("zyx", b"..", "x", "other"))
    assert list(found.files) == [*FILES, "zyx"]
    assert found.files["zig/zig"] == ListedFile(hashlib.sha256(b"\x7fELF").hexdigest(), 4, True)
    assert found.digests == {
        "tool": hashlib.sha256(LISTED).hexdigest(),
        "other": hashlib.sha256(line("zyx", b"..", "x", "other")).hexdigest(),
    }


def test_paths_need_not_be_text() -> None:
    raw = line("x", b"").replace(b" x\n", b" \xff\n")
    assert list(Inventory.parse(raw).files) == [os.fsdecode(b"\xff")]


@pytest.mark.parametrize(
    ("data", "culprit"),
    [
        (line("a")[:-1], "last line is incomplete"),
        (line("a") + b"\n", "line 2 does not follow"),
        (line("a").upper(), "line 1 does not follow"),
        (line("a").replace(b" - ", b" r "), "line 1 does not follow"),
        (line("a").replace(b" 0 ", b" 00 "), "line 1 does not follow"),
        (line("a").replace(b" 0 ", b" -1 "), "line 1 does not follow"),
        (line("a\0"), "line 1 does not follow"),
        (line(""), "line 1 does not follow"),
        (line("a", component="Tool"), "line 1 does not follow"),
        (line("/a"), "line 1: '/a' is not a normal relative path"),
        (line("a/"), "normal relative path"),
        (line("a//b"), "normal relative path"),
        (line("./a"), "normal relative path"),
        (line("a/./b"), "normal relative path"),
        (line(".."), "normal relative path"),
        (line("a/../b"), "normal relative path"),
        (line("b") + line("a"), "line 2: 'a' is not in ascending order"),
        (line("a") + line("a"), "line 2: 'a' is not in ascending order"),
    ],
)
def test_what_breaks_the_grammar_names_the_line(data: bytes, culprit: str) -> None:
    with pytest.raises(InventoryError, match=culprit):
        Inventory.parse(data)


def test_names_with_dots_and_blanks_are_names() -> None:
    data = line("..a/b..") + line("a b/.c")
    assert list(Inventory.parse(data).files) == ["..a/b..", "a b/.c"]


def test_the_files_it_lists_are_what_it_says(toolchain: Path) -> None:
    check(toolchain)


def test_every_file_may_be_executable(toolchain: Path) -> None:
    for path in toolchain.rglob("*.h"):
        path.chmod(0o555)
    check(toolchain)


def test_a_tree_of_links_is_what_it_leads_to(toolchain: Path, tmp_path: Path) -> None:
    each = tmp_path / "each"
    for name in FILES:
        (each / name).parent.mkdir(parents=True, exist_ok=True)
        (each / name).symlink_to(toolchain / name)
    check(each)
    whole = tmp_path / "whole"
    whole.mkdir()
    for name in ("LICENSE", "zig"):
        (whole / name).symlink_to(toolchain / name)
    check(whole)
    (toolchain / "zig/lib/more.h").write_text("")
    with pytest.raises(InventoryError, match=r"zig/lib/more\.h was added"):
        check(whole)


def patched(directory: Path) -> None:
    (directory / "zig/lib/include/stddef.h").write_bytes(b"TYPEDEF")


def pipe(directory: Path) -> None:
    (directory / "LICENSE").unlink()
    os.mkfifo(directory / "LICENSE")


def circle(directory: Path) -> None:
    (directory / "zig/lib/up").symlink_to("..")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (patched, r"^zig/lib/include/stddef\.h was changed$"),
        (lambda top: (top / "LICENSE").write_bytes(b"freedom"), "^LICENSE was changed$"),
        (lambda top: (top / "zig/lib/libc/a.h").unlink(), r"^zig/lib/libc/a\.h is missing"),
        (lambda top: (top / "zig").rename(top / "gone"), "is missing"),
        (lambda top: (top / "zig/lib/b.h").touch(), r"^zig/lib/b\.h was added$"),
        (lambda top: (top / "zig/lib/b.h").symlink_to("nowhere"), r"^zig/lib/b\.h was added$"),
        (lambda top: (top / "zig/zig").chmod(0o644), "^zig/zig is not executable any more$"),
        (pipe, "^LICENSE is no regular file$"),
        (circle, "zig/lib/up leads back to a directory above it"),
    ],
)
def test_what_differs_is_named(
    toolchain: Path, change: Callable[[Path], object], complaint: str
) -> None:
    change(toolchain)
    with pytest.raises(InventoryError, match=complaint):
        check(toolchain)


def test_a_file_that_goes_while_it_is_read_is_named(toolchain: Path) -> None:
    def slow(paths: list[str]) -> list[bytes]:
        (toolchain / "LICENSE").unlink()
        return hash_files(paths)

    with pytest.raises(InventoryError, match=r"LICENSE: No such file"):
        Inventory.parse(LISTED).check(str(toolchain), slow)


def test_the_list_itself_has_a_digest(tmp_path: Path) -> None:
    path = tmp_path / "inventory.txt"
    path.write_bytes(LISTED)
    digest = hashlib.sha256(LISTED).hexdigest()
    assert list(read_inventory(str(path), digest).files) == list(FILES)
    path.write_bytes(LISTED.replace(b" x ", b" - "))
    with pytest.raises(InventoryError, match="not the one that the description was written for"):
        read_inventory(str(path), digest)
    with pytest.raises(InventoryError, match="cannot be read: No such file"):
        read_inventory(str(tmp_path / "none"), digest)
