"""Which Bazel to run: one that is told, one that is found, or Debian's."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from bootstrap.debian_bazel import ensure_debian_bazel
from bootstrap.failure import SetupError
from bootstrap.host import require_supported_machine
from bootstrap.progress import Progress
from bootstrap.settings import Settings

# MODULE.bazel and the repository rules use what 7.1 brought; 8 drops rules that 7 has built in.
_MAJOR, _LEAST_MINOR = 7, 1
_ANSWER_SECONDS = 60


def find_bazel(settings: Settings, progress: Progress) -> Path:
    """The program to run: a Bazel that can build this workspace, found or set up."""
    if settings.bazel and settings.bazel != "debian":
        return _told(settings.bazel, settings)
    if settings.bazel is None:
        for name in ("bazel", "bazelisk"):
            found = shutil.which(name, path=settings.environ.get("PATH"))
            if found and _suits(_version(Path(found), settings)):
                return Path(found)
    require_supported_machine()
    return ensure_debian_bazel(settings, progress)


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
