"""What an entry at a remote consists of, decided before any of its payload is asked for.

An entry is an ActionResult whose output files are the payload, its manifest and, where somebody
signed that, the signatures. All of it is hostile until the manifest was seen to be acceptable, of
the right key and specification, and to list exactly those files. Nothing here writes anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pypto_store.digest import Digest
from pypto_store.manifest import SIZE_LIMIT as MANIFEST_LIMIT
from pypto_store.manifest import Manifest, ManifestError, parse
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
    """An acceptable entry: its manifest, whether that is signed, and every blob it consists of."""

    manifest: Manifest
    signed: bool
    blobs: frozenset[BlobDigest]


def blob_of(sha256: str, size: int) -> BlobDigest:
    """The blob of a file that a checked manifest lists."""
    return BlobDigest(Digest(sha256), size)


def output_files(
    manifest: Manifest, encoded: bytes, signatures: bytes | None
) -> dict[str, OutputFile]:
    """The output files of an entry by path: those that the manifest lists, itself, its signatures.

    encoded: the manifest's bytes.
    """
    files = {
        path: OutputFile(path, blob_of(sha256, size), executable)
        for path, size, sha256, executable in manifest.files
    }
    files[MANIFEST_NAME] = OutputFile(MANIFEST_NAME, BlobDigest.of(encoded))
    if signatures is not None:
        files[SIGNATURE_NAME] = OutputFile(SIGNATURE_NAME, BlobDigest.of(signatures))
    return files


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
    """Reads what stands under one name at a remote, and decides on it.

    blobs: verified ones, as `open_engine` gives them. url: the remote, for faults.
    """

    def __init__(self, blobs: BlobStore, url: str, name: BlobDigest) -> None:
        self._blobs = blobs
        self._url = url
        self._name = name

    def decide(
        self, entry: bytes, key: ArtifactKey, spec: ArtifactSpec, trust: Trust
    ) -> Inventory | None:
        """What `entry` consists of; None when its manifest or signatures are not there any more.

        RejectedEntry unless it is one of `key` and `spec` that `trust` accepts, and every other
        RemoteFault that reading two blobs may have.
        """
        files = self._files(entry)
        found = self._documents(files)
        if found is None:
            return None
        encoded, signatures = found
        if reason := trust.fault(encoded, signatures):
            self._reject(reason)
        try:
            manifest = parse(encoded, key=key, spec=spec)
        except ManifestError as error:
            self._reject(f"{MANIFEST_NAME}: {error}")
        if reason := size_fault(manifest):
            self._reject(reason)
        expected = output_files(manifest, encoded, signatures)
        if files != expected:
            self._reject(_difference(files, expected))
        blobs = frozenset(file.digest for file in files.values())
        return Inventory(manifest, signatures is not None, blobs)

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
        if len(files) > FILES_LIMIT + 2:
            self._reject(f"it lists {len(files)} files, but {FILES_LIMIT} is the limit")
        return files

    def _documents(self, files: dict[str, OutputFile]) -> tuple[bytes, bytes | None] | None:
        """The bytes of the manifest and of its signatures, if any; None when one is gone."""
        manifest = files.get(MANIFEST_NAME)
        if manifest is None:
            self._reject(f"it lists no {MANIFEST_NAME}")
        self._check_size(manifest, MANIFEST_LIMIT)
        wanted = [manifest.digest]
        signatures = files.get(SIGNATURE_NAME)
        if signatures is not None:
            self._check_size(signatures, SIGNATURES_LIMIT)
            wanted.append(signatures.digest)
        found = self._blobs.get_many(wanted)
        if any(digest not in found for digest in wanted):
            return None
        return found[manifest.digest], None if signatures is None else found[signatures.digest]

    def _check_size(self, file: OutputFile, limit: int) -> None:
        if file.digest.size > limit:
            self._reject(f"{file.path} has {file.digest.size} bytes, but {limit} is the limit")

    def _reject(self, reason: str) -> NoReturn:
        raise RejectedEntry(
            url=self._url,
            operation=f"use entry {self._name}",
            reason=reason,
            remedy="it is not used; see who writes to this remote, and have it removed there",
        )


def _difference(found: dict[str, OutputFile], expected: dict[str, OutputFile]) -> str:
    if missing := expected.keys() - found.keys():
        return f"it lacks {min(missing)!r}, which its manifest lists"
    if extra := found.keys() - expected.keys():
        return f"it lists {min(extra)!r}, which its manifest does not"
    wrong = min(path for path, file in found.items() if file != expected[path])
    return f"it says something else of {wrong!r} than its manifest"
