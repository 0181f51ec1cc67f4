"""Sending entries to a remote and listing them there, as `push` and `warm --push` do.

Each entry is read and compared with its manifest first, and goes out blobs first and entry last: at
whatever moment this ends, what is there are whole entries, and running it again goes on. The list
is written last, so that it names nothing that is not there yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pypto_store import crash_points
from pypto_store.entry import EntryChanged
from pypto_store.outcomes import reason_of
from pypto_store.remote.blob_store import (
    CorruptBlob,
    RejectedEntry,
    RemoteFault,
    RemoteProtocolError,
)
from pypto_store.remote.collections import (
    Collection,
    CollectionError,
    FoundCollection,
    Listed,
    fetch_collection,
    put_collection,
)
from pypto_store.remote.sending import send_entry
from pypto_store.tools.answer import CommandError
from pypto_store.tools.fates import Carried, Stopped
from pypto_store.tools.lanes import Lanes
from pypto_store.tools.selection import payload_fault

if TYPE_CHECKING:
    from pypto_store.entry import Entry
    from pypto_store.remote_config import RemoteConfig
    from pypto_store.tools.answer import Progress
    from pypto_store.tools.remote_options import OpenRemote

# Entries under way: measured, eight are as fast as four beside the server, and twice as fast 20 ms
# away from it.
LANES = 8


class PushFate(Enum):
    """What became of one entry.

    SENT: the remote has it now. PRESENT: it had one that is as good. DAMAGED: it is not what its
    manifest says, and was not sent. FAILED: it cannot be read, or the remote cannot take it.
    """

    SENT = "sent"
    PRESENT = "present"
    DAMAGED = "damaged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Parcel:
    """An entry to be sent, and the kernel that it is of ("" where nothing tells it)."""

    entry: Entry
    kernel: str


@dataclass(frozen=True, slots=True)
class ListUpdate:
    """What became of the list: its name, how many entries it has, and how many of them are new.

    replaced: why the list that was there was not gone on with; "" if it was, or there was none.
    """

    name: str
    entries: int
    added: int
    signed: bool
    replaced: str = ""

    def document(self) -> dict[str, object]:
        """How it reads in JSON."""
        return {
            "name": self.name,
            "entries": self.entries,
            "added": self.added,
            "signed": self.signed,
            "replaced": self.replaced or None,
        }


@dataclass(frozen=True, slots=True)
class Push:
    """All that was done.

    bytes_sent: for entries; the list is not counted. update: None where it stopped before the list,
    or where there is nothing to list.
    """

    carried: list[Carried[PushFate]]
    bytes_sent: int
    stopped: Stopped | None
    update: ListUpdate | None

    @property
    def troubled(self) -> bool:
        """Whether something chosen is not at the remote now."""
        fates = {item.fate for item in self.carried}
        return self.stopped is not None or bool(fates & {PushFate.DAMAGED, PushFate.FAILED})


def refuse_unsigned(config: RemoteConfig) -> None:
    """CommandError for a remote that nothing may be sent to."""
    if config.readonly:
        raise CommandError(
            f"{config.shown_url}: this remote is configured to be read only; "
            "unset PYPTO_CACHE_REMOTE_READONLY, or name another"
        )
    if config.trusted_keys and config.signing_key is None:
        raise CommandError(
            f"{config.shown_url}: nothing is sent: entries need a signature by a trusted key, and "
            "there is no key to sign with; give --signing-key, or no trusted keys"
        )


def push(parcels: Sequence[Parcel], remote: OpenRemote, name: str, progress: Progress) -> Push:
    """Send the entries, and list them under `name`.

    CommandError before anything is sent: for a list that cannot be read, or that somebody signed
    while nobody signs this one. RemoteFault if the list cannot be written in the end.
    """
    _find_list(remote, name)

    def work(number: int) -> tuple[int, tuple[Carried[PushFate], int] | RemoteFault]:
        result = _send(parcels[number], remote)
        if isinstance(result, RemoteFault):
            lanes.stop()
        return number, result

    lanes = Lanes(work, LANES)
    done: dict[int, Carried[PushFate]] = {}
    fault: RemoteFault | None = None
    bytes_sent = 0
    total = sum(parcel.entry.manifest.payload_size for parcel in parcels)
    with progress.of_bytes("sending", total) as advance:
        for number, result in lanes.run(range(len(parcels))):
            if isinstance(result, RemoteFault):
                fault = fault or result
                continue
            done[number], sent = result
            bytes_sent += sent
            advance(done[number].size)
            crash_points.reach("push.entry")
    carried = [done[number] for number in sorted(done)]
    if fault is not None:
        stop = stopped(fault, len(parcels) - len(carried), len(parcels))
        return Push(carried, bytes_sent, stop, None)
    update = _list_entries(parcels, carried, remote, name)
    crash_points.reach("push.listed")
    return Push(carried, bytes_sent, None, update)


def _send(parcel: Parcel, remote: OpenRemote) -> tuple[Carried[PushFate], int] | RemoteFault:
    """The fate of one entry and the bytes sent; or a fault that would be every entry's."""
    entry = parcel.entry
    size = entry.manifest.payload_size

    def fate(fate: PushFate, reason: str = "", sent: int = 0) -> tuple[Carried[PushFate], int]:
        return Carried.of(entry.key, entry.spec, size, parcel.kernel, fate, reason), sent

    if (damage := payload_fault(entry.directory, entry.manifest)) is not None:
        return fate(PushFate.DAMAGED, damage)
    try:
        sent = send_entry(remote.engine, remote.url, entry, remote.trust, remote.signer)
    except EntryChanged as change:
        return fate(PushFate.DAMAGED, str(change))
    except OSError as error:
        return fate(PushFate.FAILED, reason_of(error))
    except RemoteProtocolError as fault:  # too large for it, for example
        return fate(PushFate.FAILED, str(fault))
    except RemoteFault as fault:
        return fault
    if sent.entry_sent or sent.blobs_sent:
        return fate(PushFate.SENT, sent=sent.bytes_sent)
    return fate(PushFate.PRESENT)


