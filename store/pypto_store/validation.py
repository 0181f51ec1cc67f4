"""Proving that a directory is exactly what its manifest says.

The real tree is enumerated: a file too many is as wrong as one too few or one changed byte. All
opens are relative to directory descriptors and follow no link, so an entry that is renamed away
meanwhile is still read whole.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeAlias

from pypto_store.manifest import SIZE_LIMIT, FileRecord, Manifest, ManifestError, parse
from pypto_store.paths import MANIFEST_NAME, RESERVED_NAMES, SIGNATURE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pypto_store.keys import ArtifactKey, ArtifactSpec, State

# O_NONBLOCK: opening a FIFO that someone put into an entry must not wait for its writer.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_CHUNK = 256 * 1024
KEEP_FILE = 4 * 1024  # bytes; larger files are hashed, not kept
KEEP_TOTAL = 1024 * 1024

# What the file system says of something of the wrong kind, rather than of a failing disk.
_WRONG_KIND = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR})

_scratch = threading.local()

# Names in each directory of an entry, by the directory's path; None marks a subdirectory.
_Tree: TypeAlias = "dict[str, dict[str, FileRecord | None]]"


class SlotFault(Exception):
    """Why a slot is no valid entry; `path` is the payload file at fault, if it is one."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


def open_slot(directory: str) -> int | None:
    """A descriptor of the slot's directory, or None when nothing is there.

    SlotFault when something else stands there, OSError when that cannot be found out.
    """
    try:
        return os.open(directory, _DIRECTORY_FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            os.lstat(directory)  # raises if a parent is at fault: that is the storage's trouble
            raise SlotFault("the slot is not a directory") from None
        raise


def read_manifest(slot: int, key: ArtifactKey | None, spec: ArtifactSpec | None) -> Manifest:
    """Read the manifest of an open slot; SlotFault unless it is valid and the expected one."""
    data = read_bounded(slot, MANIFEST_NAME, SIZE_LIMIT)
    try:
        return parse(data, key=key, spec=spec)
    except ManifestError as error:
        raise SlotFault(f"{MANIFEST_NAME}: {error}", MANIFEST_NAME) from None


def read_bounded(directory: int, name: str, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; SlotFault for anything else."""
    return read_and_close(_open_file(directory, name, name), name, limit)


def read_and_close(descriptor: int, name: str, limit: int) -> bytes:
    """The bytes of an open file, as `read_bounded` gives them; `name` is for the fault."""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SlotFault(f"{name!r} is not a regular file", name)
        if status.st_size > limit:
            raise SlotFault(f"{name!r} is larger than {limit} bytes", name)
        data = os.read(descriptor, status.st_size + 1)
        while len(data) < status.st_size:
            more = os.read(descriptor, status.st_size - len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)


def read_checked(directory: int, record: FileRecord, limit: int) -> bytes:
    """The bytes of one payload file, checked against its record."""
    data = read_bounded(directory, record.path, limit)
    if len(data) != record.size or hashlib.sha256(data).hexdigest() != record.sha256:
        raise SlotFault(f"{record.path!r} has changed", record.path)
    return data


def validate_slot(
    slot: int, key: ArtifactKey, spec: ArtifactSpec | None, state: State
) -> tuple[Manifest, dict[str, bytes]]:
    """Validate an open slot completely; its manifest and the bytes of its small files.

    SlotFault says why it is no entry of `key` in `state` (and of `spec`, if given).
    """
    manifest = read_manifest(slot, key, spec)
    if manifest.spec.state is not state:
        raise SlotFault(f"{MANIFEST_NAME}: state is {manifest.spec.state.value}", MANIFEST_NAME)
    return manifest, validate_payload(slot, manifest.files)


class Validator(Protocol):
    """Who says whether an open slot holds a valid entry; store and tests know no other difference.

    Both raise SlotFault, whose reason and path depend on the slot alone and not on the validator,
    and OSError where the storage cannot be read.
    """

    def validate(
        self, slot: int, key: ArtifactKey, spec: ArtifactSpec | None, state: State
    ) -> tuple[Manifest, dict[str, bytes]]:
        """As `validate_slot`."""
        ...

    def read_file(
        self, slot: int, key: ArtifactKey, state: State, path: str, limit: int
    ) -> bytes | None:
        """One payload file of an entry of which nothing else than the manifest is checked.

        At most `limit` bytes; None if the manifest is of another state or lists no such file.
        """
        ...


class PythonValidator:
    """Validates with nothing but the standard library."""

    def validate(
        self, slot: int, key: ArtifactKey, spec: ArtifactSpec | None, state: State
    ) -> tuple[Manifest, dict[str, bytes]]:
        """As `validate_slot`."""
        return validate_slot(slot, key, spec, state)

    def read_file(
        self, slot: int, key: ArtifactKey, state: State, path: str, limit: int
    ) -> bytes | None:
        """As Validator has it."""
        manifest = read_manifest(slot, key, None)
        record = manifest.find(path)
        if manifest.spec.state is not state or record is None:
            return None
        return read_checked(slot, record, limit)


PYTHON_VALIDATOR = PythonValidator()


def validate_payload(slot: int, files: Iterable[FileRecord]) -> dict[str, bytes]:
    """Check every payload file and that there is nothing else; the bytes of the small ones."""
    tree: _Tree = {"": {}}
    for record in files:
        parent, _, name = record.path.rpartition("/")
        children = tree.get(parent)
        if children is None:
            children = _grow(tree, parent)
        children[name] = record
    check = _PayloadCheck(tree)
    check.directory(slot, "")
    return check.kept


def _grow(tree: _Tree, directory: str) -> dict[str, FileRecord | None]:
    """Add a directory (and those above it) to the expected tree."""
    created = tree[directory] = {}
    while directory:
        parent, _, name = directory.rpartition("/")
        known = parent in tree
        tree.setdefault(parent, {})[name] = None
        if known:
            break
        directory = parent
    return created


class _PayloadCheck:
    """One pass over a real tree against the expected one; collects the small files it reads."""

    def __init__(self, tree: _Tree) -> None:
        self.kept: dict[str, bytes] = {}
        self._budget = KEEP_TOTAL
        self._tree = tree
        self._buffer = _buffer()
        self._vector = [self._buffer]

    def directory(self, descriptor: int, prefix: str) -> None:
        """Check one directory and everything below it."""
        expected = self._tree[prefix]
        self._check_names(descriptor, prefix, expected)
        # The loop of every hit: names are looked up once and a small file takes no further call.
        buffer, vector, kept = self._buffer, self._vector, self.kept
        readv, close, sha256 = os.readv, os.close, hashlib.sha256
        for name, record in expected.items():
            if record is None:
                self._subdirectory(descriptor, name, f"{prefix}/{name}" if prefix else name)
                continue
            path, size, digest, executable = record
            file = _open_file(descriptor, name, path)
            try:
                if executable or size >= _CHUNK:
                    self._check_status(file, record)
                # The buffer is larger than the file should be: a longer one shows by its count.
                if size >= _CHUNK or readv(file, vector) != size:
                    self._in_pieces(file, record)
                    continue
                if sha256(buffer[:size]).hexdigest() != digest:
                    self._refuse("", path, "has changed")
                if size <= KEEP_FILE and size <= self._budget:
                    self._budget -= size
                    kept[path] = bytes(buffer[:size])
            finally:
                close(file)

    def _check_names(
        self, descriptor: int, prefix: str, expected: dict[str, FileRecord | None]
    ) -> None:
        found = 0
        with os.scandir(descriptor) as entries:
            for entry in entries:
                name = entry.name
                if name in expected:
                    found += 1
                    # That a directory is one, opening it will tell. The kind of a file usually
                    # comes with its name and saves a system call per file.
                    if expected[name] is not None and not entry.is_file(follow_symlinks=False):
                        self._refuse(prefix, name, "is not a regular file")
                elif prefix or name not in RESERVED_NAMES:
                    self._refuse(prefix, name, "is not in the inventory")
                elif name == SIGNATURE_NAME and not entry.is_file(follow_symlinks=False):
                    self._refuse(prefix, name, "is not a regular file")
        if found != len(expected):
            missing = expected.keys() - set(os.listdir(descriptor))
            self._refuse(prefix, min(missing, default="something"), "is missing")

    def _refuse(self, prefix: str, name: str, what: str) -> NoReturn:
        path = f"{prefix}/{name}" if prefix else name
        raise SlotFault(f"{path!r} {what}", path)

    def _subdirectory(self, descriptor: int, name: str, path: str) -> None:
        try:
            child = os.open(name, _DIRECTORY_FLAGS, dir_fd=descriptor)
        except OSError as error:
            if error.errno in _WRONG_KIND:
                raise SlotFault(f"{path!r} is not a directory", path) from None
            raise
        try:
            self.directory(child, path)
        finally:
            os.close(child)

    def _check_status(self, descriptor: int, record: FileRecord) -> None:
        status = os.fstat(descriptor)
        if status.st_size != record.size:
            self._refuse("", record.path, f"has {status.st_size} bytes, not {record.size}")
        # One way only: some builders make every output executable.
        if record.executable and not status.st_mode & 0o111:
            self._refuse("", record.path, "is not executable")

    def _in_pieces(self, descriptor: int, record: FileRecord) -> None:
        """Hash a large file, or one whose first read did not give exactly what it should have."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        found = hashlib.sha256()
        total = 0
        while total <= record.size and (count := os.readv(descriptor, self._vector)):
            found.update(self._buffer[:count])
            total += count
        if total != record.size or found.hexdigest() != record.sha256:
            self._refuse("", record.path, "has changed")


def _open_file(directory: int, name: str, path: str) -> int:
    try:
        return os.open(name, _FILE_FLAGS, dir_fd=directory)
    except FileNotFoundError:
        raise SlotFault(f"{path!r} is missing", path) from None
    except OSError as error:
        if error.errno in _WRONG_KIND:
            raise SlotFault(f"{path!r} is not a regular file", path) from None
        raise


def _buffer() -> memoryview:
    # One per thread: hashing releases the interpreter lock while it reads the buffer. Reusing it
    # saves the page faults of a fresh one, a tenth of a small entry's validation.
    view: memoryview | None = getattr(_scratch, "view", None)
    if view is None:
        view = _scratch.view = memoryview(bytearray(_CHUNK))
    return view
