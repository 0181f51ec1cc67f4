"""The files of an output directory, and putting them there whole.

::

    ptoas/<kernel>.pto, ptoas/<kernel>.cpp    assembler text and what the assembler made of it
    kernels/<aiv|aic>/<kernel>.cpp            the kernel's C++ file
    extern/<package>/<n>/...                  C++ files of the user that extern kernels are made of
    orchestration/<entry>.cpp                 the orchestration's C++ file
    kernel_config.py, kernel_config.json      which sources make the program
    compiled_meta.json                        how the program is called
    debug/run.py                              runs the directory again

Where the assembler is skipped there are ``kernels/<aiv|aic>/<kernel>.pto`` in place of the C++, and
no tables. A program with several orchestration functions is such a tree for each of them, in
``next_levels/<name>/``, and nothing beside.

These files hold no absolute path and no time: equal programs give equal bytes. What a build tells
of itself where it is asked to, in ``passes_dump/`` and ``report/``, may hold both.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pypto.runtime.directory_kind import CHILDREN, MARKERS
from pypto.runtime.kernel_config import KernelConfig


@contextmanager
def staged(output_dir: Path) -> Iterator[Path]:
    """A fresh directory beside `output_dir` that becomes it when the block ends without error.

    An `output_dir` that holds files keeps those that the new tree does not replace. After an
    error `output_dir` is as it was.
    """
    output_dir.parent.mkdir(parents=True, exist_ok=True)
    staging = _fresh_directory(output_dir.parent, f".{output_dir.name}.", ".tmp")
    try:
        yield staging
        try:
            staging.rename(output_dir)
        except OSError:
            if not output_dir.is_dir():
                raise
            _merge(staging, output_dir)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _fresh_directory(parent: Path, prefix: str, suffix: str = "") -> Path:
    """A new directory. Unlike mkdtemp's it has the mode that new directories have here."""
    while True:
        path = parent / f"{prefix}{secrets.token_hex(6)}{suffix}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path


def _merge(staging: Path, output_dir: Path) -> None:
    """Each file replaces its namesake at once; the tables that name the others come last.

    Markers that the new tree does not have would make its directories stand for an older build.
    """
    children = (staging / CHILDREN).iterdir() if (staging / CHILDREN).is_dir() else ()
    for build in (staging, *children):
        for name in MARKERS:
            if not (build / name).exists():
                (output_dir / build.relative_to(staging) / name).unlink(missing_ok=True)
    files = sorted(path for path in staging.rglob("*") if path.is_file())
    files.sort(key=lambda path: path.name in MARKERS)
    for path in files:
        target = output_dir / path.relative_to(staging)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)


def write_files(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files under a directory by relative name, text in UTF-8 with plain newlines."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def kernel_config_module(config: KernelConfig) -> str:
    """The text of `kernel_config.py`: the same table as `kernel_config.json`, as a module."""
    orchestration = config.orchestration
    runtime = {"runtime": config.runtime.value, "aicpu_thread_num": config.aicpu_thread_num}
    entry = {
        "source": orchestration.source,
        "function_name": orchestration.function_name,
        "signature": [d.value for d in orchestration.signature],
    }
    kernels = [
        {
            "func_id": kernel.func_id,
            "name": kernel.name,
            "source": kernel.source,
            "core_type": kernel.core_type,
            "signature": [d.value for d in kernel.signature],
            **({"external": True} if kernel.external else {}),
            **(
                {"extra_include_dirs": list(kernel.extra_include_dirs)}
                if kernel.extra_include_dirs
                else {}
            ),
        }
        for kernel in config.kernels
    ]
    lines = [
        '"""The sources of a compiled program; paths are relative to this file."""',
        "",
        f"RUNTIME_CONFIG = {runtime!r}",
        "",
        f"ORCHESTRATION = {entry!r}",
        "",
        "KERNELS = [",
        *(f"    {kernel!r}," for kernel in kernels),
        "]",
    ]
    return "\n".join(lines) + "\n"


def unique_directory(base: Path, name: str) -> Path:
    """A path `<base>/<name>_<unique>` that did not exist; the directory is made."""
    base.mkdir(parents=True, exist_ok=True)
    return _fresh_directory(base, f"{name}_")
