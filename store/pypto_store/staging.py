"""The staging directory of one publication: a tree that is an entry in all but its name.

Content that the store already has is linked in, everything else is written. What is linked was
read by nobody yet, so the whole tree is read back once before it becomes an entry.

Imported only on a miss.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pypto_store import crash_points, linux
from pypto_store.digest import Digest
from pypto_store.entry import write_all
from pypto_store.layout import (
    EXECUTABLE_MODE,
    FILE_MODE,
    Layout,
    make_directories,
    make_directory,
    make_file,
)
from pypto_store.manifest import FileRecord
from pypto_store.paths import MANIFEST_NAME
from pypto_store.validation import SlotFault, validate_payload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WRITE_NEW = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_READ_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CHUNK = 1024 * 1024
# New files kept open between the start of their writeback and their fsync.
_BATCH = 64


class UnfitPayload(Exception):
    """The build directory holds something that no entry may hold, or lacks what it must."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file of the build directory."""

    path: str
    executable: bool


def sync_directory(directory: str) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, _READ_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Link(NamedTuple):
    """A staged file that was linked, and the name that promised its content."""

    record: FileRecord
    blob: str


class Stage:
    """The staging directory of one publication.

    group: what the root's group may do, as permission bits.
    """

    def __init__(self, layout: Layout, directory: str, group: int) -> None:
        self._layout = layout
        self._directory = directory
        self._group = group
        self._foreign: frozenset[tuple[int, int]] = frozenset()
        self._directories = {"": directory}
        self._written: list[FileRecord] = []
        # Payload files that are links: to an indexed blob, or to a file of this stage.
        self._linked: dict[str, _Link] = {}
        self._repeated: dict[str, _Link] = {}
        # The first staged file of each content.
        self._first: dict[tuple[str, bool], str] = {}
        # Payload files that are those of the build directory themselves.
        self._taken: set[str] = set()
        self._unsynced: list[int] = []
        self.records: list[FileRecord] = []
        self.damaged: list[Digest] = []
        crash_points.reach("publish.staging")

    @property
    def shared_bytes(self) -> int:
        """Payload bytes that were linked instead of written."""
        links = (*self._linked.values(), *self._repeated.values())
        return sum(link.record.size for link in links)

    def fill(
        self,
        build: str,
        payload: tuple[Source, ...],
        foreign: frozenset[tuple[int, int]],
        expected: Iterable[FileRecord] = (),
    ) -> None:
        """Stage every payload file; none of the inodes `foreign` becomes part of it.

        expected: files whose content is known before they are read; UnfitPayload if it is another.
        They were written by this process and are open nowhere, so that where the file system allows
        it they become the staged files themselves, and are found to be right when all is read back.
        """
        self._foreign = foreign
        known = {(record.path, record.executable): record for record in expected}
        for source in payload:
            try:
                self._make_parent(source.path)
                record = known.get((source.path, source.executable))
                self.records.append(self._stage(build, source, record))
            except FileExistsError:
                # The stage is new: the store's file system folds case or normalises names.
                raise UnfitPayload(
                    f"the store's file system takes {source.path!r} for another payload file"
                ) from None
            crash_points.reach("publish.payload")
        crash_points.reach("publish.written")

    def _make_parent(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        if parent not in self._directories:
            self._make_parent(parent)
            make_directory(f"{self._directory}/{parent}", self._group)
            self._directories[parent] = f"{self._directory}/{parent}"

    def _stage(self, build: str, source: Source, record: FileRecord | None) -> FileRecord:
        with _open_source(build, source.path) as descriptor:
            data: bytes | None = None
            known = record is not None
            if record is None:
                data = os.read(descriptor, _CHUNK)
                found, size = hashlib.sha256(data), len(data)
                while part := os.read(descriptor, _CHUNK):
                    found.update(part)
                    size += len(part)
                record = FileRecord(source.path, size, found.hexdigest(), source.executable)
                if size != len(data):
                    data = None
            if not (self._link_repeated(record) or self._link_known(record)):
                if not (known and self._take(build, record)):
                    # A small file is written from the bytes just hashed, a large one read again.
                    self._write(record, descriptor, data)
                self._written.append(record)
        self._first.setdefault((record.sha256, record.executable), record.path)
        return record

    def _take(self, build: str, record: FileRecord) -> bool:
        """Make a file of the build directory the staged one, if it can be the store's alone."""
        if self._group:
            return False  # a new file is the group's, this one need not be
        self._bound_unsynced()
        staged = f"{self._directory}/{record.path}"
        try:
            os.link(f"{build}/{record.path}", staged, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            return False  # as in `_link`
        descriptor = os.open(staged, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if status.st_nlink != 2 or not stat.S_ISREG(status.st_mode):
                os.unlink(staged)  # it has more names than the one that goes away
                os.close(descriptor)
                return False
            os.fchmod(descriptor, EXECUTABLE_MODE if record.executable else FILE_MODE)
        except BaseException:
            os.close(descriptor)
            raise
        self._taken.add(record.path)
        self._unsynced.append(descriptor)
        return True

    def _link_repeated(self, record: FileRecord) -> bool:
        """Link the file of the same content that is staged already, if there is one."""
        first = self._first.get((record.sha256, record.executable))
        if first is None:
            return False
        staged = f"{self._directory}/{first}"
        known = self._linked.get(first)
        if known is None:
            return self._link(staged, _Link(record, staged), self._repeated)
        # Of a damaged blob, every link must be known as one.
        return self._link(staged, _Link(record, known.blob), self._linked)

    def _link_known(self, record: FileRecord) -> bool:
        """Link the blob of this content into the stage, if there is a usable one."""
        for blob in self._blobs(record):
            try:
                status = os.lstat(blob)
            except OSError:
                return False
            if not stat.S_ISREG(status.st_mode) or status.st_size != record.size:
                self._withdraw(_Link(record, blob))
            elif (status.st_dev, status.st_ino) not in self._foreign:
                return self._link(blob, _Link(record, blob), self._linked)
        return False

    def _blobs(self, record: FileRecord) -> tuple[str, str]:
        """The index's names for this content, the one to prefer first."""
        content = (record.sha256, record.executable)
        return self._layout.blob(*content), self._layout.second_blob(*content)

    def _link(self, source: str, link: _Link, links: dict[str, _Link]) -> bool:
        try:
            os.link(source, f"{self._directory}/{link.record.path}", follow_symlinks=False)
        except OSError:
            # Another device, too many links, not permitted: sharing is an economy, so a copy
            # answers all of them.
            return False
        links[link.record.path] = link
        return True

    def _withdraw(self, link: _Link) -> None:
        """Report an indexed blob whose bytes are not what its name says, and drop that name.

        Only the promise is withdrawn: slots that own the inode stay as they are.
        """
        digest = Digest(link.record.sha256)
        if digest not in self.damaged:
            self.damaged.append(digest)
        with contextlib.suppress(OSError):
            os.unlink(link.blob)

    def _write(self, record: FileRecord, source: int, data: bytes | None) -> None:
        sink = self._create(record.path, EXECUTABLE_MODE if record.executable else FILE_MODE)
        if data is not None:
            write_all(sink, data)
        else:
            os.lseek(source, 0, os.SEEK_SET)
            found = hashlib.sha256()
            while part := os.read(source, _CHUNK):
                found.update(part)
                write_all(sink, part)
            if found.hexdigest() != record.sha256:
                raise UnfitPayload(f"{record.path!r} changed while it was being published")

    def _create(self, path: str, mode: int) -> int:
        """A new staged file, open until it has been synced."""
        self._bound_unsynced()
        # Entries are immutable: nobody but their owner could change them by mistake.
        group = self._group & ~0o020
        descriptor = make_file(f"{self._directory}/{path}", WRITE_NEW, mode, group)
        self._unsynced.append(descriptor)
        return descriptor

    def _bound_unsynced(self) -> None:
        if len(self._unsynced) >= _BATCH:
            self.sync_files()

    def sync_files(self) -> None:
        """Make every file durable that was written since the last time.

        The device gets all of them to work on before the first is waited for. Handing each over as
        soon as it is written would stop the writing for as long as a request takes to submit.
        """
        for descriptor in self._unsynced:
            linux.start_writeback(descriptor)
        for descriptor in self._unsynced:
            os.fsync(descriptor)
        self.close_files()

    def close_files(self) -> None:
        """Close what is still open."""
        while self._unsynced:
            os.close(self._unsynced.pop())

    def validate(self, build: str) -> dict[str, bytes]:
        """Read the staged tree back; a linked blob that is damaged is written afresh."""
        while True:
            descriptor = os.open(self._directory, _READ_DIRECTORY)
            try:
                return validate_payload(descriptor, self.records)
            except SlotFault as fault:
                if fault.path in self._taken:
                    raise UnfitPayload(f"what arrived is another payload: {fault.reason}") from None
                link = self._linked.pop(fault.path, None)
                if link is None:
                    raise OSError(
                        errno.EIO, f"staged file did not read back: {fault.reason}"
                    ) from None
                self._replace_damaged(build, link)
            finally:
                os.close(descriptor)

    def _replace_damaged(self, build: str, link: _Link) -> None:
        self._withdraw(link)
        record = link.record
        os.unlink(f"{self._directory}/{record.path}")
        with _open_source(build, record.path) as source:
            self._write(record, source, None)
        self._written.append(record)

    def write_marker(self, encoded: bytes) -> None:
        """Write the manifest: from now on the staged tree is an entry."""
        descriptor = self._create(MANIFEST_NAME, FILE_MODE)
        write_all(descriptor, encoded)

    def sync_directories(self) -> None:
        """Make every name in the stage durable, innermost directories first."""
        for directory in reversed(self._directories.values()):
            sync_directory(directory)

    def adopt(self, slot: str) -> None:
        """Offer the new files to other entries. Failing to is no failure of the publication."""
        for record in self._written:
            try:
                self._index(f"{slot}/{record.path}", record)
            except OSError:
                return
            crash_points.reach("publish.adopted")

    def _index(self, file: str, record: FileRecord) -> None:
        for blob in self._blobs(record):
            # The first name is taken where the key's other state has this content too.
            with contextlib.suppress(FileExistsError):
                try:
                    os.link(file, blob, follow_symlinks=False)
                except FileNotFoundError:
                    make_directories(os.path.dirname(blob), self._group)
                    os.link(file, blob, follow_symlinks=False)
                return


@contextlib.contextmanager
def _open_source(build: str, path: str) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(f"{build}/{path}", flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnfitPayload(f"{path!r} is not a regular file any more")
        yield descriptor
    finally:
        os.close(descriptor)
