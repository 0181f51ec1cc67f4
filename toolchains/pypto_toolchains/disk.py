"""What the identity of tools asks of the file system, so that it can be asked again.

An identity is worked out from a few kinds of questions and their answers. `WatchedDisk` keeps
them; when every one of them still has its answer, working it out again would give the same.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from pypto_toolchains.elf import MalformedElf, NotElf, native_identity
from pypto_toolchains.packages import FileHasher, hash_files
from pypto_toolchains.regular_file import open_regular
from pypto_toolchains.tree import tree_digest

Observation = Sequence[str]
"""A kind of question (a name of `QUESTIONS`), the path it is about, and the answer."""

_PRESENT, _ABSENT = "1", ""

# Of Python's library: what was made from it, what was installed beside it, and its tests.
_NO_MODULES = ("__pycache__", "dist-packages", "site-packages", "test")


class Disk(Protocol):
    """The questions. Paths are absolute, or relative to the process's directory."""

    def is_executable(self, path: str) -> bool:
        """Whether `path` is a regular file (links followed) this process may execute."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is something at `path`, links followed."""
        ...

    def link(self, path: str) -> str:
        """What the symbolic link at `path` says; empty if it is no link. OSError otherwise."""
        ...

    def resolved(self, path: str) -> str:
        """The path without any link."""
        ...

    def identity(self, path: str) -> str:
        """As `elf.native_identity`."""
        ...

    def sha256(self, path: str) -> str:
        """The digest of a regular file's content in hex. OSError, for anything else too."""
        ...

    def listing(self, path: str) -> str:
        """The names in a directory, sorted as bytes, a NUL between each two.

        Empty where there is no directory at `path`, as for one that holds nothing.
        """
        ...

    def tree(self, path: str) -> str:
        """The digest (see `tree`) of every file below a directory; empty where there is none."""
        ...

    def modules(self, path: str) -> str:
        """The same of a directory of Python's library, without what was made from it, installed
        beside it, or tests it."""
        ...


class SystemDisk:
    """The file system as it is. `hasher` is for many files at once."""

    def __init__(self, hasher: FileHasher = hash_files) -> None:
        self._hasher = hasher

    def is_executable(self, path: str) -> bool:
        """As Disk has it."""
        # Most candidates do not exist: one call decides those.
        return os.access(path, os.X_OK) and os.path.isfile(path)

    def exists(self, path: str) -> bool:
        """As Disk has it."""
        return os.access(path, os.F_OK)

    def link(self, path: str) -> str:
        """As Disk has it."""
        try:
            return os.readlink(path)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return ""
            raise

    def resolved(self, path: str) -> str:
        """As Disk has it."""
        return os.path.realpath(path)

    def identity(self, path: str) -> str:
        """As Disk has it."""
        return native_identity(path)

    def sha256(self, path: str) -> str:
        """As Disk has it."""
        fd = open_regular(path)
        try:
            content = hashlib.sha256()
            while chunk := os.read(fd, 1 << 16):
                content.update(chunk)
        finally:
            os.close(fd)
        return content.hexdigest()

    def listing(self, path: str) -> str:
        """As Disk has it."""
        try:
            return "\0".join(sorted(os.listdir(path), key=os.fsencode))
        except (FileNotFoundError, NotADirectoryError):
            return ""

    def tree(self, path: str) -> str:
        """As Disk has it."""
        return tree_digest(path, (), self._hasher)

    def modules(self, path: str) -> str:
        """As Disk has it."""
        return tree_digest(path, _NO_MODULES, self._hasher)


SYSTEM_DISK = SystemDisk()

QUESTIONS: dict[str, Callable[[Disk, str], str]] = {
    "executable": lambda disk, path: _PRESENT if disk.is_executable(path) else _ABSENT,
    "exists": lambda disk, path: _PRESENT if disk.exists(path) else _ABSENT,
    "link": lambda disk, path: disk.link(path),
    "resolved": lambda disk, path: disk.resolved(path),
    "identity": lambda disk, path: disk.identity(path),
    "sha256": lambda disk, path: disk.sha256(path),
    "listing": lambda disk, path: disk.listing(path),
    "tree": lambda disk, path: disk.tree(path),
    "modules": lambda disk, path: disk.modules(path),
}


class WatchedDisk:
    """Another disk, and every question it was asked with its answer. What raised is not kept:
    whoever gets no answer has no identity either. `known` are answers, by kind and path, that need
    not be asked for."""

    def __init__(self, disk: Disk, known: Mapping[tuple[str, str], str] | None = None) -> None:
        self._disk = disk
        self._known = known or {}
        self._answers: dict[tuple[str, str], str] = {}

    @property
    def observations(self) -> tuple[Observation, ...]:
        """What was asked, in the order of the first time."""
        return tuple((kind, path, answer) for (kind, path), answer in self._answers.items())

    def _ask(self, kind: str, path: str) -> str:
        answer = self._answers.get((kind, path))
        if answer is None:
            answer = self._known.get((kind, path))
            if answer is None:
                answer = QUESTIONS[kind](self._disk, path)
            self._answers[kind, path] = answer
        return answer

    def is_executable(self, path: str) -> bool:
        """As Disk has it."""
        return self._ask("executable", path) == _PRESENT

    def exists(self, path: str) -> bool:
        """As Disk has it."""
        return self._ask("exists", path) == _PRESENT

    def link(self, path: str) -> str:
        """As Disk has it."""
        return self._ask("link", path)

    def resolved(self, path: str) -> str:
        """As Disk has it."""
        return self._ask("resolved", path)

    def identity(self, path: str) -> str:
        """As Disk has it."""
        return self._ask("identity", path)

    def sha256(self, path: str) -> str:
        """As Disk has it."""
        return self._ask("sha256", path)

    def listing(self, path: str) -> str:
        """As Disk has it."""
        return self._ask("listing", path)

    def tree(self, path: str) -> str:
        """As Disk has it."""
        return self._ask("tree", path)

    def modules(self, path: str) -> str:
        """As Disk has it."""
        return self._ask("modules", path)


def read_whole(path: str, disk: Disk, limit: int) -> bytes:
    """The content of a file whose digest `disk` was asked for, so that it is looked at again.

    Raises OSError, for more than `limit` bytes too, and for a file that changes meanwhile: what is
    read has to be what the digest is of.
    """
    digest = disk.sha256(path)
    with os.fdopen(open_regular(path), "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", path)
    if hashlib.sha256(content).hexdigest() != digest:
        raise OSError(errno.EAGAIN, "changed while it was read", path)
    return content


def unchanged(observations: Iterable[Observation]) -> bool:
    """Whether every question has its answer still; one of an unknown kind has none."""
    for kind, path, answer in observations:
        ask = QUESTIONS.get(kind)
        try:
            if ask is None or ask(SYSTEM_DISK, path) != answer:
                return False
        except (OSError, ValueError, NotElf, MalformedElf):
            return False
    return True
