"""`pull`: the entries that a list at a remote names, into a store or into a bundle.

Both the list and every entry are read as if an enemy had made them. An entry goes the way of every
publication: under its key's lock, whole or not at all.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_store import crash_points
from pypto_store.bundle.faults import BundleError, CodecMissing
from pypto_store.bundle.frame import codec
from pypto_store.layout import resolve
from pypto_store.locks import LockUnavailable
from pypto_store.outcomes import Failure, Hit, Invalid, Private, StorageError
from pypto_store.remote.arrival import fetch_entry
from pypto_store.remote.blob_store import BlobDigest, RemoteFault, RemoteProtocolError
from pypto_store.remote.collections import (
    DEFAULT_NAME,
    CollectionError,
    Listed,
    fetch_collection,
)
from pypto_store.removal import remove_tree
from pypto_store.store import ArtifactStore
from pypto_store.tools import remote_options
from pypto_store.tools.answer import Answer, CommandError, Status, Surroundings
from pypto_store.tools.bundle_input import add_scratch, scratch_directory
from pypto_store.tools.bundle_output import WrittenBundle, bundle_place, write_bundle
from pypto_store.tools.comparison import is_of_kernel
from pypto_store.tools.fates import Carried, Stopped, counts, painter
from pypto_store.tools.lanes import Lanes
from pypto_store.tools.output_file import STREAM
from pypto_store.tools.pushing import LANES, stopped
from pypto_store.tools.remote_options import OpenRemote, opened, remote_of
from pypto_store.tools.selection import add_choice, key_starting

if TYPE_CHECKING:
    from pypto_store.entry import Entry
    from pypto_store.outcomes import Lookup

_LOCK_SECONDS = 60.0


class PullFate(Enum):
    """What became of one entry on the list.

    PULLED: published. PRESENT: the store has what is listed. OTHER: the store has a valid entry of
    the same key and specification with other bytes, which stays. DAMAGED: its slot holds something
    invalid, which stays. MISSING: it is listed, and the remote has it not, or not any more.
    REJECTED: what the remote has is not that entry, or nobody trusted signed it. FAILED: the store
    could not take it.
    """

    PULLED = "pulled"
    PRESENT = "present"
    OTHER = "other"
    DAMAGED = "damaged"
    MISSING = "missing"
    REJECTED = "rejected"
    FAILED = "failed"


_TROUBLES = {PullFate.DAMAGED, PullFate.REJECTED, PullFate.FAILED}


class _Missing(Exception):
    """The remote has no such entry."""


@dataclass(slots=True)
class _Pull:
    """What was done so far. entries: those that the store has now, where they are listed."""

    carried: list[Carried[PullFate]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    stopped: Stopped | None = None

    @property
    def status(self) -> Status:
        troubled = any(item.fate in _TROUBLES for item in self.carried)
        return Status.FOUND if troubled or self.stopped is not None else Status.OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which list, and what of it."""
    parser.add_argument(
        "--as",
        dest="name",
        metavar="NAME",
        default=DEFAULT_NAME,
        help=f"the list that `push` left (default: {DEFAULT_NAME})",
    )
    chosen = parser.add_argument_group("what to get (default: every entry of the list)")
    add_choice(chosen)
    remote_options.add_arguments(parser, signs=False)
    add_scratch(parser)


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """Get what is chosen and not there; then write it into a bundle, if one is asked for."""
    if options.keys and options.kernel is not None:
        raise CommandError("say what to get by keys or by --kernel NAME, not by both")
    config = remote_of(options, surroundings)
    place = _bundle_place(options.bundle, surroundings)
    if surroundings.root:
        resolve(surroundings.root)  # refuses a root of another layout before anything is asked
    bundle = None
    with (
        scratch_directory(options.scratch, surroundings, "pypto-pull-") as scratch,
        opened(config) as remote,
    ):
        store = _writable(surroundings.root or f"{scratch}/root")
        listed = _chosen(_listed(remote, options.name), options, config.shown_url)
        done = _pull(listed, remote, store, f"{scratch}/private", surroundings)
        if place is not None:
            bundle = _write(done, place, surroundings)
    document = {
        "remote": config.shown_url,
        "collection": options.name,
        "counts": counts(done.carried, PullFate),
        "entries": [item.document() for item in done.carried],
        "stopped": None if done.stopped is None else done.stopped.reason,
        "left": 0 if done.stopped is None else done.stopped.left,
        "bundle": place,
        "bundle_size": None if bundle is None else bundle.size,
        "bundle_sha256": None if bundle is None else bundle.sha256,
    }
    lines = [] if bundle is None else [f"{place}: sha256 {bundle.sha256}"]
    return Answer(
        document,
        painter(done.carried, PullFate, lines),
        done.status,
        beside_data=place == STREAM,
        complaint="" if done.stopped is None else done.stopped.reason,
    )


def _bundle_place(given: str | None, surroundings: Surroundings) -> str | None:
    if given is None:
        return None
    try:
        codec()
    except CodecMissing as error:
        raise CommandError(str(error)) from None
    place = bundle_place(given, surroundings)
    if place != STREAM and not os.path.isdir(os.path.dirname(place)):
        raise CommandError(f"{os.path.dirname(place)} is no directory; name another place")
    return place


