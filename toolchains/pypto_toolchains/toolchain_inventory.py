"""The list of a hermetic toolchain's files, and whether they are what it says.

Grammar, in bytes::

    inventory  = *line                     ; strictly ascending by path
    line       = sha256 SP size SP mode SP component SP path LF
    mode       = "x" / "-"                 ; whether the file has to be executable
    path       = relative, normal, without LF

Every directory that a path begins with belongs to the toolchain as a whole: a file in it that the
list lacks is as wrong as one that was changed, because it may be found before another. A component
is known by the digest of its lines. Files may be symbolic links to their content, as Bazel makes
them, and executable without having to be.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pypto_toolchains.packages import FileHasher
from pypto_toolchains.regular_file import open_regular

_MAX_BYTES = 1 << 26

_LINE = re.compile(
    rb"([0-9a-f]{64}) (0|[1-9][0-9]{0,17}) ([x-]) ([a-z_]{1,64}) ([^\0\n]{1,4096})\Z"
)
_ABNORMAL = re.compile(r"(?:\A|/)(?:\.{0,2})(?:/|\Z)")


class InventoryError(Exception):
    """A list that does not follow its grammar, or files that do not follow the list."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file: the SHA-256 of its content in hex, its size in bytes, and whether it executes."""

    sha256: str
    size: int
    executable: bool


@dataclass(frozen=True, slots=True)
class Inventory:
    """The files by path, and the digest of each component that has any."""

    files: Mapping[str, ListedFile]
    digests: Mapping[str, str]

    @classmethod
    def parse(cls, data: bytes) -> Inventory:
        """The list that the bytes are. Raises InventoryError naming the line."""
        files: dict[str, ListedFile] = {}
        digests: dict[str, hashlib._Hash] = {}
        last = b""
        if data[-1:] not in (b"", b"\n"):
            raise InventoryError("its last line is incomplete")
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            match = _LINE.match(line)
            if match is None:
                raise InventoryError(f"line {number} does not follow the grammar")
            sha256, size, mode, component, raw = match.groups()
            path = os.fsdecode(raw)
            if _ABNORMAL.search(path):
                raise InventoryError(f"line {number}: {path!r} is not a normal relative path")
            if raw <= last:
                raise InventoryError(f"line {number}: {path!r} is not in ascending order")
            last = raw
            files[path] = ListedFile(sha256.decode(), int(size), mode == b"x")
            digest = digests.setdefault(component.decode(), hashlib.sha256())
            digest.update(line + b"\n")
        return cls(files, {name: digest.hexdigest() for name, digest in digests.items()})

    def check(self, directory: str, hasher: FileHasher) -> None:
        """Read every file below `directory`. Raises InventoryError for the first that differs."""
        paths = list(self.files)
        for path, listed in self.files.items():
            try:
                status = os.stat(f"{directory}/{path}")
            except OSError as error:
                raise InventoryError(f"{path} is missing ({error.strerror})") from error
            if not stat.S_ISREG(status.st_mode):
                raise InventoryError(f"{path} is no regular file")
            if status.st_size != listed.size:
                raise InventoryError(f"{path} was changed")
            if listed.executable and not status.st_mode & 0o100:
                raise InventoryError(f"{path} is not executable any more")
        try:
            digests = hasher([f"{directory}/{path}" for path in paths])
            found = sorted(_below(directory, self._tops()))
        except OSError as error:
            raise InventoryError(f"{error.filename or directory}: {error.strerror}") from error
        for path, digest in zip(paths, digests, strict=True):
            if digest.hex() != self.files[path].sha256:
                raise InventoryError(f"{path} was changed")
        for path in found:
            if path not in self.files:
                raise InventoryError(f"{path} was added")

    def _tops(self) -> list[str]:
        return sorted({path.partition("/")[0] for path in self.files if "/" in path})


def read_inventory(path: str, sha256: str) -> Inventory:
    """The list in the file at `path`, whose content has to have the digest. InventoryError."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InventoryError(f"cannot be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise InventoryError(f"is larger than {_MAX_BYTES} bytes")
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InventoryError("is not the one that the description was written for")
    return Inventory.parse(data)


def _below(directory: str, tops: list[str]) -> Iterator[str]:
    """Every path below directories that is no directory; links to directories are followed."""
    waiting = [(top, frozenset[tuple[int, int]]()) for top in tops]
    while waiting:
        inner, above = waiting.pop()
        status = os.stat(f"{directory}/{inner}")
        here = (status.st_dev, status.st_ino)
        if here in above:
            raise InventoryError(f"{inner} leads back to a directory above it")
        with os.scandir(f"{directory}/{inner}") as entries:
            for entry in entries:
                path = f"{inner}/{entry.name}"
                if entry.is_dir():
                    waiting.append((path, above | {here}))
                else:
                    yield path
