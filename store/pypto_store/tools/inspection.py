"""Everything below a root, read and judged. Changes nothing.

Damage is what would be refused, or would stand in the way of a publication. Leftovers are what a
crash left behind: harmless, and collected by `gc`. Whatever else is found is foreign, and somebody
else's.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from pypto_store.digest import Digest, is_digest_name
from pypto_store.evidence import EvidenceError, load
from pypto_store.keys import State
from pypto_store.layout import MARKER_NAME, STAGING_PREFIX, Layout
from pypto_store.listing import check_place, iterate_entries, read_manifest_unnoticed
from pypto_store.tools.answer import Advance, Progress
from pypto_store.tools.names import BLOB, LOCK, RECORD, RECORD_DIRECTORIES
from pypto_store.validation import SlotFault, open_slot, validate_payload

_CHUNK = 1024 * 1024
_DIRECTORIES = ("artifacts", "cas", "evidence", "locks", "quarantine", "trash", *RECORD_DIRECTORIES)
# What a read says of what is on disk rather than of who asks.
_DAMAGE = frozenset({errno.EIO, errno.EUCLEAN, errno.EBADMSG, errno.ELOOP, errno.ENAMETOOLONG})


class Verdict(Enum):
    """What is to be thought of something found.

    UNREADABLE: this user may not read it, so nothing is known.
    """

    DAMAGED = "damaged"
    UNREADABLE = "unreadable"
    LEFTOVER = "leftover"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be. what: an entry, a blob, evidence, a lock, ..."""

    verdict: Verdict
    what: str
    path: str
    reason: str