def _writable(root: str) -> ArtifactStore:
    """The store, with this process as one of its writers; CommandError where nobody can write."""
    store = ArtifactStore(Path(root), lock_timeout=_LOCK_SECONDS)
    try:
        # Keeps nothing. A cleaning that has the store for itself would otherwise be waited for
        # anew with every entry, and a place that is read-only found out about after the download.
        store.keep_evidence(())
    except LockUnavailable as error:
        if error.__cause__ is None:
            raise CommandError(str(error), Status.IN_USE) from None
        raise CommandError(
            f"{error}; name a store that you may write to, or pull into a file with --bundle"
        ) from None
    return store


def _listed(remote: OpenRemote, name: str) -> Sequence[Listed]:
    try:
        found = fetch_collection(remote.engine, remote.url, name, remote.trust)
    except CollectionError as error:
        raise CommandError(str(error)) from None
    if found is None:
        raise CommandError(
            f"{remote.url}: there is no collection {name!r}; push to it, or name another with --as",
            Status.FOUND,
        )
    return found.collection.entries


def _chosen(listed: Sequence[Listed], options: argparse.Namespace, url: str) -> Sequence[Listed]:
    if options.keys:
        keys = [item.key.digest.hex for item in listed]
        place, remedy = f"{url}: collection {options.name!r}", "name one that is on it"
        chosen = {key_starting(keys, prefix, place, remedy=remedy) for prefix in options.keys}
        return [item for item in listed if item.key.digest.hex in chosen]
    if options.kernel is None:
        return listed
    found = [item for item in listed if is_of_kernel(item.kernel, options.kernel)]
    if not found:
        raise CommandError(
            f"{url}: collection {options.name!r} names no kernel {options.kernel!r}", Status.FOUND
        )
    return found


def _pull(
    listed: Sequence[Listed],
    remote: OpenRemote,
    store: ArtifactStore,
    private: str,
    surroundings: Surroundings,
) -> _Pull:
    pulling = _Pulling(remote, store, Path(private))

    def work(number: int) -> tuple[int, _Arrival | Exception]:
        result = pulling.arrive(listed[number])
        if isinstance(result, Exception):
            lanes.stop()
        return number, result

    lanes = Lanes(work, LANES)
    arrived: dict[int, _Arrival] = {}
    trouble: Exception | None = None
    with surroundings.progress.of_bytes("pulling", sum(item.size for item in listed)) as advance:
        for number, result in lanes.run(range(len(listed))):
            if isinstance(result, Exception):
                trouble = trouble or result
                continue
            arrived[number] = result
            advance(listed[number].size)
            crash_points.reach("pull.entry")
    done = _Pull()
    for number in sorted(arrived):
        item, (fate, reason, entry) = listed[number], arrived[number]
        done.carried.append(Carried.of(item.key, item.spec, item.size, item.kernel, fate, reason))
        if entry is not None:
            done.entries.append(entry)
    if trouble is not None:
        done.stopped = stopped(trouble, len(listed) - len(arrived), len(listed))
    return done


# Fate, reason, and the entry that the store has now.
_Arrival = tuple[PullFate, str, "Entry | None"]


class _Pulling:
    """Brings single entries from a remote into a store."""

    def __init__(self, remote: OpenRemote, store: ArtifactStore, private: Path) -> None:
        self._remote = remote
        self._store = store
        self._private = private

    def arrive(self, listed: Listed) -> _Arrival | Exception:
        """The fate of one entry; or what would be the fate of all."""
        found = self._found(listed, self._store.lookup(listed.key, listed.spec))
        if found is not None:
            return found
        try:
            result = self._store.get_or_build(
                listed.key,
                listed.spec,
                lambda directory: self._fetch(listed, str(directory)),
                private_parent=self._private,
            )
        except _Missing:
            return PullFate.MISSING, "", None
        except RemoteProtocolError as fault:
            return PullFate.REJECTED, str(fault), None
        except (RemoteFault, OSError) as trouble:
            return trouble
        if isinstance(result, Private):
            remove_tree(str(result.path))
            invalid = result.failure is Failure.INVALID
            return (PullFate.DAMAGED if invalid else PullFate.FAILED), result.reason, None
        if isinstance(result, Hit):  # another process has just published it
            return _present(listed, result.entry)
        return PullFate.PULLED, "", result.entry

    def _found(self, listed: Listed, found: Lookup) -> _Arrival | None:
        match found:
            case Hit(entry):
                return _present(listed, entry)
            case Invalid(path, reason):
                return PullFate.DAMAGED, f"{path}: {reason}", None
            case StorageError(path, reason):
                return PullFate.FAILED, f"{path}: {reason}", None
        return None

    def _fetch(self, listed: Listed, directory: str) -> None:
        remote = self._remote
        manifest = fetch_entry(
            remote.engine, remote.url, listed.key, listed.spec, directory, remote.trust
        )
        if manifest is None:
            raise _Missing


def _present(listed: Listed, entry: Entry) -> _Arrival:
    if BlobDigest.of(entry.manifest.encode()).sha256 == listed.manifest:
        return PullFate.PRESENT, "", entry
    return PullFate.OTHER, f"{entry.directory} holds other bytes and stays", entry


def _write(done: _Pull, place: str, surroundings: Surroundings) -> WrittenBundle:
    if done.stopped is not None:
        raise CommandError(f"{done.stopped.reason}; no bundle is written")
    if not done.entries:
        raise CommandError(
            "nothing that is listed was to be had; no bundle is written", Status.FOUND
        )
    try:
        return write_bundle(done.entries, (), place, surroundings)
    except BundleError as error:
        raise CommandError(f"{place}: {error}") from None
