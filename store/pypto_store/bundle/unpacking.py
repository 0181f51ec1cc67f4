"""Reading a bundle that anybody may have made, and publishing its entries.

    read      the index, then every content into a directory of its own outside the store; each
              header compared, each digest and the frame's checksum verified
    publish   entry by entry through the store's ordinary publication

Nothing below the root is touched before the whole bundle has been read and found right. Memory is
bounded by the index and some MiB; the disk by the limit that the caller gives. A crash leaves the
directory of contents (outside the store) and whole entries; running again goes on from there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pypto_store import crash_points, evidence
from pypto_store.bundle.faults import BundleError
from pypto_store.bundle.frame import Advance, FrameReader
from pypto_store.bundle.index import SIZE_LIMIT, Blob, Index, Record, parse_index
from pypto_store.bundle.members import (
    BLOCK,
    END,
    INDEX_NAME,
    blob_name,
    header,
    padding,
    told_size,
)
from pypto_store.digest import Digest
from pypto_store.entry import write_all
from pypto_store.layout import EXECUTABLE_MODE, FILE_MODE
from pypto_store.outcomes import Failure, Hit, Private, Published
from pypto_store.removal import remove_tree
from pypto_store.validation import SlotFault, validate_payload

if TYPE_CHECKING:
    from pypto_store.evidence import EvidenceRecord
    from pypto_store.manifest import FileRecord, Manifest
    from pypto_store.store import ArtifactStore

_PIECE = 256 * 1024
_WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class Fate(Enum):
    """What became of one entry of a bundle.

    IMPORTED: published. PRESENT: the store has it already. OTHER: the store has a valid entry of
    the same key and specification with other bytes, which stays. DAMAGED: its slot holds something
    invalid, which stays. FAILED: the store could not take it.
    """

    IMPORTED = "imported"
    PRESENT = "present"
    OTHER = "other"
    DAMAGED = "damaged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The fate of one entry and, unless it was imported or present, the reason."""

    manifest: Manifest
    fate: Fate
    reason: str = ""
    shared_bytes: int = 0


class Contents:
    """A bundle that has been read whole: its index, and its contents in `directory`."""

    def __init__(self, index: Index, directory: str) -> None:
        self.index = index
        self._directory = directory
        self._executables = {
            file.sha256 for entry in index.entries for file in entry.files if file.executable
        }

    def path(self, sha256: str) -> str:
        """Where a content is."""
        return f"{self._directory}/{sha256}"

    def mode(self, sha256: str) -> int:
        """The mode of that file: executable if an entry wants it so."""
        return EXECUTABLE_MODE if sha256 in self._executables else FILE_MODE

    def evidence(self, record: Record) -> EvidenceRecord:
        """What a record says; BundleError if it is none."""
        with open(self.path(record.sha256), "rb") as file:
            data = file.read()
        try:
            return evidence.parse(data, Digest(record.digest))
        except evidence.EvidenceError as error:
            raise BundleError(f"the record of {record.digest}: {error}") from None

    def deliver(self, store: ArtifactStore, manifest: Manifest, private: str) -> Delivery:
        """Publish one entry; `private` is a directory for the build, outside the store."""
        result = store.get_or_build(
            manifest.key,
            manifest.spec,
            self.builder(manifest),
            private_parent=Path(private),
        )
        crash_points.reach("import.entry")
        if isinstance(result, Private):
            remove_tree(os.fspath(result.path))
            fate = Fate.DAMAGED if result.failure is Failure.INVALID else Fate.FAILED
            return Delivery(manifest, fate, result.reason)
        if isinstance(result, Hit):
            if result.entry.manifest == manifest:
                return Delivery(manifest, Fate.PRESENT)
            return Delivery(
                manifest, Fate.OTHER, f"{result.entry.directory} holds other bytes and stays"
            )
        assert isinstance(result, Published)  # a store that bundles go into asks no remote
        return Delivery(manifest, Fate.IMPORTED, shared_bytes=result.shared_bytes)

    def builder(self, manifest: Manifest) -> Callable[[Path], None]:
        """What fills an empty directory with the payload of an entry, and proves it right."""

        def build(directory: Path) -> None:
            target = os.fspath(directory)
            for record in manifest.files:
                self._place(record, f"{target}/{record.path}")
            descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                # What the store publishes it takes for true, so these must still be the bytes
                # that were verified while they arrived.
                validate_payload(descriptor, manifest.files)
            except SlotFault as fault:
                raise OSError(f"{target}: {fault.reason}; is the disk failing?") from None
            finally:
                os.close(descriptor)

        return build

    def _place(self, record: FileRecord, place: str) -> None:
        mode = EXECUTABLE_MODE if record.executable else FILE_MODE
        if "/" in record.path:
            os.makedirs(os.path.dirname(place), exist_ok=True)
        if mode == self.mode(record.sha256):
            with suppress(OSError):  # too many links, or a file system without: copy
                os.link(self.path(record.sha256), place)
                return
        shutil.copyfile(self.path(record.sha256), place)
        os.chmod(place, mode)


