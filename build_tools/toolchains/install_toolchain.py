"""Puts a copy of a toolchain directory somewhere else.

    ./bazelw run //toolchains/zig:install -- DIR

The copy appears whole under its name or not at all, and every file of it was held against the
inventory on its way. A directory that has the same toolchain already is left as it is.

On a terminal it says how far it is; into a pipe it writes one JSON object:

    {"directory": DIR, "identity": DIR/identity.json, "files": n, "bytes": n,
     "status": "installed" or "present"}

Exit status 0, 1 where the toolchain cannot be installed, 2 for a wrong command line.

Runs on a bare interpreter (-I -S): standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

_IDENTITY = "identity.json"
_INVENTORY = "inventory.txt"
_CHUNK = 1 << 20


class InstallError(Exception):
    """The toolchain cannot be installed there; says why and what to do."""


@dataclass(frozen=True, slots=True)
class Item:
    """A line of the inventory; ``size`` is bytes."""

    path: str
    sha256: str
    size: int
    executable: bool


def read_inventory(toolchain: Path) -> list[Item]:
    """The files that the toolchain directory has beside the two that describe it."""
    items = []
    for line in (toolchain / _INVENTORY).read_text(encoding="utf-8").splitlines():
        sha256, size, mark, _, path = line.split(" ", 4)
        items.append(Item(path, sha256, int(size), mark == "x"))
    return items


def install(toolchain: Path, target: Path, progress: Callable[[int], None]) -> bool:
    """Copy ``toolchain`` to ``target``; False if the same one is there already.

    ``progress`` is called with the number of bytes copied so far. Raises InstallError.
    """
    items = read_inventory(toolchain)
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        _require_same(toolchain, items, target)
        return False
    staged = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        staged.mkdir(parents=True)
        done = 0
        for item in items:
            _copy(toolchain / item.path, staged / item.path, item)
            done += item.size
            progress(done)
        for name in (_INVENTORY, _IDENTITY):
            shutil.copyfile(toolchain / name, staged / name)
        staged.rename(target)
    except OSError as error:
        raise InstallError(
            f"{error.filename or target}: {error.strerror}; choose another directory"
        ) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return True


def _copy(source: Path, copy: Path, item: Item) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with source.open("rb") as reader, copy.open("xb") as writer:
        while chunk := reader.read(_CHUNK):
            digest.update(chunk)
            writer.write(chunk)
    if digest.hexdigest() != item.sha256:
        raise InstallError(f"{source} is not what the inventory says; build the toolchain again")
    copy.chmod(0o755 if item.executable else 0o644)


def _require_same(toolchain: Path, items: Sequence[Item], target: Path) -> None:
    remedy = "remove it or choose another directory"
    if not (target / _IDENTITY).is_file():
        raise InstallError(f"{target} exists and has no toolchain; {remedy}")
    for name in (_IDENTITY, _INVENTORY):
        present = target / name
        if not present.is_file() or present.read_bytes() != (toolchain / name).read_bytes():
            raise InstallError(f"{target} has another toolchain ({name} differs); {remedy}")
    expected: Mapping[str, Item] = {item.path: item for item in items}
    found = set(_files(target)) - {_IDENTITY, _INVENTORY}
    for path in sorted(found ^ expected.keys()):
        what = "is missing" if path in expected else "does not belong to it"
        raise InstallError(f"{target} has this toolchain and {path} {what}; {remedy}")
    for item in items:
        present = target / item.path
        with present.open("rb") as stream:
            same = hashlib.file_digest(stream, "sha256").hexdigest() == item.sha256
        if not same or (item.executable and not os.access(present, os.X_OK)):
            raise InstallError(f"{target} has this toolchain and {item.path} differs; {remedy}")


def _files(root: Path) -> Iterator[str]:
    for parent, _, names in os.walk(root):
        for name in names:
            yield (Path(parent) / name).relative_to(root).as_posix()


def _meter(terminal: TextIO, total: int) -> Callable[[int], None]:
    """Shows megabytes on one line of ``terminal``."""
    shown = -1

    def show(done: int) -> None:
        nonlocal shown
        if (megabytes := done // 1_000_000) != shown:
            shown = megabytes
            terminal.write(f"\r\x1b[K{megabytes} of {total // 1_000_000} MB")
            terminal.flush()

    return show


def main(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Install and report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="bazelw run //toolchains/zig:install --",
        description="Copy the toolchain and what identifies it into a new directory.",
    )
    parser.add_argument("--toolchain", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("directory", type=Path, help="a directory that does not exist, or is empty")
    arguments = parser.parse_args(words)
    # Bazel runs programs in their runfiles; what the user wrote counts from where the user is.
    here = Path(environ.get("BUILD_WORKING_DIRECTORY") or Path.cwd())
    target = Path(os.path.normpath(here / arguments.directory))
    items = read_inventory(arguments.toolchain)
    total = sum(item.size for item in items)
    terminal = sys.stderr.isatty()
    try:
        installed = install(
            arguments.toolchain,
            target,
            _meter(sys.stderr, total) if terminal else lambda _: None,
        )
    except InstallError as error:
        sys.stderr.write(("\n" if terminal else "") + f"error: {error}\n")
        return 1
    identity = target / _IDENTITY
    if sys.stdout.isatty():
        sys.stdout.write(
            f"\r\x1b[K{'installed' if installed else 'already there'}: {target}\n"
            f"use it with PYPTO_CACHE_IDENTITY=hermetic PYPTO_TOOLCHAIN={identity}\n"
        )
        return 0
    report = {
        "directory": str(target),
        "identity": str(identity),
        "files": len(items),
        "bytes": total,
        "status": "installed" if installed else "present",
    }
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
