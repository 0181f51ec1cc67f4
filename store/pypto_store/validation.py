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
from typing import TYPE_CHECKING

from pypto_store.manifest import SIZE_LIMIT, FileRecord, Manifest, ManifestError, parse
from pypto_store.paths import MANIFEST_NAME, RESERVED_NAMES, SIGNATURE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pypto_store.keys import ArtifactKey, ArtifactSpec, State

# O_NONBLOCK: opening a FIFO that someone put into an entry must not wait for its writer.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_CHUNK = 256 * 1024
_KEEP_FILE = 32 * 1024  # bytes; larger files are hashed, not kept
_KEEP_TOTAL = 1024 * 1024

# What the file system says of something of the wrong kind, rather than of a failing disk.
_WRONG_KIND = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR})

_scratch = threading.local()


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
    descriptor = _open_file(directory, name, name)
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


def validate_payload(slot: int, files: Iterable[FileRecord]) -> dict[str, bytes]:
    """Check every payload file and that there is nothing else; the bytes of the small ones."""
    tree: dict[str, dict[str, FileRecord | None]] = {"": {}}
    for record in files:
        parent, _, name = record.path.rpartition("/")
        children = tree.get(parent)
        if children is None:
            children = _grow(tree, parent)
        children[name] = record
    kept: dict[str, bytes] = {}
    _validate_directory(slot, "", tree, kept, _KEEP_TOTAL)
    return kept


def _grow(
    tree: dict[str, dict[str, FileRecord | None]], directory: str
) -> dict[str, FileRecord | None]:
    """Add a directory (and those above it) to the expected tree; None marks a subdirectory."""
    created = tree[directory] = {}
    while directory:
        parent, _, name = directory.rpartition("/")
        known = parent in tree
        tree.setdefault(parent, {})[name] = None
        if known:
            break
        directory = parent
    return created


def _validate_directory(
    descriptor: int,
    prefix: str,
    tree: dict[str, dict[str, FileRecord | None]],
    kept: dict[str, bytes],
    budget: int,
) -> int:
    expected = tree[prefix]
    # Names only: kinds are checked by opening without following links.
    names = set(os.listdir(descriptor))
    if not prefix:
        if SIGNATURE_NAME in names:
            _check_signature(descriptor)
        names -= RESERVED_NAMES
    if names != expected.keys():
        _name_difference(prefix, names, expected.keys())
    for name, record in expected.items():
        if record is not None:
            budget -= _check_file(descriptor, name, record, kept, budget)
            continue
        path = f"{prefix}/{name}" if prefix else name
        try:
            child = os.open(name, _DIRECTORY_FLAGS, dir_fd=descriptor)
        except OSError as error:
            if error.errno in _WRONG_KIND:
                raise SlotFault(f"{path!r} is not a directory", path) from None
            raise
        try:
            budget = _validate_directory(child, path, tree, kept, budget)
        finally:
            os.close(child)
    return budget


def _name_difference(prefix: str, names: set[str], expected: Iterable[str]) -> None:
    where = f"{prefix}/" if prefix else ""
    wanted = set(expected)
    if missing := wanted - names:
        path = where + min(missing)
        raise SlotFault(f"{path!r} is missing", path)
    path = where + min(names - wanted)
    raise SlotFault(f"{path!r} is not in the inventory", path)


def _check_signature(slot: int) -> None:
    if not stat.S_ISREG(os.stat(SIGNATURE_NAME, dir_fd=slot, follow_symlinks=False).st_mode):
        raise SlotFault(f"{SIGNATURE_NAME!r} is not a regular file", SIGNATURE_NAME)


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


def _check_file(
    directory: int, name: str, record: FileRecord, kept: dict[str, bytes], budget: int
) -> int:
    """Check one file; returns the bytes kept of it."""
    path, size, sha256, executable = record
    descriptor = _open_file(directory, name, path)
    try:
        status = os.fstat(descriptor)
        mode = status.st_mode
        if not stat.S_ISREG(mode):
            raise SlotFault(f"{path!r} is not a regular file", path)
        if status.st_size != size:
            raise SlotFault(f"{path!r} has {status.st_size} bytes instead of {size}", path)
        # One way only: some builders make every output executable.
        if executable and not mode & 0o111:
            raise SlotFault(f"{path!r} is not executable", path)
        buffer = _buffer()
        if size < _CHUNK:
            count = os.readv(descriptor, [buffer])
            data = buffer[:count]
            found = hashlib.sha256(data)
            if count != size:
                count += _hash_rest(descriptor, buffer, found)
        else:
            data = buffer[:0]
            found = hashlib.sha256()
            count = _hash_rest(descriptor, buffer, found)
        if count != size or found.hexdigest() != sha256:
            raise SlotFault(f"{path!r} has changed", path)
        if size <= _KEEP_FILE and size <= budget and len(data) == size:
            kept[path] = bytes(data)
            return size
        return 0
    finally:
        os.close(descriptor)


def _hash_rest(descriptor: int, buffer: memoryview, found: hashlib._Hash) -> int:
    total = 0
    while count := os.readv(descriptor, [buffer]):
        found.update(buffer[:count])
        total += count
    return total
