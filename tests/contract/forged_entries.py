"""One entry at a remote in memory, and others that pretend to be it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pypto_store.digest import Digest
from pypto_store.keys import ArtifactSpec
from pypto_store.manifest import FileRecord, Manifest
from pypto_store.paths import MANIFEST_NAME
from pypto_store.remote.batches import SMALL_BLOB
from pypto_store.remote.blob_store import BlobDigest
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.entry_testing import publish
from pypto_store.remote.inventory import output_files
from pypto_store.remote.memory import MemoryRemote
from pypto_store.remote.messages import ActionResult, OutputFile
from pypto_store.remote.sending import send_entry
from pypto_store.remote.trust import ANYONE
from pypto_store.testing import GENERATED, PAYLOAD, READY, ready_spec, sample_key

if TYPE_CHECKING:
    from pathlib import Path

KEY = sample_key()
NAME = entry_name(KEY, READY).digest
LARGE = b"large" * (SMALL_BLOB // 4)
CONTENT = {**PAYLOAD, "large": LARGE, "large too": LARGE, "kernels/also empty": b""}
OTHER_SPECS = {
    "state": GENERATED,
    "level": ready_spec("x86-64-v4"),
    "no level": replace(READY, cpu_level=None),
    "build kind": replace(READY, build_kind="other"),
    "files": replace(READY, required_files=("empty", "kernel_config.json")),
    "execution": replace(READY, execution=()),
}


def sent_to_memory(place: Path) -> MemoryRemote:
    """A remote with the entry, and with one of another key; `place` is for local stores."""
    remote = MemoryRemote()
    for key in (KEY, sample_key("other")):
        entry = publish(place / key.digest.hex[:8], key, READY, CONTENT)
        send_entry(remote.open(), "memory:", entry, ANYONE, None)
    return remote


@dataclass
class Truth:
    """What the entry really is."""

    result: ActionResult

    @property
    def files(self) -> tuple[OutputFile, ...]:
        return self.result.output_files

    @property
    def records(self) -> tuple[FileRecord, ...]:
        return tuple(
            FileRecord(file.path, file.digest.size, file.digest.sha256.hex, file.executable)
            for file in self.files
            if file.path != MANIFEST_NAME
        )

    def of(self, path: str) -> OutputFile:
        (file,) = (file for file in self.files if file.path == path)
        return file

    def changed(self, path: str, /, **changes: object) -> bytes:
        """The entry with one file of it said otherwise."""
        return entry_of(
            *(replace(file, **changes) if file.path == path else file for file in self.files)
        )


def entry_of(*files: OutputFile, exit_code: int = 0) -> bytes:
    return ActionResult(files, exit_code).encode()


def consistent(records: tuple[FileRecord, ...], spec: ArtifactSpec = READY) -> bytes:
    """An entry whose manifest lists exactly its files, whatever these are."""
    ordered = tuple(sorted(records))
    manifest = Manifest.of_proven_files(KEY, spec, ordered)
    assert manifest is not None
    return entry_of(*output_files(manifest, manifest.encode(), None))


def record(path: str, data: bytes = b"x", executable: bool = False) -> FileRecord:
    return FileRecord(path, len(data), Digest.of(data).hex, executable)


def manifest_of(spec: ArtifactSpec, truth: Truth) -> bytes:
    manifest = Manifest.of_proven_files(KEY, spec, tuple(sorted(truth.records)))
    assert manifest is not None
    return manifest.encode()


def with_manifest(data: bytes, truth: Truth) -> bytes:
    return truth.changed(MANIFEST_NAME, digest=BlobDigest.of(data))
