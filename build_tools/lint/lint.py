"""Checks the source tree: `./bazelw run //build_tools/lint` (with `-- --fix` to mend what can be).

Reads the workspace itself and not Bazel's copy, so that no file has to be declared to be checked:
what git tracks, or would, is what is looked at.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_CXX = (".cc", ".cpp", ".h", ".hpp")
_STARLARK = (".bazel", ".bzl")
_PACKAGES = ("pypto", "pypto_store", "pypto_toolchains")


@dataclass(frozen=True, slots=True)
class Check:
    """One program over some files. ``fix`` is how it mends them, None where it cannot."""

    name: str
    argv: tuple[str, ...]
    fix: tuple[str, ...] | None = None
    environ: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check said."""

    check: Check
    passed: bool
    seconds: float
    output: str


def checks(root: Path, files: Sequence[str], tools: Path, scratch: Path) -> list[Check]:
    """Every check that applies; ``tools`` is the directory of the environment's programs."""
    python = [name for name in files if name.endswith((".py", ".pyi"))]
    cxx = [name for name in files if name.endswith(_CXX)]
    starlark = [name for name in files if name.endswith(_STARLARK)]
    ruff = str(tools / "ruff")
    mypy = (str(tools / "python"), "-m", "mypy", "--cache-dir", str(scratch / "mypy"))
    found = [
        Check(
            "ruff check",
            (ruff, "check", "--no-cache", "--quiet", *python),
            (ruff, "check", "--no-cache", "--quiet", "--fix", *python),
        ),
        Check(
            "ruff format",
            (ruff, "format", "--no-cache", "--quiet", "--diff", *python),
            (ruff, "format", "--no-cache", "--quiet", *python),
        ),
        Check("mypy", mypy),
        Check(
            "mypy bazelw",
            (*mypy, "--config-file=", "--strict", "-p", "bootstrap"),
            environ=(("MYPYPATH", str(root / "build_tools")),),
        ),
        # Beside the words of pyproject.toml: the header TE of HTTP.
        Check("codespell", (str(tools / "codespell"), "--ignore-words-list", "te", *files)),
    ]
    if cxx:
        clang_format = str(tools / "clang-format")
        found.append(
            Check(
                "clang-format",
                (clang_format, "--dry-run", "-Werror", *cxx),
                (clang_format, "-i", *cxx),
            )
        )
    if buildifier := shutil.which("buildifier"):
        found.append(
            Check(
                "buildifier",
                (buildifier, "-mode=check", "-lint=warn", *starlark),
                (buildifier, "-lint=fix", *starlark),
            )
        )
    return found


def _run(check: Check, argv: Sequence[str], root: Path) -> Outcome:
    started = time.monotonic()
    done = subprocess.run(
        argv,
        cwd=root,
        env={**os.environ, **dict(check.environ)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Outcome(check, done.returncode == 0, time.monotonic() - started, done.stdout)


def _source_files(root: Path) -> list[str]:
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = sorted({name for name in listing.split("\0") if name})
    return [name for name in names if (root / name).is_file() and not (root / name).is_symlink()]


def main() -> int:
    """Run the checks; 1 if one failed."""
    parser = argparse.ArgumentParser(description="Checks the source tree.")
    parser.add_argument("--fix", action="store_true", help="mend what the tools can mend")
    arguments = parser.parse_args()
    root = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
    # The test environment's; resolving the link would lead to the interpreter it was made from.
    tools = Path(sys.executable).parent
    todo = checks(root, _source_files(root), tools, Path.home() / ".cache" / "pypto-lint")

    if arguments.fix:
        for check in todo:
            if check.fix:
                _run(check, check.fix, root)
    failed = False
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for outcome in pool.map(lambda check: _run(check, check.argv, root), todo):
            verdict = "ok" if outcome.passed else "FAILED"
            print(f"{outcome.check.name:12} {verdict} ({outcome.seconds:.1f} s)", flush=True)
            if not outcome.passed:
                print(outcome.output, flush=True)
                failed = True
    if not shutil.which("buildifier"):
        print("buildifier   not on PATH, skipped")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