def stopped(trouble: Exception, left: int, total: int) -> Stopped:
    """Why a command ends before it has come to all entries."""
    done = total - left
    told = reason_of(trouble) if isinstance(trouble, OSError) else trouble
    return Stopped(f"{told}; {done} of {total} entries are done, run it again to go on", left)


def _find_list(remote: OpenRemote, name: str) -> tuple[FoundCollection | None, str]:
    """The list as it is, or why there is none to go on with; "" where simply nothing is there."""
    try:
        found = fetch_collection(remote.engine, remote.url, name, remote.trust)
    except CollectionError as error:
        raise CommandError(str(error)) from None
    except (RejectedEntry, CorruptBlob) as fault:
        return None, fault.reason
    except RemoteFault as fault:
        raise CommandError(str(fault)) from None
    if found is not None and found.signed and remote.signer is None:
        raise CommandError(
            f"{remote.url}: collection {name!r} is signed; sign it with --signing-key, or list the "
            "entries under another name with --as"
        )
    return found, ""


def _list_entries(
    parcels: Sequence[Parcel],
    carried: Sequence[Carried[PushFate]],
    remote: OpenRemote,
    name: str,
) -> ListUpdate | None:
    """Add what is at the remote now to the list, read afresh: others may have written it."""
    listed = [
        Listed.of(parcel.entry.manifest, parcel.kernel)
        for parcel, item in zip(parcels, carried, strict=True)
        if item.fate in (PushFate.SENT, PushFate.PRESENT)
    ]
    if not listed:
        return None
    found, replaced = _find_list(remote, name)
    before = Collection(name, ()) if found is None else found.collection
    try:
        after = before.with_entries(listed)
        signed = remote.signer is not None
        if found is None or found.signed != signed or after != before:
            put_collection(remote.engine, after, remote.signer)
    except CollectionError as error:
        raise CommandError(str(error)) from None
    added = len(after.entries) - len(before.entries)
    return ListUpdate(name, len(after.entries), added, signed, replaced)
