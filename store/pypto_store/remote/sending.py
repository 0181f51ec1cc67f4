"""Sending an entry to a remote: what it lacks, blobs first, the entry last.

A reader never sees an entry of which a blob was never sent. What already stands under the name is
left alone when it is as good as what would be sent, and replaced when it is of no use to anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pypto_store.entry import EntryChanged
from pypto_store.remote.batches import SMALL_BLOB, batches
from pypto_store.remote.blob_store import (
    ENTRY_LIMIT,
    BlobDigest,
    RejectedEntry,
    RemoteProtocolError,
)
from pypto_store.remote.entry_name import EntryName, entry_name
from pypto_store.remote.inventory import EntryReader, blob_of, output_files, size_fault
from pypto_store.remote.messages import ActionResult
from pypto_store.remote.verifying import SourceChanged

if TYPE_CHECKING:
    from collections.abc import Collection

    from pypto_store.entry import Entry
    from pypto_store.remote.blob_store import Engine
    from pypto_store.remote.trust import Signer, Trust


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent: nothing at all when the remote had an entry that is as good.

    bytes_sent: of blobs, and of the entry if that was sent. Blobs without the entry put back what
    one that is as good had lost.
    """

    bytes_sent: int
    blobs_sent: int
    entry_sent: bool


def send_entry(engine: Engine, url: str, entry: Entry, trust: Trust, signer: Signer | None) -> Sent:
    """Have the remote hold `entry`, signed by `signer` if there is one.

    Nothing is sent when what stands there has the same bytes, or is an entry of the same key and
    specification that `trust` accepts, and all of its blobs are there; blobs alone are sent when it
    lacks some of this one's. Who has a signer counts only what that signed.
    engine: one of `open_engine`, or a wrapper of one.

    EntryChanged when the payload is another one now, OSError when it cannot be read: blobs may
    have been sent, the entry was not. RejectedEntry for an entry that no reader would take because
    of its size, before anything is sent; any other RemoteFault as the engine raises it.
    """
    judge = trust if signer is None else signer.own
    return _Sending(engine, url, entry, signer).send(judge)


class _Sending:
    """One entry on its way."""

    def __init__(self, engine: Engine, url: str, entry: Entry, signer: Signer | None) -> None:
        self._engine = engine
        self._url = url
        self._entry = entry
        self._name: EntryName = entry_name(entry.key, entry.spec)
        if reason := size_fault(entry.manifest):
            self._refuse(reason)
        manifest = entry.manifest.encode()
        signatures = None if signer is None else signer.sign(manifest)
        files = output_files(entry.manifest, manifest, signatures)
        self._result = ActionResult(files).encode()
        if len(self._result) > ENTRY_LIMIT:
            self._refuse(f"it takes {len(self._result)} bytes, but {ENTRY_LIMIT} is the limit")
        documents = [self._name.command, self._name.action, manifest]
        if signatures is not None:
            documents.append(signatures)
        self._documents = {BlobDigest.of(data): data for data in documents}
        self._payload = {blob_of(record): record.path for record in entry.manifest.files}

    def send(self, judge: Trust) -> Sent:
        ours = self._documents.keys() | self._payload.keys()
        standing = self._standing(judge)
        if standing is not None:
            gone = self._engine.blobs.find_missing(standing)
            if gone <= ours:
                # The same content, perhaps with somebody's signatures: what stands there is mended.
                return self._put_blobs(gone)
        sent = self._put_blobs(self._engine.blobs.find_missing(ours))
        self._engine.entries.put(self._name.digest, self._result)
        return Sent(sent.bytes_sent + len(self._result), sent.blobs_sent, True)

    def _standing(self, judge: Trust) -> Collection[BlobDigest] | None:
        """The blobs of an entry that stands there and is as good as this one; None without one."""
        try:
            present = self._engine.entries.get(self._name.digest)
            if present is None:
                return None
            if present == self._result:
                return self._documents.keys() | self._payload.keys()
            reader = EntryReader(self._engine.blobs, self._url, self._name.digest)
            inventory = reader.decide(present, self._entry.key, self._entry.spec, judge)
        except RemoteProtocolError:
            return None  # something else than an entry, or one that is not to be used
        return None if inventory is None else inventory.blobs

    def _put_blobs(self, missing: frozenset[BlobDigest]) -> Sent:
        self._put_small(missing)
        self._put_large(missing)
        return Sent(sum(digest.size for digest in missing), len(missing), False)

    def _put_small(self, missing: frozenset[BlobDigest]) -> None:
        for batch in batches(digest for digest in sorted(missing) if self._is_small(digest)):
            self._engine.blobs.put_many({digest: self._read(digest) for digest in batch})

    def _is_small(self, digest: BlobDigest) -> bool:
        return digest in self._documents or digest.size <= SMALL_BLOB

    def _read(self, digest: BlobDigest) -> bytes:
        document = self._documents.get(digest)
        return self._entry.read(self._payload[digest]) if document is None else document

    def _put_large(self, missing: frozenset[BlobDigest]) -> None:
        for digest in sorted(missing):
            if self._is_small(digest):
                continue
            path = self._payload[digest]
            try:
                self._engine.blobs.put(digest, lambda path=path: self._entry.open(path))  # type: ignore[misc]
            except SourceChanged as change:
                raise EntryChanged(
                    f"{self._entry.directory}/{path} has changed since it was validated; "
                    "do not write into a store, or check the disk"
                ) from change

    def _refuse(self, reason: str) -> NoReturn:
        raise RejectedEntry(
            url=self._url,
            operation=f"send entry {self._name.digest}",
            reason=reason,
            remedy="it stays on this machine; have the build make fewer or smaller files",
        )
