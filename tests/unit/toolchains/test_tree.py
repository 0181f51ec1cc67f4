"""The digest of a directory changes with everything that can be read below it, and with no more."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from pypto_toolchains.disk import SYSTEM_DISK
from pypto_toolchains.packages import hash_files
from pypto_toolchains.tree import ABSENT, tree_digest


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A directory with files, links of all kinds and one that is skipped by some."""
    top = tmp_path / "top"
    (top / "below" / "deep").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "header.h").write_text("one\n")
    (top / "below" / "other.h").write_text("two\n")
    (top / "below" / "deep" / "last.h").write_text("three\n")
    (top / "site-packages").mkdir()
    (top / "site-packages" / "module.py").write_text("four\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "far.h").write_text("far\n")
    (top / "away").symlink_to("../elsewhere")
    (top / "alias.h").symlink_to("header.h")
    (top / "nowhere.h").symlink_to("missing.h")
    (top / "below" / "up").symlink_to("..")
    return top


def digest(top: Path, *skipped: str) -> str:
    return tree_digest(str(top), skipped, hash_files)


def test_it_is_what_is_written_of_it(top: Path) -> None:
    def content(name: str) -> str:
        return hashlib.sha256((top / name).read_bytes()).hexdigest()

    files = (
        "alias.h away/far.h below/deep/last.h below/other.h header.h site-packages/module.py"
    ).split()
    states = {name: content(name) for name in files}
    states |= {"nowhere.h": "dangling", "below/up": "loop"}
    text = "".join(f"{name}\0{states[name]}\n" for name in sorted(states))
    assert digest(top) == hashlib.sha256(text.encode()).hexdigest()
    assert SYSTEM_DISK.tree(str(top)) == digest(top)
    assert SYSTEM_DISK.modules(str(top)) == digest(top, "site-packages") != digest(top)


CHANGES: dict[str, Callable[[Path], object]] = {
    "an edit": lambda top: (top / "below" / "other.h").write_text("TWO\n"),
    "an edit behind a link": lambda top: (top / "away" / "far.h").write_text("near\n"),
    "another file": lambda top: (top / "below" / "new.h").touch(),
    "another hidden file": lambda top: (top / ".hidden").touch(),
    "a file that is gone": lambda top: (top / "header.h").unlink(),
    "another name": lambda top: (top / "header.h").rename(top / "headers.h"),
    "another place": lambda top: (top / "header.h").rename(top / "below" / "header.h"),
    "what a link misses": lambda top: (top / "missing.h").touch(),
    "a link to something else": lambda top: relink(top / "alias.h", "below/other.h"),
    "a directory for a link": lambda top: relink(top / "below" / "up", "../empty"),
    "a pipe": lambda top: os.mkfifo(top / "pipe"),
}
KEEPS: dict[str, Callable[[Path], object]] = {
    "times": lambda top: os.utime(top / "header.h", (1, 1)),
    "modes": lambda top: (top / "header.h").chmod(0o600),
    "an empty directory": lambda top: (top / "empty").rmdir(),
    "a link for a copy": lambda top: copied(top / "alias.h", top / "header.h"),
    "the same bytes in another file": lambda top: copied(top / "header.h", top / "header.h"),
}


def relink(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def copied(path: Path, origin: Path) -> None:
    content = origin.read_bytes()
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize("name", CHANGES)
def test_what_can_be_read_changes_it(top: Path, name: str) -> None:
    before = digest(top)
    CHANGES[name](top)
    assert digest(top) != before


@pytest.mark.parametrize("name", KEEPS)
def test_nothing_else_changes_it(top: Path, name: str) -> None:
    before = digest(top)
    KEEPS[name](top)
    assert digest(top) == before


def test_a_copy_elsewhere_has_the_same(top: Path, tmp_path: Path) -> None:
    shutil.copytree(tmp_path, tmp_path / "copy", symlinks=True)
    assert digest(tmp_path / "copy" / "top") == digest(top)


def test_what_is_no_directory_has_none(top: Path) -> None:
    assert digest(top / "absent") == ABSENT
    assert digest(top / "header.h") == ABSENT
    assert digest(top / "empty") != ABSENT


def test_sockets_are_named_and_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the address of a socket has to be short
    before = digest(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert digest(tmp_path) != before


def test_a_file_that_cannot_be_read_is_an_error(top: Path) -> None:
    def refusing(paths: list[str]) -> list[bytes]:
        raise PermissionError(13, "Permission denied", paths[0])

    with pytest.raises(PermissionError):
        tree_digest(str(top), (), refusing)
