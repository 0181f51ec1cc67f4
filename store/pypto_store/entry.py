"""A validated entry, as its users hold it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_store.paths import MANIFEST_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from io import FileIO

    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.manifest import FileRecord, Manifest

_CHUNK = 1024 * 1024


class EntryChanged(RuntimeError):
    """A payload file no longer holds the bytes that were validated.

    Entries are immutable; someone wrote into the store, or the disk is failing.
    """


@dataclass(frozen=True, slots=True)
class Entry:
    """One published artifact whose manifest and every payload file were validated by a lookup.

    The store never rewrites a slot, but disks fail and people edit. What is read through this
    object is compared with the manifest first; whoever hands a path below it to somebody else, a
    loader for example, asks `verify` about it right before. Offline cleaning may remove the slot
    once its users are gone.
    """

    directory: str
    manifest: Manifest
    _kept: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    @property
    def path(self) -> Path:
        """The slot's directory; read it, never write into it."""
        return Path(self.directory)

    @property
    def key(self) -> ArtifactKey:
        """The key it answers."""
        return self.manifest.key

    @property
    def spec(self) -> ArtifactSpec:
        """What it is."""
        return self.manifest.spec

    def read(self, path: str) -> bytes:
        """The validated bytes of one payload file.

        KeyError if the inventory does not have it; EntryChanged if the file is another one now;
        OSError if it cannot be read. Small files come from memory.
        """
        kept = self._kept.get(path)
        if kept is not None:
            return kept
        parts: list[bytes] = []
        self._check(self._record(path), parts.append)
        return b"".join(parts)

    def open(self, path: str) -> FileIO:
        """One payload file, for whoever compares what it reads with the manifest's record.

        KeyError if the inventory does not have it; EntryChanged if it is no regular file any more;
        OSError if it cannot be opened.
        """
        return os.fdopen(self._open(self._record(path)), "rb", buffering=0)

    def verify(self, path: str) -> None:
        """Read one payload file again and compare it with what was validated.

        For whoever hands its path on, to a loader for example, some time after the lookup. KeyError
        if the inventory does not have it; EntryChanged if it is another one now; OSError if it
        cannot be read.
        """
        self._check(self._record(path), lambda _: None)

    def materialize(self, destination: Path) -> None:
        """Copy the payload (without the manifest) into `destination`, made if need be.

        Copies, never links: the receiver may write into them. All files get one modification
        time, so that no tool takes one for older than another. FileExistsError if a file is
        already there; EntryChanged if the entry is no longer what was validated. Then the files
        written so far are gone again.
        """
        target = os.fspath(destination)
        stamp = os.stat(f"{self.directory}/{MANIFEST_NAME}", follow_symlinks=False).st_mtime_ns
        os.makedirs(target, exist_ok=True)
        written: list[str] = []
        try:
            for record in self.manifest.files:
                place = f"{target}/{record.path}"
                if "/" in record.path:
                    os.makedirs(os.path.dirname(place), exist_ok=True)
                self._copy(record, place, stamp, written)
        except BaseException:
            for place in written:
                with contextlib.suppress(OSError):
                    os.unlink(place)
            raise

    def _copy(self, record: FileRecord, place: str, stamp: int, written: list[str]) -> None:
        mode = 0o777 if record.executable else 0o666
        sink = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        written.append(place)
        try:
            self._check(record, lambda part: write_all(sink, part))
            os.utime(sink, ns=(stamp, stamp))
        finally:
            os.close(sink)

    def _record(self, path: str) -> FileRecord:
        record = self.manifest.find(path)
        if record is None:
            raise KeyError(path)
        return record

    def _check(self, record: FileRecord, consume: Callable[[bytes], object]) -> None:
        """Read a file piece by piece, and compare it at the end with what was validated."""
        found, size = hashlib.sha256(), 0
        source = self._open(record)
        try:
            # No more than there should be: room for a whole piece takes longer to make than a
            # small file to read.
            piece = min(_CHUNK, record.size + 1)
            while part := os.read(source, piece):
                found.update(part)
                size += len(part)
                consume(part)
        finally:
            os.close(source)
        if size != record.size or found.hexdigest() != record.sha256:
            raise EntryChanged(
                f"{self.directory}/{record.path} has changed since it was validated; "
                "do not write into a store, or check the disk"
            )

    def _open(self, record: FileRecord) -> int:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        path = f"{self.directory}/{record.path}"
        descriptor = os.open(path, flags)
        regular = False
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        finally:
            if not regular:
                os.close(descriptor)
        if not regular:
            raise EntryChanged(f"{path} is no regular file any more")
        return descriptor


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`; OSError as os.write raises it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