def unpack(source: BinaryIO, directory: str, limit: int, advance: Advance) -> Contents:
    """Read a whole bundle into the empty `directory`; `advance` is told the packed bytes read.

    BundleError unless every byte is as a bundle's must be, or when its entries are larger than
    `limit` bytes together, or its contents than the space that is left; OSError as reading and
    writing raise it.
    """
    reader = FrameReader(source, advance)
    index = parse_index(_index_bytes(reader))
    crash_points.reach("import.index")
    blobs = index.blobs
    _require_room(directory, index, limit)
    contents = Contents(index, directory)
    for blob in blobs:
        _compare(reader, header(blob_name(blob.sha256), blob.size), blob_name(blob.sha256))
        _receive(reader, blob, contents.path(blob.sha256), contents.mode(blob.sha256))
        crash_points.reach("import.blob")
    _compare(reader, END, "the end")
    reader.finish()
    for record in index.records:
        contents.evidence(record)
    crash_points.reach("import.verified")
    return contents


def _index_bytes(reader: FrameReader) -> bytes:
    first = reader.exactly(BLOCK)
    size = told_size(first)
    if size is None or first != header(INDEX_NAME, size):
        raise BundleError(f"this is no bundle: it does not begin with {INDEX_NAME}")
    if size > SIZE_LIMIT:
        raise BundleError(f"the index is larger than {SIZE_LIMIT} bytes")
    data = reader.exactly(size)
    _skip_padding(reader, size)
    return data


def _require_room(directory: str, index: Index, limit: int) -> None:
    # What entries hold, not what they share: where files cannot be linked, all of it is written.
    payload = sum(manifest.payload_size for manifest in index.entries)
    if payload > limit:
        raise BundleError(
            f"the entries have {payload} bytes, more than the limit of {limit}; "
            "raise the limit if you expect that much"
        )
    needed = sum(blob.size for blob in index.blobs)
    status = os.statvfs(directory)
    free = status.f_bavail * status.f_frsize
    if needed > free:
        raise BundleError(f"the contents have {needed} bytes and {directory} has {free} left")


def _compare(reader: FrameReader, expected: bytes, what: str) -> None:
    if reader.exactly(len(expected)) != expected:
        raise BundleError(f"the bundle holds something else where {what} must be")


def _skip_padding(reader: FrameReader, size: int) -> None:
    count = padding(size)
    if reader.exactly(count) != bytes(count):
        raise BundleError("the bundle holds something in the padding of a member")


def _receive(reader: FrameReader, blob: Blob, path: str, mode: int) -> None:
    found, left = hashlib.sha256(), blob.size
    descriptor = os.open(path, _WRITE_NEW, mode)
    try:
        while left:
            piece = reader.piece(min(left, _PIECE))
            found.update(piece)
            write_all(descriptor, piece)
            left -= len(piece)
    finally:
        os.close(descriptor)
    if found.hexdigest() != blob.sha256:
        raise BundleError(f"content {blob.sha256} has other bytes than its digest says")
    _skip_padding(reader, blob.size)
