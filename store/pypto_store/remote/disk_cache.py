"""file:// — a directory laid out as Bazel's disk cache, beside a Bazel that may be using it.

    <root>/cas/<2 hex>/<sha256>     a blob
    <root>/ac/<2 hex>/<sha256>      an entry, by the SHA-256 of its action
    <root>/tmp/<uuid>               a file that is being written

A file gets its name when all of it is on disk, by a rename over whatever has that name: readers see
the one or the other. What a killed process leaves in tmp/ is never read. Bazel's collector drops
what was not used for long and goes by the modification time, so what is read is touched.

Modes are left to the umask, as Bazel leaves them: who shares such a directory sets its permissions.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from pypto_store.outcomes import reason_of
from pypto_store.remote.blob_store import (
    CHUNK,
    ENTRY_LIMIT,
    BlobDigest,
    BlobStream,
    RemoteProtocolError,
    RemoteRefused,
    RemoteUnavailable,
    Source,
    check_entry_size,
    read_at_most,
    source_of,
)
from pypto_store.remote.one_by_one import OneByOneBlobs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO

    from pypto_store.digest import Digest
    from pypto_store.remote_config import RemoteConfig

_REFUSALS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_OTHER_THINGS = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO})


class DiskCache:
    """The engine of file://. A root that is not there is an empty one until something is stored."""

    def __init__(self, config: RemoteConfig) -> None:
        directory = _Directory(config)
        self.blobs = _DiskBlobs(directory)
        self.entries = _DiskEntries(directory)

    def close(self) -> None:
        """Nothing is held open."""


class _DiskBlobs(OneByOneBlobs):
    def __init__(self, directory: _Directory) -> None:
        self._directory = directory

    def get(self, digest: BlobDigest) -> BlobStream | None:
        return self._directory.open("cas", digest.sha256, f"get blob {digest}")

    def put(self, digest: BlobDigest, source: Source) -> None:
        self._directory.store("cas", digest.sha256, source, f"put blob {digest}")

    def is_missing(self, digest: BlobDigest) -> bool:
        size = self._directory.size("cas", digest.sha256, f"find blob {digest}")
        return size != digest.size


class _DiskEntries:
    def __init__(self, directory: _Directory) -> None:
        self._directory = directory

    def get(self, name: BlobDigest) -> bytes | None:
        operation = f"get entry {name}"
        stream = self._directory.open("ac", name.sha256, operation)
        if stream is None:
            return None
        with closing(stream):
            entry = read_at_most(stream, ENTRY_LIMIT + 1)
        if len(entry) > ENTRY_LIMIT:
            raise self._directory.not_a_cache(operation, f"it has more than {ENTRY_LIMIT} bytes")
        return entry

    def put(self, name: BlobDigest, entry: bytes) -> None:
        check_entry_size(entry)
        self._directory.store("ac", name.sha256, source_of(entry), f"put entry {name}")


class _Directory:
    """The files of a disk cache, with every error of the system made a fault of the remote."""

    def __init__(self, config: RemoteConfig) -> None:
        # Paths are bytes, which need not be UTF-8.
        assert config.directory is not None  # of every file://
        self._root = config.directory
        self._url = config.shown_url
        self._touching = not config.readonly

    def _place(self, kind: str, sha256: Digest) -> str:
        return os.path.join(self._root, kind, sha256.hex[:2], sha256.hex)

    def open(self, kind: str, sha256: Digest, operation: str) -> BlobStream | None:
        """A stream of the file; None when there is none."""
        with self.faults(operation):
            try:
                # Not blocking: somebody may have put a pipe there.
                flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
                descriptor = os.open(self._place(kind, sha256), flags)
            except FileNotFoundError:
                return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise self.not_a_cache(operation, "it is no regular file")
        file = os.fdopen(descriptor, "rb", buffering=0)
        if self._touching:
            with suppress(OSError):  # another user's; only its own age suffers
                os.utime(descriptor)
        return _FileStream(file, self, operation)

    def size(self, kind: str, sha256: Digest, operation: str) -> int | None:
        """The size of the regular file; None when there is none."""
        with self.faults(operation):
            try:
                status = os.lstat(self._place(kind, sha256))
            except FileNotFoundError:
                return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def store(self, kind: str, sha256: Digest, source: Source, operation: str) -> None:
        """Write what the source gives, and give it its name when it is on disk."""
        place = self._place(kind, sha256)
        scratch = os.path.join(self._root, "tmp")
        temporary = os.path.join(scratch, str(uuid.uuid4()))
        with closing(source()) as stream:
            with self.faults(operation):
                os.makedirs(os.path.dirname(place), exist_ok=True)
                os.makedirs(scratch, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                descriptor = os.open(temporary, flags, 0o666)
            try:
                self._fill(descriptor, stream, operation)
                with self.faults(operation):
                    # The directory is not synced: a name that a crash takes is a miss, no more.
                    os.replace(temporary, place)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise

    def _fill(self, descriptor: int, stream: BlobStream, operation: str) -> None:
        """Write the stream into a new file, close it, and wait until the disk has it."""
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            while piece := stream.read(CHUNK):
                with self.faults(operation):
                    left = memoryview(piece)
                    while left:
                        left = left[file.write(left) :]
            with self.faults(operation):
                os.fsync(file.fileno())

    @contextmanager
    def faults(self, operation: str) -> Iterator[None]:
        """Make an error of the system a fault of the remote."""
        try:
            yield
        except OSError as error:
            # A path that is not UTF-8 must not make a message that cannot be written.
            reason = reason_of(error).encode(errors="replace").decode()
            if error.errno in _OTHER_THINGS:
                raise self.not_a_cache(operation, reason) from error
            if error.errno in _REFUSALS:
                raise RemoteRefused(
                    url=self._url,
                    operation=operation,
                    reason=reason,
                    remedy="have permission given, or set RemoteConfig.readonly",
                ) from error
            raise RemoteUnavailable(
                url=self._url,
                operation=operation,
                reason=reason,
                remedy="see that the directory is mounted and its disk is sound and not full",
            ) from error

    def not_a_cache(self, operation: str, reason: str) -> RemoteProtocolError:
        """What is there is something else than a disk cache would have."""
        return RemoteProtocolError(
            url=self._url,
            operation=operation,
            reason=reason,
            remedy="see that the directory is a disk cache of Bazel, and remove what is none",
        )


class _FileStream:
    """An open file whose errors are faults of the remote."""

    def __init__(self, file: FileIO, directory: _Directory, operation: str) -> None:
        self._file = file
        self._directory = directory
        self._operation = operation

    def read(self, size: int, /) -> bytes:
        with self._directory.faults(self._operation):
            return self._file.read(size) or b""

    def close(self) -> None:
        self._file.close()
