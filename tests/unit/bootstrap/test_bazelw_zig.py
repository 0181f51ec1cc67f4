"""zig is unpacked from a wheel that is held against its lock file."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from bootstrap import locked_wheels, zig_compiler
from bootstrap.failure import SetupError
from bootstrap.locked_wheels import download_wheels, lock_file
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.steps import is_complete
from bootstrap.zig_compiler import ensure_zig, zig_path

MakeSettings = Callable[..., Settings]
MakeProgram = Callable[[str, str], Path]


def test_the_lock_has_a_wheel_for_each_machine() -> None:
    text = lock_file("zig").read_text(encoding="utf-8")
    assert len(re.findall(r"^ziglang==\S+ \\$", text, re.MULTILINE)) == 1
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) == 2


def test_pip_is_told_to_take_nothing_but_what_is_locked(
    make_settings: MakeSettings,
    program: MakeProgram,
    progress: Progress,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tools = tmp_path / "tools"
    (tools / "bin").mkdir(parents=True)
    said = tmp_path / "said"
    body = f'echo "$@" > {said}; for last; do :; done; touch "$last/b.whl" "$last/a.whl"'
    (tools / "bin" / "python").symlink_to(program("python", body))
    monkeypatch.setattr(locked_wheels, "ensure_environment", lambda *_: tools)
    found = download_wheels("zig", tmp_path, make_settings(), progress)
    assert [path.name for path in found] == ["a.whl", "b.whl"]
    words = said.read_text().split()
    assert words[:4] == ["-I", "-m", "pip", "download"]
    assert {"--require-hashes", "--no-deps", "--only-binary=:all:"} <= set(words)
    assert words[words.index("-r") + 1] == str(lock_file("zig"))


@pytest.fixture
def give_wheel(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes the next download a wheel whose compiler is a shell script of this body."""

    def give(body: str) -> None:
        def download(name: str, directory: Path, *_: object) -> list[Path]:
            wheel = directory / f"{name}lang-1.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr("ziglang/zig", f"#!/bin/sh\n{body}\n")
                archive.writestr("ziglang/lib/std/std.zig", "// std")
            return [wheel]

        monkeypatch.setattr(zig_compiler, "download_wheels", download)

    return give


def test_the_compiler_is_unpacked_and_can_be_run(
    make_settings: MakeSettings, progress: Progress, give_wheel: Callable[[str], None]
) -> None:
    settings = make_settings()
    give_wheel("echo 1.0")
    directory = ensure_zig(settings, progress)
    assert directory == zig_path(settings)
    assert (directory / "ziglang" / "zig").stat().st_mode & 0o777 == 0o755
    assert (directory / "ziglang" / "lib" / "std" / "std.zig").is_file()
    assert (directory / "cache").is_dir()
    assert list(directory.glob("*.whl")) == []
    assert is_complete(directory)


def test_a_compiler_that_does_not_start_is_said_and_not_kept(
    make_settings: MakeSettings, progress: Progress, give_wheel: Callable[[str], None]
) -> None:
    settings = make_settings()
    give_wheel("echo 'error: Exec format'; exit 1")
    with pytest.raises(SetupError) as raised:
        ensure_zig(settings, progress)
    assert raised.value.problem == "trying zig failed: error: Exec format"
    assert "--config=hermetic" in raised.value.remedy
    assert not is_complete(zig_path(settings))
    give_wheel("echo 1.0")
    assert is_complete(ensure_zig(settings, progress))
