"""The identity of imported Python packages: what their files hold, as found where they are.

Distribution metadata is never consulted. It says what was installed once, not what was imported:
an editable install or a `PYTHONPATH` entry pairs other sources with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

# Sources, and the data that code generation reads beside them.
SUFFIXES = (".py", ".json", ".in", ".tmpl")
SKIPPED_DIRECTORIES = ("__pycache__", "_sdk")

FileHasher = Callable[[list[str]], list[bytes]]
"""Absolute paths to the SHA-256 of each file's content, in the same order; raises OSError."""

SourceHashes = Callable[[], list[list[tuple[str, bytes]]]]
"""Waits for the (relative name, SHA-256) pairs of every directory's sources; raises OSError."""

SourceHasher = Callable[[list[str]], SourceHashes]
"""Begins to hash the sources below directories (absolute paths); raises nothing."""


@dataclass(frozen=True, slots=True)
class PackageRoot:
    """An imported package: its import name and the directory it was imported from."""

    name: str
    directory: str


def hash_files(paths: list[str]) -> list[bytes]:
    """The plain Python `FileHasher`."""
    digests = []
    for path in paths:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = hashlib.sha256()
            # One read beyond the size proves the end without trusting the size.
            size = os.fstat(fd).st_size
            while chunk := os.read(fd, size + 1):
                content.update(chunk)
        finally:
            os.close(fd)
        digests.append(content.digest())
    return digests


def hash_sources(directories: list[str]) -> SourceHashes:
    """The plain Python `SourceHasher`: it hashes when it is waited for."""

    def wait() -> list[list[tuple[str, bytes]]]:
        found = []
        for directory in directories:
            names: list[str] = []
            _collect(directory, "", names)
            digests = hash_files([f"{directory}/{name}" for name in names])
            found.append(list(zip(names, digests, strict=True)))
        return found

    return wait


def package_digest(package: PackageRoot, hasher: SourceHasher = hash_sources) -> str:
    """SHA-256, in hex, over every source of `package`: relative name and content, sorted.

    Raises OSError if a directory or a file cannot be read.
    """
    return package_digests((package,), (), hasher([package.directory]))[package.name]


def package_digests(
    packages: tuple[PackageRoot, ...],
    parts: tuple[tuple[str, str], ...],
    hashes: SourceHashes,
) -> dict[str, str]:
    """The digests of several packages, whose directories `hashes` was begun for in this order.

    `parts` are (package, subdirectory) pairs whose own digests are wanted too; they are found
    under ``package/subdirectory``. Raises OSError as `package_digest` does.
    """
    found = {}
    for package, files in zip(packages, hashes(), strict=True):
        files.sort()
        found[package.name] = _combined(files, "")
        for owner, part in parts:
            if owner == package.name:
                found[f"{owner}/{part}"] = _combined(files, f"{part}/")
    return found


def _combined(files: list[tuple[str, bytes]], prefix: str) -> str:
    chosen = [file for file in files if file[0].startswith(prefix)]
    # Names have no NUL and digests one length, so no two lists give the same bytes.
    names = "\0".join([name for name, _ in chosen]).encode("utf-8", "surrogateescape")
    digests = b"".join([digest for _, digest in chosen])
    return hashlib.sha256(b"pypto.package/v1\0" + names + b"\0\0" + digests).hexdigest()


def _collect(directory: str, prefix: str, names: list[str]) -> None:
    for name in os.listdir(directory):
        if name.endswith(SUFFIXES):
            names.append(prefix + name)
        elif "." not in name and name not in SKIPPED_DIRECTORIES:
            # Asking for the type first would cost as much as trying.
            with contextlib.suppress(NotADirectoryError):
                _collect(f"{directory}/{name}", f"{prefix}{name}/", names)
