"""A machine that lacks something gets one line that says what to do."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest
from bootstrap import environments, launcher
from bootstrap.debian_bazel import bazel_apt
from bootstrap.debian_browser import browser_apt
from bootstrap.failure import SetupError
from bootstrap.find_bazel import find_bazel
from bootstrap.host import (
    compiler_identity,
    require_plain_workspace_path,
    require_supported_machine,
)
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.tools import run

MAIN = Path(launcher.__file__).with_name("__main__.py")
BAZELW = next(parent / "bazelw" for parent in MAIN.parents if (parent / "bazelw").exists())
MakeSettings = Callable[..., Settings]
MakeProgram = Callable[[str, str], Path]


def test_an_old_python_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    version = namedtuple("version", "major minor micro releaselevel serial")
    monkeypatch.setattr(sys, "version_info", version(3, 9, 2, "final", 0))
    with pytest.raises(SystemExit) as raised:
        runpy.run_path(str(MAIN), run_name="__main__")
    assert raised.value.code == 2
    error = capsys.readouterr().err
    assert "is Python 3.9; install Python 3.11 or newer, or set BAZELW_PYTHON" in error
    assert error.count("\n") == 1


def test_no_python_is_said_by_the_shell(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin:/bin", "BAZELW_PYTHON": "python-of-nowhere"}
    done = subprocess.run(
        ["sh", str(BAZELW), "version"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "there is no 'python-of-nowhere' on PATH" in done.stderr


def _bazelw(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(MAIN.parent), str(MAIN.parents[2]), *words],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_compiler_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    done = _bazelw({"PATH": str(tmp_path), "HOME": str(tmp_path)}, "version")
    assert done.returncode == 2
    assert done.stderr == (
        "bazelw: error: there is no C++ compiler (gcc and g++) on PATH;"
        " install g++ 12 or newer: apt-get install g++\n"
    )
    assert not (tmp_path / ".cache").exists()


@pytest.mark.parametrize(
    ("environ", "part"),
    [
        ({"BAZELW_CACHE": "relative"}, "set BAZELW_CACHE to an absolute one"),
        ({"BAZELW_CACHE": "/with space"}, "has a space"),
        ({"BAZELW_PINS": "perhaps"}, "set it to strict, signed or off"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, environ: dict[str, str], part: str) -> None:
    done = _bazelw({"PATH": os.defpath, "HOME": str(tmp_path)} | environ, "version")
    assert done.returncode == 2
    assert part in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("linux", "aarch64")])
def test_another_kind_of_machine_is_refused(system: str, machine: str) -> None:
    with pytest.raises(SetupError, match="BAZELW_BAZEL"):
        require_supported_machine(system, machine)


def test_a_clone_in_a_path_with_a_space_is_refused() -> None:
    with pytest.raises(SetupError, match="another directory"):
        require_plain_workspace_path(Path("/home/me/my clone"))


def test_a_compiler_that_changes_has_another_identity(program: MakeProgram) -> None:
    answer = 'case "$1" in -print-prog-name=*) echo "${1#*=}";; *) echo "gcc %s";; esac'
    for name in ("gcc", "g++"):
        path = program(name, answer % "12.2").parent
    environ = {"PATH": f"{path}:/usr/bin:/bin"}
    first = compiler_identity(environ)
    assert compiler_identity(environ) == first
    program("g++", answer % "13.1")
    assert compiler_identity(environ) != first


def test_no_apt_names_the_way_round(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: None)
    with pytest.raises(SetupError, match="put a Bazel 7 or bazelisk on PATH"):
        bazel_apt(make_settings())
    with pytest.raises(SetupError, match=r"-//tests/browser/\.\.\."):
        browser_apt(make_settings())


def test_an_interpreter_without_venv_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = subprocess.CompletedProcess([], 0, stdout="False True\n")
    monkeypatch.setattr(environments.subprocess, "run", lambda *_, **__: answer)
    with pytest.raises(SetupError, match=r"apt-get install python3\.\d+-venv"):
        environments._require_interpreter(environments.RECIPES["tools"])


@pytest.mark.parametrize(
    ("output", "part"),
    [
        ("E: Failed: Temporary failure resolving 'mirror'", "no network while downloading"),
        ("NewConnectionError: Connection refused", "no network while downloading"),
        ("OSError: [Errno 28] No space left on device", "the disk became full while downloading"),
        ("noise\nE: Unable to locate package x\n", "E: Unable to locate package x; ask for help"),
    ],
)
def test_the_output_of_a_failed_tool_becomes_one_line(
    tmp_path: Path, program: MakeProgram, output: str, part: str
) -> None:
    log = tmp_path / "log" / "step.log"
    text = tmp_path / "output"
    text.write_text(output)
    tool = program("tool", f"cat {text} >&2; exit 100")
    with pytest.raises(SetupError) as raised:
        run([tool], environ=os.environ, log=log, doing="downloading", remedy="ask for help")
    assert part in str(raised.value)
    assert "\n" not in str(raised.value)
    assert output in log.read_text()


def test_a_suitable_bazel_on_path_is_used(
    make_settings: MakeSettings, program: MakeProgram, progress: Progress
) -> None:
    found = program("bazel", "echo bazel 7.4.1")
    assert find_bazel(make_settings(PATH=f"{found.parent}:/usr/bin:/bin"), progress) == found


@pytest.mark.parametrize("body", ["echo bazel 8.0.0", "echo bazel 7.0.2", "exit 3"])
def test_a_told_bazel_that_does_not_suit_is_refused(
    make_settings: MakeSettings, program: MakeProgram, progress: Progress, body: str
) -> None:
    told = program("mine", body)
    with pytest.raises(SetupError, match="BAZELW_BAZEL names"):
        find_bazel(make_settings(BAZELW_BAZEL=str(told)), progress)
