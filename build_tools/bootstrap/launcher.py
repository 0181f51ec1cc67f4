"""bazelw's main: prepare what the command needs, then run Bazel.

bazelw <any Bazel command line>
bazelw setup                make Bazel, both environments and all that tests need, run nothing
bazelw python ARGS...       the test environment's interpreter with the source tree's import roots
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bootstrap.command import Command, parse_command
from bootstrap.environments import RECIPES, ensure_environment, environment_path
from bootstrap.failure import SetupError
from bootstrap.find_bazel import find_bazel
from bootstrap.host import compiler_identity, require_plain_workspace_path
from bootstrap.inner_loop import link_outputs
from bootstrap.progress import Progress
from bootstrap.rcfile import write_bazelrc
from bootstrap.settings import Settings
from bootstrap.supplies import SUPPLIES

# What the build and its tests see of the environments; "tools" is for the set-up alone.
_VISIBLE = ("build", "test")
_ROOTS = ("pypto", "store", "toolchains")

# A line now and then where there is no terminal to draw on.
_PIPE_OPTIONS = ("--show_progress_rate_limit=15", "--noshow_loading_progress")


def main(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run bazelw for the workspace ``words[0]``; returns the exit status."""
    progress = Progress(sys.stderr)
    try:
        settings = Settings.from_environ(Path(words[0]), environ)
        return _run(list(words[1:]), settings, progress)
    except SetupError as error:
        progress.note(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        progress.note("interrupted; run the command again to go on")
        return 130


def _run(words: list[str], settings: Settings, progress: Progress) -> int:
    require_plain_workspace_path(settings.workspace)
    if words[:1] == ["python"]:
        return _run_python(words[1:], settings, progress)
    if words[:1] == ["setup"]:
        return _set_up(settings, progress)
    command = parse_command(words)
    compiler = compiler_identity(settings.environ)
    bazel = find_bazel(settings, progress)
    for name in command.environments:
        ensure_environment(RECIPES[name], settings, progress)
    for supply in SUPPLIES:
        if supply.is_wanted(command):
            supply.ensure(settings, progress)
    return _run_bazel(command, bazel, compiler, settings)


def _set_up(settings: Settings, progress: Progress) -> int:
    compiler_identity(settings.environ)
    bazel = find_bazel(settings, progress)
    for name in _VISIBLE:
        ensure_environment(RECIPES[name], settings, progress)
    for supply in SUPPLIES:
        supply.ensure(settings, progress)
    progress.note(f"ready: {bazel}")
    return 0


def _run_python(arguments: list[str], settings: Settings, progress: Progress) -> int:
    python = ensure_environment(RECIPES["test"], settings, progress) / "bin" / "python"
    roots = os.pathsep.join(str(settings.workspace / root) for root in _ROOTS)
    os.execve(python, [str(python), *arguments], dict(settings.environ) | {"PYTHONPATH": roots})  # noqa: S606


def _run_bazel(command: Command, bazel: Path, compiler: str, settings: Settings) -> int:
    directories = {
        f"PYPTO_{name.upper()}_ENV": environment_path(RECIPES[name], settings) for name in _VISIBLE
    }
    directories |= {supply.variable: supply.path(settings) for supply in SUPPLIES}
    directories["PYPTO_BAZEL"] = bazel  # for tests that have it build something else
    writable = {
        supply.config: supply.path(settings) / supply.writable
        for supply in SUPPLIES
        if supply.config and supply.writable
    }
    rc = write_bazelrc(settings, directories, compiler, writable)
    argv = [
        str(bazel),
        f"--output_user_root={settings.cache / 'out'}",
        f"--bazelrc={rc}",
        *command.startup,
        *([command.name] if command.name else []),
        *(_PIPE_OPTIONS if command.has_targets and not sys.stderr.isatty() else ()),
        *command.arguments,
    ]
    environ = dict(settings.environ)
    if not command.makes_outputs:
        os.execve(bazel, argv, environ)  # noqa: S606 - the program this launcher is for
    status = _wait(subprocess.Popen(argv, env=environ))
    if status == 0:
        link_outputs(settings.workspace)
    return status


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for Bazel, which stops in its own way and reports; returns what a shell would.

    A terminal sends an interrupt to Bazel as well. A request to terminate came to us alone.
    """
    handlers = {
        signal.SIGINT: lambda *_: None,
        signal.SIGTERM: lambda *_: process.terminate(),
    }
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        status = process.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status
