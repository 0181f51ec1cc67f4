"""Writes the lock files anew: `python3 build_tools/bootstrap/relock.py [python|debian]`.

Python: for every interpreter and machine below, pip resolves the `.in` file, and each wheel it
would take is locked by its digest. Debian: what apt would download today is locked. Needs the
network; review the difference before committing it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from bootstrap import cache_servers, debian_bazel, debian_browser, debian_compilers  # noqa: E402
from bootstrap.apt import describe  # noqa: E402
from bootstrap.pins import format_lock  # noqa: E402
from bootstrap.progress import Progress  # noqa: E402
from bootstrap.settings import Settings  # noqa: E402

_WORKSPACE = Path(__file__).resolve().parents[2]
_PYTHONS = ("3.11", "3.12", "3.13")
_MACHINES = ("x86_64", "aarch64")
# What is offered for one machine alone.
_ONLY_FOR = {"buildgrid": ("x86_64",), "casd": ("x86_64",), "ptoas": ("x86_64",)}
# What is unpacked, and never installed with what it requires.
_ALONE = ("casd",)
_GLIBC = (*(f"manylinux_2_{minor}" for minor in range(41, 4, -1)), "manylinux2014")


def relock_python(name: str) -> None:
    """Write ``name``.lock from ``name``.in."""
    directory = _WORKSPACE / "build_tools" / "python"
    wheels: dict[str, set[str]] = defaultdict(set)
    for python in _PYTHONS:
        for machine in _ONLY_FOR.get(name, _MACHINES):
            for requirement, sha256 in _resolve(directory / f"{name}.in", python, machine):
                wheels[requirement].add(sha256)
    versions = defaultdict(set)
    for requirement in wheels:
        versions[requirement.partition("==")[0]].add(requirement)
    if clash := [pair for pair in versions.values() if len(pair) > 1]:
        raise SystemExit(
            f"different versions for different interpreters: {clash}; bound them in {name}.in"
        )
    lines = ["# Written by build_tools/bootstrap/relock.py."]
    for requirement in sorted(wheels):
        lines.append(f"{requirement} \\")
        lines.append(
            " \\\n".join(f"    --hash=sha256:{digest}" for digest in sorted(wheels[requirement]))
        )
    (directory / f"{name}.lock").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _resolve(requirements: Path, python: str, machine: str) -> list[tuple[str, str]]:
    platforms = [f"--platform={glibc}_{machine}" for glibc in _GLIBC]
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        result = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"),
                *("--ignore-installed", "--only-binary=:all:", f"--target={scratch}/target"),
                *(f"--report={report}", f"--python-version={python}", *platforms),
                *("-r", str(requirements)),
                *(["--no-deps"] if requirements.stem in _ALONE else []),
            ],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        if result.returncode:
            raise SystemExit(f"Python {python} on {machine}: {result.stderr}")
        rows = json.loads(report.read_text(encoding="utf-8"))["install"]
    return [
        (
            f"{_normal(row['metadata']['name'])}=={row['metadata']['version']}",
            row["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for row in rows
    ]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def relock_debian() -> None:
    """Write the Debian lock files from what the suite has now."""
    settings = Settings.from_environ(_WORKSPACE, os.environ)
    for recipe, apt in (
        (debian_bazel, debian_bazel.bazel_apt(settings)),
        (debian_browser, debian_browser.browser_apt(settings)),
        (cache_servers, cache_servers.cache_servers_apt(settings)),
        (debian_compilers, debian_compilers.compilers_apt(settings)),
    ):
        files = apt.download(recipe.PACKAGES, Progress(sys.stderr))
        recipe.LOCK.write_text(format_lock(describe(path) for path in files), encoding="utf-8")


if __name__ == "__main__":
    kinds = ["python", "debian"]
    wanted = sys.argv[1:] or kinds
    if not set(wanted) <= set(kinds):
        sys.exit(f"usage: relock.py [{'] ['.join(kinds)}]; both if none is named")
    if "python" in wanted:
        for lock in ("tools", "build", "test", "zig", "ptoas", "casd", "buildgrid"):
            relock_python(lock)
    if "debian" in wanted:
        relock_debian()
