"""Publishing one entry durably, beside the same done file by file (row 7).

Both sides copy a finished build of ten files (200 KB) with their digests into a directory that
appears under its name whole or not at all, and survives a power cut once they return. The base
does it as one would write it down: write a file, sync it, and so on; then the manifest, the
directories, the rename, the parent. Ours also reads everything back, takes the blob index along and
makes the directories of a new key.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

from measure import Comparison, interleave, parser, report, timed
from pypto_store import ArtifactKey, ArtifactSpec, Digest, State
from pypto_store.layout import Layout
from pypto_store.publication import publish
from validate_entry import FILES, fill

RUNS = 40

SPEC = ArtifactSpec(State.READY, "program", tuple(FILES), ("a2a3sim",), "x86-64")
_COPY = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def entry_key(number: int) -> ArtifactKey:
    """One key a number."""
    blank = Digest("0" * 64)
    return ArtifactKey(blank, blank, blank, blank, Digest(f"{number:064x}"))


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)


def _write_synced(place: Path, data: bytes) -> None:
    descriptor = os.open(place, _COPY, 0o600)
    os.write(descriptor, data)
    os.fsync(descriptor)
    os.close(descriptor)


def file_by_file(build: Path, slot: Path) -> None:
    """Publish `build` as `slot`, syncing each file when it has been written."""
    staging = slot.with_name(slot.name + ".new")
    (staging / "payload").mkdir(parents=True)
    table = []
    for name in FILES:
        data = (build / name).read_bytes()
        table.append((name, len(data), hashlib.sha256(data).hexdigest()))
        _write_synced(staging / name, data)
    _write_synced(staging / "manifest.json", json.dumps(table).encode())
    _sync(staging / "payload")
    _sync(staging)
    staging.rename(slot)
    _sync(slot.parent)


def compare(runs: int) -> list[Comparison]:
    """Time both sides in turn. Nothing is deleted meanwhile: that slows new files down for long."""
    with tempfile.TemporaryDirectory() as scratch:
        layout = Layout(f"{scratch}/root")
        plain = Path(scratch) / "plain"
        plain.mkdir()
        publish(layout, entry_key(0), SPEC, str(fill(Path(scratch) / "first")))
        numbers = iter(range(1, 10 * runs + 10))

        def ours() -> float:
            number = next(numbers)
            build = str(fill(Path(scratch) / f"build{number}"))
            os.sync()  # what is dirty from making the build belongs to neither side
            return timed(lambda: publish(layout, entry_key(number), SPEC, build))

        def base() -> float:
            number = next(numbers)
            build = fill(Path(scratch) / f"build{number}")
            os.sync()
            return timed(lambda: file_by_file(build, plain / str(number)))

        ours_s, base_s = interleave(ours, base, runs)
    return [Comparison("7", "publish one entry", ours_s, "sync file by file", base_s, runs, 0.75)]


if __name__ == "__main__":
    chosen = parser(__doc__, RUNS).parse_args()
    report(compare(chosen.runs), chosen)
