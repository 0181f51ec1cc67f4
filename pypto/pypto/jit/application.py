"""The application's own inputs of the key: extra sources by content, and a fingerprint."""

from __future__ import annotations

import os
import stat

from pypto_store.digest import Digest
from pypto_store.records import RecordBuilder
from pypto_toolchains.packages import FileHasher

_MAX_DEPTH = 64


class ExtraSourceError(Exception):
    """A configured source is missing or cannot be read; the text names its path."""


def application_digest(
    paths: tuple[str, ...], fingerprint: str | None, hasher: FileHasher
) -> Digest:
    """The digest of the files at `paths` as they are now, and of `fingerprint`.

    A file counts by its content. A directory counts by the Python sources below it, by relative
    name and content; links to directories are not followed. Where the paths are is no part of it.

    Raises ExtraSourceError naming the first path that cannot be read.
    """
    told = () if fingerprint is None else (fingerprint.encode("utf-8", "surrogatepass"),)
    record = RecordBuilder("pypto.application/v1").sequence("fingerprint", told)
    record.sequence("sources", [source_fields(path, hasher) for path in paths])
    return record.finish()


def source_fields(path: str, hasher: FileHasher) -> tuple[str, tuple[tuple[bytes, bytes], ...]]:
    """What the digest covers of one path: its kind, and the name and SHA-256 of each file.

    Raises ExtraSourceError.
    """
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISDIR(mode):
            _check_file(path, mode)
            return ("file", ((b"", hasher([path])[0]),))
        names: list[bytes] = []
        _collect(path, "", names, 0)
        names.sort()
        digests = hasher([f"{path}/{os.fsdecode(name)}" for name in names])
    except OSError as error:
        raise ExtraSourceError(
            f"extra source {error.filename or path} cannot be read: {error.strerror}"
        ) from error
    return ("directory", tuple(zip(names, digests, strict=True)))


def _collect(directory: str, prefix: str, names: list[bytes], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ExtraSourceError(f"extra source {directory} is nested more than {_MAX_DEPTH} deep")
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    _collect(entry.path, f"{prefix}{entry.name}/", names, depth + 1)
            elif entry.name.endswith(".py"):
                if not entry.is_file(follow_symlinks=False):
                    _check_file(entry.path, os.stat(entry.path).st_mode)
                names.append(os.fsencode(prefix + entry.name))


def _check_file(path: str, mode: int) -> None:
    """Refuse what has no content of its own: reading a pipe or a device may never end."""
    if not stat.S_ISREG(mode):
        raise ExtraSourceError(f"extra source {path} is neither a file nor a directory")
