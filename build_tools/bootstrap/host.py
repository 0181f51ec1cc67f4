"""Checks of this machine that come before any download."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bootstrap.failure import SetupError

# The helpers of a C++ driver whose replacement changes what it makes.
_HELPERS = ("cc1plus", "as", "ld", "collect2")


def require_supported_machine(
    system: str = sys.platform, machine: str = platform.machine()
) -> None:
    """Raise SetupError unless this is Linux on x86-64."""
    if system != "linux" or machine not in ("x86_64", "AMD64"):
        raise SetupError(
            f"this is {system} on {machine}, and the build is made for Linux on x86-64",
            "use such a machine or container, or set BAZELW_BAZEL to a Bazel 7 to try anyway",
        )


def require_plain_workspace_path(workspace: Path) -> None:
    """Raise SetupError where Bazel would read the workspace's own path as several words."""
    if any(character.isspace() for character in str(workspace)):
        raise SetupError(
            f"the path {str(workspace)!r} has a space in it", "clone into another directory"
        )


def compiler_identity(environ: Mapping[str, str]) -> str:
    """A digest of the host's C++ driver and its helpers, for the key of every action.

    Bazel's own description of the host compiler holds its path and not what is there, so a disk
    cache would outlive an upgrade of the compiler.
    """
    path = environ.get("PATH")
    driver = environ.get("CXX") or "g++"
    # What Bazel's C++ configuration runs is `gcc`, which finds libstdc++ only with g++ installed.
    found = shutil.which("gcc", path=path), shutil.which(driver, path=path)
    if None in found:
        raise SetupError(
            "there is no C++ compiler (gcc and g++) on PATH",
            "install g++ 12 or newer: apt-get install g++",
        )
    digest = hashlib.sha256()
    for program in found:
        assert program is not None
        digest.update(_ask(program, "--version", environ))
        for helper in _HELPERS:
            where = _ask(program, f"-print-prog-name={helper}", environ).decode().strip()
            resolved = shutil.which(where, path=path)
            digest.update(helper.encode())
            if resolved:
                status = Path(resolved).resolve().stat()
                digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()


def _ask(program: str, question: str, environ: Mapping[str, str]) -> bytes:
    try:
        return subprocess.run(
            [program, question],
            env=dict(environ),
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(
            f"the C++ compiler {program} does not answer {question}",
            "install g++ 12 or newer: apt-get install g++",
        ) from error
