"""Which Bazel to run: one that is told, one that is found, or Debian's."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bootstrap.debian_bazel import ensure_debian_bazel
from bootstrap.failure import SetupError
from bootstrap.host import require_supported_machine
from bootstrap.progress import Progress
from bootstrap.settings import Settings

# MODULE.bazel and the repository rules use what 7.1 brought; 8 drops rules that 7 has built in.
_MAJOR, _LEAST_MINOR = 7, 1
_ANSWER_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Bazel:
    """The program to run and, if it is one we set up, the directory it lives in."""

    program: Path
    prefix: Path | None


def find_bazel(settings: Settings, progress: Progress) -> Bazel:
    """Find a Bazel that can build this workspace, or set one up."""
    if settings.bazel and settings.bazel != "debian":
        return Bazel(_told(settings.bazel, settings), None)
    if settings.bazel is None:
        for name in ("bazel", "bazelisk"):
            found = shutil.which(name, path=settings.environ.get("PATH"))
            if found and _suits(_version(Path(found), settings)):
                return Bazel(Path(found), None)
    require_supported_machine()
    program = ensure_debian_bazel(settings, progress)
    return Bazel(program, program.parent)


def _told(name: str, settings: Settings) -> Path:
    found = shutil.which(name, path=settings.environ.get("PATH"))
    if not found:
        raise SetupError(
            f"BAZELW_BAZEL names {name!r}, which is no program", "set it to a Bazel 7 or unset it"
        )
    version = _version(Path(found), settings)
    if not _suits(version):
        raise SetupError(
            f"BAZELW_BAZEL names {name!r}, which is {version or 'no Bazel that starts'}",
            f"set it to a Bazel {_MAJOR}.{_LEAST_MINOR} or newer of that series, or unset it",
        )
    return Path(found)


def _suits(version: str | None) -> bool:
    numbers = re.match(r"bazel (\d+)\.(\d+)", version or "")
    return numbers is not None and int(numbers[1]) == _MAJOR and int(numbers[2]) >= _LEAST_MINOR


def _version(program: Path, settings: Settings) -> str | None:
    """What ``--version`` prints, or None where the program cannot say: bazelisk without network."""
    try:
        answer = subprocess.run(
            [program, "--version"],
            cwd=settings.workspace,
            env=dict(settings.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
