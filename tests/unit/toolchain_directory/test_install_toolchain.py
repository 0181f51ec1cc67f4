"""An installed toolchain is whole, or there is none."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import install_toolchain
import pytest
from install_toolchain import InstallError, install, main

Make = Callable[[str], Path]


def _nothing(_: int) -> None:
    pass


def _snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in root.rglob("*")
        if path.is_file()
    }


def test_the_copy_is_the_same_directory(make: Make, tmp_path: Path) -> None:
    toolchain = make("toolchain")
    shown: list[int] = []
    assert install(toolchain, tmp_path / "not" / "yet", shown.append)
    assert _snapshot(tmp_path / "not" / "yet") == _snapshot(toolchain)
    size = sum(item.size for item in install_toolchain.read_inventory(toolchain))
    assert shown == sorted(shown)
    assert shown[-1] == size


def test_modes_are_declared_and_not_copied(make: Make, tmp_path: Path) -> None:
    """Everything that Bazel makes is read-only and executable."""
    toolchain = make("toolchain")
    for path in toolchain.rglob("*"):
        path.chmod(0o555)
    install(toolchain, tmp_path / "copy", _nothing)
    modes = {name: mode for name, (_, mode) in _snapshot(tmp_path / "copy").items()}
    assert {name for name, mode in modes.items() if mode == 0o755} == {"cc/bin/c++"}
    assert os.access(tmp_path / "copy" / "cc", os.W_OK)


def test_an_empty_directory_is_filled(make: Make, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    assert install(make("toolchain"), tmp_path / "copy", _nothing)


def test_the_same_toolchain_is_left_alone(make: Make, tmp_path: Path) -> None:
    toolchain = make("toolchain")
    install(toolchain, tmp_path / "copy", _nothing)
    inode = (tmp_path / "copy" / "identity.json").stat().st_ino
    assert not install(toolchain, tmp_path / "copy", _nothing)
    assert (tmp_path / "copy" / "identity.json").stat().st_ino == inode


def _edit(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda copy: _edit(copy / "identity.json"),
            r"another toolchain \(identity.json differs\)",
        ),
        (
            lambda copy: _edit(copy / "inventory.txt"),
            r"another toolchain \(inventory.txt differs\)",
        ),
        (lambda copy: (copy / "identity.json").unlink(), "exists and has no toolchain"),
        (lambda copy: _edit(copy / "cc/include/b.h"), "cc/include/b.h differs"),
        (lambda copy: (copy / "cc/bin/c++").chmod(0o644), r"cc/bin/c\+\+ differs"),
        (lambda copy: (copy / "cc/include/b.h").unlink(), "cc/include/b.h is missing"),
        (lambda copy: (copy / "cc/include/c.h").touch(), "cc/include/c.h does not belong to it"),
    ],
)
def test_what_is_there_and_differs_is_named_and_kept(
    make: Make, tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    toolchain, copy = make("toolchain"), tmp_path / "copy"
    install(toolchain, copy, _nothing)
    change(copy)
    before = _snapshot(copy)
    with pytest.raises(InstallError, match=said + ".*; remove it or choose another directory"):
        install(toolchain, copy, _nothing)
    assert _snapshot(copy) == before


def test_a_file_in_the_way_is_kept(make: Make, tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("mine")
    with pytest.raises(InstallError, match="exists and has no toolchain"):
        install(make("toolchain"), tmp_path / "copy", _nothing)
    assert (tmp_path / "copy").read_text() == "mine"


def test_a_link_to_nothing_is_kept(make: Make, tmp_path: Path) -> None:
    (tmp_path / "copy").symlink_to("nowhere")
    with pytest.raises(InstallError, match="exists and has no toolchain"):
        install(make("toolchain"), tmp_path / "copy", _nothing)
    assert (tmp_path / "copy").is_symlink()


def test_a_damaged_toolchain_is_not_installed(make: Make, tmp_path: Path) -> None:
    toolchain = make("toolchain")
    _edit(toolchain / "cc/include/b.h")
    with pytest.raises(InstallError, match=r"cc/include/b\.h is not what the inventory says"):
        install(toolchain, tmp_path / "copies" / "copy", _nothing)
    assert list((tmp_path / "copies").iterdir()) == []


def test_an_interrupted_copy_leaves_nothing(make: Make, tmp_path: Path) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(make("toolchain"), tmp_path / "copies" / "copy", interrupt)
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_pipe_gets_json_and_a_relative_directory_counts_from_the_user(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--toolchain", str(make("toolchain")), "../tools"]
    environ = {"BUILD_WORKING_DIRECTORY": str(tmp_path / "project")}
    statuses = []
    for _ in range(2):
        assert main(words, environ) == 0
        output = capsys.readouterr()
        assert output.err == ""
        report = json.loads(output.out)
        statuses.append(report.pop("status"))
        assert report == {
            "directory": str(tmp_path / "tools"),
            "identity": str(tmp_path / "tools" / "identity.json"),
            "files": 3,
            "bytes": 28,
        }
    assert statuses == ["installed", "present"]


def test_a_directory_that_cannot_be_made_is_one_line(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    words = ["--toolchain", str(make("toolchain")), str(tmp_path / "file" / "tools")]
    assert main(words, {}) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert output.err.endswith("; choose another directory\n")
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("words", [[], ["one", "two"], ["--force", "one"]])
def test_a_wrong_command_line_is_status_2(
    make: Make, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["--toolchain", str(make("toolchain")), *words], {})
    assert raised.value.code == 2
    assert "usage: bazelw run //toolchains/zig:install -- " in capsys.readouterr().err
