"""What an entry at a remote consists of, decided before any of its payload is asked for.

An entry is an ActionResult whose output files are the payload, its manifest and, where somebody
signed that, the signatures.

The manifest decides, and need not be fetched for it. There is one spelling of a manifest, so the
key and the specification that are asked for and the files that the entry lists make its bytes; the
entry is acceptable exactly when it names the blob of these bytes as its manifest, and when whoever
has to vouch for them does. What a hostile remote says is therefore never parsed as JSON, and a
manifest of another key, specification or inventory is another blob. Nothing here writes anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pypto_store.digest import Digest
from pypto_store.manifest import FileRecord, Manifest, ManifestError
from pypto_store.paths import MANIFEST_NAME, SIGNATURE_NAME
from pypto_store.remote.blob_store import ENTRY_LIMIT, BlobDigest, RejectedEntry
from pypto_store.remote.messages import ActionResult, MessageError, OutputFile
from pypto_store.remote.signatures import SIZE_LIMIT as SIGNATURES_LIMIT

if TYPE_CHECKING:
    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.remote.blob_store import BlobStore
    from pypto_store.remote.trust import Trust

FILES_LIMIT = 8192  # payload files of one entry
PAYLOAD_LIMIT = 1 << 30  # bytes of all payload files of one entry
# Bytes of one payload path: with room for the directories above an entry below PATH_MAX, so that
# no entry can make the storage fail that has to take it.
PATH_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Inventory:
    """An acceptable entry: its manifest, and every blob that it consists of."""

    manifest: Manifest
    blobs: frozenset[BlobDigest]


def blob_of(record: FileRecord) -> BlobDigest:
    """The blob of a file that a manifest lists."""
    return BlobDigest(Digest(record.sha256), record.size)


def output_files(
    manifest: Manifest, encoded: bytes, signatures: bytes | None
) -> tuple[OutputFile, ...]:
    """The output files of an entry: those that the manifest lists, itself, and its signatures.

    encoded: the manifest's bytes.
    """
    files = [OutputFile(file.path, blob_of(file), file.executable) for file in manifest.files]
    files.append(OutputFile(MANIFEST_NAME, BlobDigest.of(encoded)))
    if signatures is not None:
        files.append(OutputFile(SIGNATURE_NAME, BlobDigest.of(signatures)))
    return tuple(files)


def size_fault(manifest: Manifest) -> str | None:
    """Why a manifest's payload is too large for an entry at a remote, or None if it is not."""
    if len(manifest.files) > FILES_LIMIT:
        return f"it has {len(manifest.files)} files, but {FILES_LIMIT} is the limit"
    if manifest.payload_size > PAYLOAD_LIMIT:
        return f"it has {manifest.payload_size} bytes, but {PAYLOAD_LIMIT} is the limit"
    for record in manifest.files:
        if len(record.path.encode()) > PATH_LIMIT:
            return f"a path in it has more than {PATH_LIMIT} bytes"
    return None


class EntryReader:
    """Decides on what stands under one name at a remote.

    blobs: verified ones, as `open_engine` gives them. url: the remote, for faults.
    """

    def __init__(self, blobs: BlobStore, url: str, name: BlobDigest) -> None:
        self._blobs = blobs
        self._url = url
        self._name = name

    def decide(
        self, entry: bytes, key: ArtifactKey, spec: ArtifactSpec, trust: Trust
    ) -> Inventory | None:
        """What `entry` consists of; None when its signatures are not there any more.

        RejectedEntry unless it is one of `key` and `spec` that `trust` accepts, and every other
        RemoteFault that reading a blob may have.
        """
        files = self._files(entry)
        blobs = frozenset(file.digest for file in files.values())
        claimed = files.pop(MANIFEST_NAME, None)
        signed = files.pop(SIGNATURE_NAME, None)
        manifest, encoded = self._manifest(files, key, spec)
        if claimed != OutputFile(MANIFEST_NAME, BlobDigest.of(encoded)):
            self._reject(
                f"its {MANIFEST_NAME} is not that of this key, this specification and these files"
            )
        signatures = None
        if signed is not None:
            signatures = self._signatures(signed)
            if signatures is None:
                return None
        if reason := trust.fault(encoded, signatures):
            self._reject(reason)
        return Inventory(manifest, blobs)

    def _files(self, entry: bytes) -> dict[str, OutputFile]:
        """The entry's files by path, of which nothing is known but that they are not too many."""
        if len(entry) > ENTRY_LIMIT:
            self._reject(f"it has {len(entry)} bytes, but {ENTRY_LIMIT} is the limit")
        try:
            result = ActionResult.decode(entry)
        except MessageError as error:
            self._reject(f"it is no ActionResult: {error}")
        if result.exit_code:
            self._reject(f"its exit code is {result.exit_code}")
        files = {file.path: file for file in result.output_files}
        if len(files) != len(result.output_files):
            self._reject("it lists a file twice")
        return files

    def _manifest(
        self, files: dict[str, OutputFile], key: ArtifactKey, spec: ArtifactSpec
    ) -> tuple[Manifest, bytes]:
        """The only manifest that an entry of these payload files can have, and its bytes."""
        records = tuple(
            FileRecord(path, file.digest.size, file.digest.sha256.hex, file.executable)
            for path, file in sorted(files.items())
        )
        try:
            manifest = Manifest(key, spec, records)
            if reason := size_fault(manifest):
                self._reject(reason)
            return manifest, manifest.encode()
        except ManifestError as error:
            self._reject(str(error))

    def _signatures(self, file: OutputFile) -> bytes | None:
        size = file.digest.size
        if size > SIGNATURES_LIMIT:
            self._reject(f"{file.path} has {size} bytes, but {SIGNATURES_LIMIT} is the limit")
        if file.executable:
            self._reject(f"{file.path} is executable")
        return self._blobs.get_many([file.digest]).get(file.digest)

    def _reject(self, reason: str) -> NoReturn:
        raise RejectedEntry(
            url=self._url,
            operation=f"use entry {self._name}",
            reason=reason,
            remedy="it is not used; see who writes to this remote, and have it removed there",
        )