@dataclass(slots=True)
class Counts:
    """What was read: whole and damaged things alike, and the bytes of payloads and blobs."""

    entries: int = 0
    blobs: int = 0
    evidence: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Inspection:
    """One walk over a root."""

    layout: Layout
    counts: Counts = field(default_factory=Counts)
    # SHA-256 of inodes that were read: a blob and the slots that share it are read once.
    _known: dict[tuple[int, int], str] = field(default_factory=dict)
    _unlisted: list[Finding] = field(default_factory=list)

    def findings(self, progress: Progress) -> Iterator[Finding]:
        """Everything that is not as it should be, while it is being found.

        What disappears meanwhile is no finding.
        """
        yield from self._top()
        total = sum(row.size or 0 for row in iterate_entries(self.layout.root))
        with progress.of("entries", total) as advance:
            yield from self._artifacts(advance)
        blobs = list(self._blob_names())
        with progress.of("blobs", len(blobs)) as advance:
            for directory, name in blobs:
                yield from self._blob(directory, name)
                advance(1)
        yield from self._evidence()
        yield from self._records()
        yield from self._locks()
        for entry in self._children(self.layout.trash):
            yield Finding(Verdict.LEFTOVER, "trash", entry.path, "an interrupted gc left it")
        yield from self._unlisted

    def _top(self) -> Iterator[Finding]:
        for entry in self._children(self.layout.root):
            if entry.name == MARKER_NAME:
                continue
            if entry.name not in _DIRECTORIES:
                yield _foreign(entry.path)
            elif not entry.is_dir():  # a link to one, on another disk for example, works
                yield Finding(Verdict.DAMAGED, "directory", entry.path, "is not a directory")
        for entry in self._children(f"{self.layout.root}/artifacts"):
            if entry.path != self.layout.artifacts:
                yield _foreign(entry.path)

    def _children(self, directory: str) -> Iterable[os.DirEntry[str]]:
        """What is in a directory, in the order of names; nothing if there is no directory."""
        try:
            with os.scandir(directory) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            self._unlisted.append(_unread("directory", directory, error))
        return ()

    # -- entries

    def _artifacts(self, advance: Advance) -> Iterator[Finding]:
        for environment in self._children(self.layout.artifacts):
            if not _is_digest_directory(environment):
                yield _foreign(environment.path)
                continue
            for key in self._children(environment.path):
                if not _is_digest_directory(key):
                    yield _foreign(key.path)
                    continue
                for child in self._children(key.path):
                    yield from self._child_of_key(child, environment.name, key.name, advance)

    def _child_of_key(
        self, child: os.DirEntry[str], environment: str, key: str, advance: Advance
    ) -> Iterator[Finding]:
        if child.name.startswith(STAGING_PREFIX):
            reason = "a publication that did not end left it"
            yield Finding(Verdict.LEFTOVER, "staging", child.path, reason)
        elif child.name == State.GENERATED.value:
            yield from self._slot(child.path, environment, key, State.GENERATED, advance)
        elif child.name != State.READY.value:
            yield _foreign(child.path)
        elif not child.is_dir(follow_symlinks=False):
            yield Finding(Verdict.DAMAGED, "directory", child.path, "is not a directory")
        else:
            for slot in self._children(child.path):
                if is_digest_name(slot.name):
                    yield from self._slot(slot.path, environment, key, State.READY, advance)
                else:
                    yield _foreign(slot.path)

    def _slot(
        self, path: str, environment: str, key: str, state: State, advance: Advance
    ) -> Iterator[Finding]:
        self.counts.entries += 1
        try:
            self._validate(path, environment, key, state, advance)
        except SlotFault as fault:
            yield Finding(Verdict.DAMAGED, "entry", path, fault.reason)
        except FileNotFoundError:
            return
        except OSError as error:
            yield _unread("entry", path, error)

    def _validate(
        self, path: str, environment: str, key: str, state: State, advance: Advance
    ) -> None:
        descriptor = open_slot(path)
        if descriptor is None:
            return
        try:
            manifest = read_manifest_unnoticed(descriptor)
            check_place(path, environment, key, state, manifest)
            try:
                validate_payload(descriptor, manifest.files)
            finally:
                self.counts.bytes += manifest.payload_size
                advance(manifest.payload_size)
            for record in manifest.files:
                status = os.stat(record.path, dir_fd=descriptor, follow_symlinks=False)
                self._known[(status.st_dev, status.st_ino)] = record.sha256
        finally:
            os.close(descriptor)

    # -- blobs

    def _blob_names(self) -> Iterator[tuple[os.DirEntry[str], str]]:
        for directory in self._children(self.layout.cas):
            for entry in self._children(directory.path):
                yield entry, directory.name

    def _blob(self, entry: os.DirEntry[str], directory: str) -> Iterator[Finding]:
        self.counts.blobs += 1
        name = BLOB.fullmatch(entry.name)
        if name is None or not name[1].startswith(directory) or len(directory) != 2:
            yield _foreign(entry.path)
            return
        try:
            reason = self._blob_fault(entry.path, name[1], executable=name[2] is not None)
        except FileNotFoundError:
            return
        except OSError as error:
            yield _unread("blob", entry.path, error)
            return
        if reason is not None:
            yield Finding(Verdict.DAMAGED, "blob", entry.path, reason)

    def _blob_fault(self, path: str, sha256: str, *, executable: bool) -> str | None:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            return "is not a regular file"
        if executable and not status.st_mode & stat.S_IXUSR:
            return "is not executable"
        inode = (status.st_dev, status.st_ino)
        found = self._known.get(inode)
        if found is None:
            found = self._known[inode] = _digest_of(path)
            self.counts.bytes += status.st_size
        return None if found == sha256 else "holds other bytes than its name says"

    # -- the rest

    def _evidence(self) -> Iterator[Finding]:
        def read(digest: str) -> None:
            self.counts.evidence += 1
            load(self.layout, Digest(digest))

        yield from self._named(self.layout.evidence, RECORD, "evidence", read)

    def _records(self) -> Iterator[Finding]:
        # What a record says is its readers' matter, and they take nothing on trust.
        for name in RECORD_DIRECTORIES:
            directory = f"{self.layout.root}/{name}"
            yield from self._named(directory, RECORD, "record", lambda _: None)

    def _locks(self) -> Iterator[Finding]:
        yield from self._named(self.layout.locks, LOCK, "lock", lambda _: None)

    def _named(
        self, directory: str, form: re.Pattern[str], what: str, read: Callable[[str], None]
    ) -> Iterator[Finding]:
        """The regular files of a directory whose names have one form, each read by `read`."""
        for entry in self._children(directory):
            name = form.fullmatch(entry.name)
            if entry.name.startswith(STAGING_PREFIX):
                yield Finding(Verdict.LEFTOVER, what, entry.path, "a write that did not end")
            elif name is None:
                yield _foreign(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                yield Finding(Verdict.DAMAGED, what, entry.path, "is not a regular file")
            else:
                try:
                    read(name[1] if form.groups else entry.name)
                except EvidenceError as error:
                    yield Finding(Verdict.DAMAGED, what, entry.path, str(error))
                except FileNotFoundError:
                    continue
                except OSError as error:
                    yield _unread(what, entry.path, error)


def _is_digest_directory(entry: os.DirEntry[str]) -> bool:
    return is_digest_name(entry.name) and entry.is_dir(follow_symlinks=False)


def _foreign(path: str) -> Finding:
    return Finding(Verdict.FOREIGN, "name", path, "no part of a store")


def _unread(what: str, path: str, error: OSError) -> Finding:
    verdict = Verdict.DAMAGED if error.errno in _DAMAGE else Verdict.UNREADABLE
    return Finding(verdict, what, path, f"cannot be read: {error.strerror or error}")


def _digest_of(path: str) -> str:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(path, flags)
    found = hashlib.sha256()
    try:
        while part := os.read(descriptor, _CHUNK):
            found.update(part)
    finally:
        os.close(descriptor)
    return found.hexdigest()
