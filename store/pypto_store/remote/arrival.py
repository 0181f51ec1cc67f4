"""Bringing an entry from a remote into a directory, or leaving that directory as it was.

Nothing of the payload is asked for before everything about it is decided (`inventory`), and no
path is used that the decision did not see. What is in memory at a time is one batch of small
blobs, or one piece of a large one; blobs that several files share are fetched once.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from pypto_store.entry import write_all
from pypto_store.layout import DIRECTORY_MODE, EXECUTABLE_MODE, FILE_MODE
from pypto_store.remote.batches import SMALL_BLOB, batches
from pypto_store.remote.blob_store import CHUNK, RejectedEntry
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.inventory import EntryReader, blob_of
from pypto_store.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.manifest import FileRecord, Manifest
    from pypto_store.remote.blob_store import BlobDigest, BlobStore, BlobStream, Engine
    from pypto_store.remote.trust import Trust

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def fetch_entry(
    engine: Engine,
    url: str,
    key: ArtifactKey,
    spec: ArtifactSpec,
    directory: str,
    trust: Trust,
) -> Manifest | None:
    """Fill the empty `directory` with the payload of an entry; its manifest, or None for a miss.

    A miss is also an entry of which a blob is gone. engine: one of `open_engine`, whose blobs are
    verified, or a wrapper of one. url: the remote, for faults.

    RejectedEntry for an entry that is none of `key` and `spec`, that `trust` does not accept, or
    that has names which the system cannot write;
    any other RemoteFault as the engine raises it; OSError when the files cannot be written, or
    when `directory` is not an empty directory. Without a manifest, `directory` is empty again.
    """
    name = entry_name(key, spec).digest
    entry = engine.entries.get(name)
    if entry is None:
        return None
    inventory = EntryReader(engine.blobs, url, name).decide(entry, key, spec, trust)
    if inventory is None:
        return None
    for record in inventory.manifest.files:
        if not _can_be_spelled(record.path):
            raise RejectedEntry(
                url=url,
                operation=f"use entry {name}",
                reason=f"{record.path!a} is no name of a file here, where names are written in "
                f"{sys.getfilesystemencoding()}",
                remedy="run Python with names in UTF-8 (PYTHONUTF8=1)",
            )
    if os.listdir(directory):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), directory)
    filled = False
    try:
        filled = _Filling(engine.blobs, directory, inventory.manifest.files).complete()
    finally:
        if not filled:
            empty(directory)
    return inventory.manifest if filled else None


def _can_be_spelled(path: str) -> bool:
    """Whether a file of that name has the same name for those who write names in UTF-8."""
    try:
        return os.fsencode(path) == path.encode()
    except UnicodeEncodeError:
        return False


class _Filling:
    """Writes the files of a decided inventory below a directory that nobody else writes into."""

    def __init__(self, blobs: BlobStore, directory: str, files: Iterable[FileRecord]) -> None:
        self._blobs = blobs
        self._directory = directory
        self._files: dict[BlobDigest, list[FileRecord]] = {}
        for record in files:
            self._files.setdefault(blob_of(record), []).append(record)

    def complete(self) -> bool:
        """Write every file; False as soon as a blob is not there."""
        self._make_directories()
        large = [digest for digest in self._files if digest.size > SMALL_BLOB]
        for batch in batches(digest for digest in self._files if digest.size <= SMALL_BLOB):
            if not self._write_batch(batch):
                return False
        return all(self._write_stream(digest) for digest in large)

    def _make_directories(self) -> None:
        parents = set()
        for records in self._files.values():
            for record in records:
                parent = record.path.rpartition("/")[0]
                while parent and parent not in parents:
                    parents.add(parent)
                    parent = parent.rpartition("/")[0]
        # Each is new, so that none of them is a link to another place.
        for parent in sorted(parents):
            os.mkdir(f"{self._directory}/{parent}", DIRECTORY_MODE)

    def _write_batch(self, batch: list[BlobDigest]) -> bool:
        # The empty blob is there without being asked for.
        found = self._blobs.get_many([digest for digest in batch if digest.size])
        for digest in batch:
            data = found.get(digest) if digest.size else b""
            if data is None:
                return False
            for record in self._files[digest]:
                sink = self._create(record)
                try:
                    write_all(sink, data)
                finally:
                    os.close(sink)
        return True

    def _write_stream(self, digest: BlobDigest) -> bool:
        stream = self._blobs.get(digest)
        if stream is None:
            return False
        first, *others = self._files[digest]
        with closing(stream):
            self._write_from(stream, first)
        for record in others:
            with open(f"{self._directory}/{first.path}", "rb", buffering=0) as copied:
                self._write_from(copied, record)
        return True

    def _write_from(self, stream: BlobStream, record: FileRecord) -> None:
        sink = self._create(record)
        try:
            while piece := stream.read(CHUNK):
                write_all(sink, piece)
        finally:
            os.close(sink)

    def _create(self, record: FileRecord) -> int:
        mode = EXECUTABLE_MODE if record.executable else FILE_MODE
        return os.open(f"{self._directory}/{record.path}", _NEW_FILE, mode)


def empty(directory: str) -> None:
    """Remove everything below a directory that was empty before."""
    with suppress(OSError):
        for name in os.listdir(directory):
            place = f"{directory}/{name}"
            if os.path.isdir(place) and not os.path.islink(place):
                remove_tree(place)
            else:
                with suppress(OSError):
                    os.unlink(place)
