"""The action KernelSources: writes the sources of the kernels that a configuration names.

    generate_sources --label LABEL --module MODULE --config FILE --tree [KERNEL]=DIR ...

As `python -m pypto.jit warm --sources-only` would, into a root for each kernel; `=DIR` alone takes
all of them. Exit status 2 for a configuration that cannot be carried out, 1 for kernels that do
not compile.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from kernel_cache_roots import ship
from pypto.jit.session import cache_stats
from pypto.jit.warm import Job, jobs_of, module_named
from pypto.jit.warmup_file import WarmupFile, WarmupFileError, load
from pypto_store import CacheConfig


class NotShared(Exception):
    """A kernel compiled and has no key under which programs would find it; says why."""


def main() -> int:
    """Run the action; gives the exit status."""
    options = _options()
    trees = {kernel: path.absolute() for kernel, path in options.tree}
    config = options.config.absolute()
    if toolchain := os.environ.get("PYPTO_TOOLCHAIN"):
        os.environ["PYPTO_TOOLCHAIN"] = str(Path(toolchain).absolute())
    with tempfile.TemporaryDirectory(prefix="pypto-kernel-cache-") as scratch:
        # Modules are found by the program's import path alone, and nothing is left in a directory
        # that others see.
        os.chdir(scratch)
        os.environ["PYPTO_PROG_BUILD_DIR"] = f"{scratch}/build"
        try:
            file = load(config)
            _check(file, options.config, [kernel for kernel in trees if kernel])
            # What a module prints is no error, and an action is heard only when it fails.
            with redirect_stdout(sys.stderr):
                jobs = _jobs(file, options.config, _module(options.module))
        except WarmupFileError as error:
            for problem in error.problems:
                _tell(options.label, problem.replace(str(config), str(options.config)))
            return 2
        failed = False
        for kernel, tree in trees.items():
            root = Path(scratch, "roots", kernel or "all")
            chosen = [job for job in jobs if kernel in ("", job.request.kernel)]
            problems = _generate(chosen, root)
            for name, problem in problems.items():
                _tell(options.label, f"kernel {name}: {problem}")
            failed |= bool(problems)
            if not problems:
                ship(root, tree)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    def tree(argument: str) -> tuple[str, Path]:
        kernel, _, path = argument.partition("=")
        return kernel, Path(path)

    parser = argparse.ArgumentParser()
    parser.add_argument("--label", required=True)
    parser.add_argument("--module", required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--tree", type=tree, action="append", required=True)
    return parser.parse_args()


def _module(name: str) -> ModuleType:
    try:
        return module_named(name)
    except WarmupFileError as error:
        if not isinstance(error.__cause__, ModuleNotFoundError):
            raise
        told = "deps has to have what is imported, and a library's imports decide by which name"
        raise WarmupFileError(*error.problems, told) from error


def _jobs(file: WarmupFile, config: Path, module: ModuleType) -> list[Job]:
    try:
        return jobs_of(file, module)
    except WarmupFileError as error:
        raise WarmupFileError(*(f"{config}: {problem}" for problem in error.problems)) from error


def _check(file: WarmupFile, config: Path, kernels: list[str]) -> None:
    """Refuse what a build cannot keep to, and names that only one side has."""
    problems = []
    if file.cache is not None:
        problems.append(f"{config}: cache is for the build to decide; leave it out")
    requested = list(dict.fromkeys(request.kernel for request in file.requests))
    if not requested:
        problems.append(f"{config}: requests is empty; name at least one kernel")
    for name in kernels:
        if name not in requested:
            problems.append(f"kernels has {name!r}, which {config} does not request")
    for name in requested if kernels else []:
        if name not in kernels:
            problems.append(f"{config} requests {name!r}, which kernels does not have; add it")
    if problems:
        raise WarmupFileError(*problems)


def _generate(jobs: list[Job], root: Path) -> Mapping[str, str]:
    """Fill a root with the sources of jobs; what went wrong, by kernel."""
    problems: dict[str, str] = {}
    for job in jobs:
        try:
            with redirect_stdout(sys.stderr):
                _compile(job, root)
        except NotShared as error:
            problems.setdefault(job.request.kernel, str(error))
        except Exception as error:  # noqa: BLE001 - one kernel's failure must not hide the others
            problems.setdefault(job.request.kernel, f"{type(error).__name__}: {error}")
    return problems


def _compile(job: Job, root: Path) -> None:
    config = replace(job.request.config, cache_config=CacheConfig(enabled=True, root=root))
    before = cache_stats()
    compiled = job.function.compile(config=config, **job.arguments)
    if compiled.artifact_key is not None:
        return
    now = cache_stats()
    if now.bypasses > before.bypasses:
        raise NotShared(f"it has no key: {now.last_bypass_reason}")
    if now.forced_rebuilds > before.forced_rebuilds:
        raise NotShared(
            "its run_config asks for diagnostics or for files in a place of its own, "
            "and such requests are never stored"
        )
    raise NotShared("it could not be stored; is there space in the directory for temporary files?")


def _tell(label: str, problem: str) -> None:
    print(f"error: {label}: {problem}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
