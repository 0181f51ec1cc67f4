"""The bundle that a command writes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from pypto_store.bundle.packing import Packing
from pypto_store.tools.answer import CommandError, Surroundings
from pypto_store.tools.output_file import STANDARD_OUTPUT, STREAM, output_place, written

if TYPE_CHECKING:
    from pypto_store.entry import Entry
    from pypto_store.evidence import EvidenceRecord


@dataclass(frozen=True, slots=True)
class WrittenBundle:
    """A bundle as it was written: its size in bytes, its SHA-256, and bytes of its contents."""

    size: int
    sha256: str
    content_size: int


def bundle_place(given: str, surroundings: Surroundings) -> str:
    """Where a bundle may be written, as `output_place`; CommandError for a terminal."""
    if given == STREAM and os.isatty(STANDARD_OUTPUT):
        raise CommandError("a bundle is not for a terminal; name a file, or pipe it on")
    return output_place(given, surroundings)


def write_bundle(
    entries: Sequence[Entry],
    evidence: Sequence[EvidenceRecord],
    place: str,
    surroundings: Surroundings,
) -> WrittenBundle:
    """Pack validated entries into `place`; BundleError, and OSError as writing raises it."""
    packing = Packing(entries, evidence)
    told = "packing"
    with (
        written(place) as stream,
        surroundings.progress.of_bytes(told, packing.size) as advance,
    ):
        sink = _Counted(stream)
        packing.write(sink, advance)
    return WrittenBundle(sink.size, sink.digest, packing.size)


class _Counted:
    """Counts and digests what goes through."""

    def __init__(self, below: BinaryIO) -> None:
        self._below = below
        self._found = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes, /) -> int:
        """All of `data`."""
        self._below.write(data)
        self._found.update(data)
        self.size += len(data)
        return len(data)

    @property
    def digest(self) -> str:
        """SHA-256 of all that was written."""
        return self._found.hexdigest()
