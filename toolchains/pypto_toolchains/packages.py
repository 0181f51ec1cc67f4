"""The identity of imported Python packages: what their files hold, as found where they are.

Distribution metadata is never consulted. It says what was installed once, not what was imported:
an editable install or a `PYTHONPATH` entry pairs other sources with it.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from pypto_toolchains.regular_file import open_regular

# Sources, and the data that code generation reads beside them.
SUFFIXES = (".py", ".json", ".in", ".tmpl")
SKIPPED_DIRECTORIES = ("__pycache__", "_sdk")

_DIGEST = hashlib.sha256().digest_size

FileHasher = Callable[[list[str]], list[bytes]]
"""Absolute paths to the SHA-256 of each file's content, in the same order; raises OSError."""

SourceHashes = Callable[[], list[tuple[bytes, bytes]]]
"""Waits for the sources of every directory, sorted; raises OSError.

For each directory the relative names with a NUL between each two, and as many SHA-256 digests.
"""

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
        fd = open_regular(path)
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

    def wait() -> list[tuple[bytes, bytes]]:
        found = []
        for directory in directories:
            names: list[str] = []
            _collect(directory, "", names)
            names.sort(key=os.fsencode)
            digests = hash_files([f"{directory}/{name}" for name in names])
            found.append((os.fsencode("\0".join(names)), b"".join(digests)))
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
    for package, (names, digests) in zip(packages, hashes(), strict=True):
        found[package.name] = _combined(names, digests)
        for owner, part in parts:
            if owner == package.name:
                found[f"{owner}/{part}"] = _combined(*_below(os.fsencode(part), names, digests))
    return found


def _below(directory: bytes, names: bytes, digests: bytes) -> tuple[bytes, bytes]:
    """The files below a directory: sorted names with one beginning follow each other."""
    every = names.split(b"\0")
    first, last = (bisect.bisect_left(every, directory + end) for end in (b"/", b"0"))
    return b"\0".join(every[first:last]), digests[first * _DIGEST : last * _DIGEST]


def _combined(names: bytes, digests: bytes) -> str:
    # Names have no NUL and digests one length, so no two lists give the same bytes.
    return hashlib.sha256(b"pypto.package/v1\0" + names + b"\0\0" + digests).hexdigest()


def _collect(directory: str, prefix: str, names: list[str]) -> None:
    for name in os.listdir(directory):
        if name.endswith(SUFFIXES):
            names.append(prefix + name)
        elif "." not in name and name not in SKIPPED_DIRECTORIES:
            # Asking for the type first would cost as much as trying.
            with contextlib.suppress(NotADirectoryError):
                _collect(f"{directory}/{name}", f"{prefix}{name}/", names)
