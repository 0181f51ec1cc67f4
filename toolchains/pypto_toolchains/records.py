"""Where probe records are kept: small content-named files under a cache root."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
from dataclasses import dataclass

from pypto_store.layout import FILE_MODE, group_bits, make_directories, make_file

# An identity that rests on thousands of files takes some hundred KiB.
MAX_RECORD_BYTES = 1 << 20

ProbeRecord = tuple[str, bytes]
"""The name of a record (a digest in hex) and what it says."""


def sealed(body: bytes) -> bytes:
    """A record's bytes: a line with the SHA-256 of `body` in hex, then `body`."""
    return hashlib.sha256(body).hexdigest().encode("ascii") + b"\n" + body


def unsealed(content: bytes | None) -> bytes | None:
    """The body of a record, or None for one that is absent or was damaged."""
    if content is None:
        return None
    check, _, body = content.partition(b"\n")
    return body if check == hashlib.sha256(body).hexdigest().encode("ascii") else None


@dataclass(frozen=True, slots=True)
class ProbeRecords:
    """``<directory>/<digest>.json``, or nowhere when `directory` is None."""

    directory: str | None

    def load(self, digest: str) -> bytes | None:
        """The bytes kept under `digest`; None if there are none that can be read."""
        if self.directory is None:
            return None
        # O_NONBLOCK: a FIFO in its place must not wait for a writer; it reads as empty.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            fd = os.open(f"{self.directory}/{digest}.json", flags)
        except OSError:
            return None
        try:
            # One read beyond the size proves the end without trusting the size.
            size = os.fstat(fd).st_size
            content = os.read(fd, size + 1) if size <= MAX_RECORD_BYTES else b""
        except OSError:
            return None
        finally:
            os.close(fd)
        return content if len(content) == size else None

    def save(self, digest: str, content: bytes) -> bool:
        """Keep `content` under `digest`, whole or not at all; False if it could not be kept.

        More than MAX_RECORD_BYTES are not kept, because `load` would refuse them. Losing a record
        costs the next process a probe and nothing else, so no failure is raised and nothing is
        synced.
        """
        if self.directory is None or len(content) > MAX_RECORD_BYTES:
            return False
        if not _may_be_written(self.directory):
            return False
        temporary = f"{self.directory}/.tmp.{secrets.token_hex(8)}"
        try:
            group = group_bits(os.path.dirname(self.directory))
            make_directories(self.directory, group)
            flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = make_file(temporary, flags, FILE_MODE, group & ~0o020)
            try:
                if os.write(fd, content) != len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), temporary)
            finally:
                os.close(fd)
            os.rename(temporary, f"{self.directory}/{digest}.json")
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            return False
        return True


def _may_be_written(directory: str) -> bool:
    """Whether it is worth trying to write there: a read-only root is not even tried."""
    while not os.path.lexists(directory) and directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
    return os.access(directory, os.W_OK)
