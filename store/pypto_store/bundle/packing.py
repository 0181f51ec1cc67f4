"""Writing a bundle. Equal entries give equal bytes: nothing of the place, time or owner goes in."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pypto_store.bundle.faults import BundleError
from pypto_store.bundle.frame import Advance, Sink, frame_writer
from pypto_store.bundle.index import Blob, Index, Record, place
from pypto_store.bundle.members import END, INDEX_NAME, blob_name, header, padding

if TYPE_CHECKING:
    from pypto_store.entry import Entry
    from pypto_store.evidence import EvidenceRecord
    from zstandard import ZstdCompressionWriter

_CHUNK = 1024 * 1024


class Packing:
    """Validated entries, and what is kept to explain their keys, on their way into a bundle."""

    def __init__(self, entries: Sequence[Entry], evidence: Sequence[EvidenceRecord]) -> None:
        ordered = sorted(entries, key=lambda entry: place(entry.manifest))
        told = sorted((record.digest.hex, record.encode()) for record in evidence)
        records = tuple(
            Record(digest, hashlib.sha256(data).hexdigest(), len(data)) for digest, data in told
        )
        self.index = Index(tuple(entry.manifest for entry in ordered), records)
        self._evidence = {
            record.sha256: data for record, (_, data) in zip(records, told, strict=True)
        }
        # Any of the files with that content will do; each was validated.
        self._files = {
            file.sha256: f"{entry.directory}/{file.path}"
            for entry in ordered
            for file in entry.manifest.files
        }

    @property
    def size(self) -> int:
        """Bytes of all contents."""
        return sum(blob.size for blob in self.index.blobs)

    def write(self, sink: Sink, advance: Advance) -> None:
        """Write the bundle; `advance` is told the content bytes done.

        BundleError when a file is no longer what was validated, OSError as reading and writing
        raise it; then what was written is no bundle.
        """
        index = self.index.encode()
        with frame_writer(sink) as frame:
            frame.write(header(INDEX_NAME, len(index)))
            frame.write(index)
            frame.write(bytes(padding(len(index))))
            for blob in self.index.blobs:
                frame.write(header(blob_name(blob.sha256), blob.size))
                self._write_content(frame, blob, advance)
                frame.write(bytes(padding(blob.size)))
            frame.write(END)

    def _write_content(self, frame: ZstdCompressionWriter, blob: Blob, advance: Advance) -> None:
        data = self._evidence.get(blob.sha256)
        if data is not None:
            frame.write(data)
            advance(len(data))
            return
        path = self._files[blob.sha256]
        found, size = hashlib.sha256(), 0
        with _opened(path) as descriptor:
            while part := os.read(descriptor, _CHUNK):
                size += len(part)
                if size > blob.size:
                    break
                found.update(part)
                frame.write(part)
                advance(len(part))
        if size != blob.size or found.hexdigest() != blob.sha256:
            raise BundleError(f"{path} has changed since it was validated; run the command again")


@contextmanager
def _opened(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BundleError(f"{path} is no regular file any more; run the command again")
        yield descriptor
    finally:
        os.close(descriptor)
