"""One request for an entry that may have to be built: under lock, privately, then published.

    look again -> lock, or wait and look again -> look again -> build -> recheck -> publish

Where there is a remote it is asked before building, and offered what was published once the lock
is released. A store that cannot be written asks it, too, and then what arrives stays private. What
is damaged in the store is nobody's business but the store's: then nothing is asked.

Every way out leaves the lock released and either no build directory or one that the caller owns.
Imported only on a miss.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_store import crash_points
from pypto_store.build_directory import BuildDirectory
from pypto_store.entry import Entry
from pypto_store.locks import LockUnavailable
from pypto_store.outcomes import (
    Failure,
    Fetched,
    Hit,
    Invalid,
    Miss,
    Private,
    Published,
    StorageError,
    reason_of,
)
from pypto_store.publication import SlotTaken, publish
from pypto_store.staging import UnfitPayload

if TYPE_CHECKING:
    from collections.abc import Callable

    from pypto_store.fetching import Arrival
    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.locks import FileLock
    from pypto_store.outcomes import BuildResult, Lookup
    from pypto_store.remote_store import Remote
    from pypto_store.store import ArtifactStore


class Build:
    """One call of get_or_build that leads its flight."""

    def __init__(
        self,
        key: ArtifactKey,
        spec: ArtifactSpec,
        build: Callable[[Path], None],
        private_parent: Path,
        recheck: Callable[[], str | None] | None,
        remote: Remote | None,
    ) -> None:
        self._key = key
        self._spec = spec
        self._build = build
        self._private_parent = os.path.abspath(os.fspath(private_parent))
        self._recheck = recheck
        self._remote = remote

    def obtain(self, store: ArtifactStore) -> BuildResult:
        """Look again, and build if there is still nothing."""
        found = store.lookup(self._key, self._spec)
        if isinstance(found, Hit):
            return found
        if not isinstance(found, Miss) or store.readonly:
            return self._stay_private(found)
        try:
            lock = store.try_writer_lock(self._key)
            if lock is None:
                # Its holder is building, most likely this very entry. Waiting for a shared lock
                # lets all who wait wake at once and look side by side; for exclusive locks they
                # would queue, each behind the validation of the one before it.
                with store.wait_for_writer(self._key, shared=True):
                    found = store.lookup(self._key, self._spec)
                if isinstance(found, Hit):
                    return found
                lock = store.wait_for_writer(self._key, shared=False)
        except LockUnavailable as error:
            return self._aside(Failure.LOCK, str(error))
        except OSError as error:
            return self._aside(Failure.STORAGE, reason_of(error))
        with lock:
            crash_points.reach("build.locked")
            found = store.lookup(self._key, self._spec)
            if isinstance(found, Hit):
                return found
            if not isinstance(found, Miss):
                return self._stay_private(found)
            result = self._publish_fetched(store) or self._publish(store, lock)
        crash_points.reach("build.released")
        if self._remote is not None and isinstance(result, Published):
            self._remote.offer(result.entry)
            crash_points.reach("offer.done")
        return result

    def _stay_private(self, found: Miss | Invalid | StorageError) -> Fetched | Private:
        match found:
            case Invalid(path, reason):
                return self._private(Failure.INVALID, f"{path} is invalid: {reason}")
            case StorageError(path, reason):
                return self._aside(Failure.STORAGE, f"{path}: {reason}")
        return self._aside(None, "the store is read-only")

    def _aside(self, failure: Failure | None, reason: str) -> Fetched | Private:
        """What the remote has, or a build; neither becomes part of the store."""
        arrival = self._ask()
        kept = None if arrival is None else arrival.keep(failure, reason)
        return kept or self._private(failure, reason)

    def _ask(self) -> Arrival | None:
        if self._remote is None:
            return None
        from pypto_store.fetching import ask

        return ask(self._remote, self._key, self._spec, self._private_parent)

    def _publish_fetched(self, store: ArtifactStore) -> Fetched | Hit | None:
        arrival = self._ask()
        return None if arrival is None else arrival.publish(store)

    def _publish(self, store: ArtifactStore, lock: FileLock) -> BuildResult:
        built = self._fill()
        crash_points.reach("build.built")
        if (reason := self._ask_recheck(built)) is not None:
            return Private(Path(built.keep()), Failure.PUBLICATION, reason)
        if not lock.owned():
            reason = "the builder forked, and this is the child"
            return Private(Path(built.keep()), Failure.LOCK, reason)
        try:
            layout = store.layout()
            outcome = publish(layout, self._key, self._spec, built.path)
        except UnfitPayload as error:
            return Private(Path(built.keep()), Failure.PUBLICATION, str(error))
        except SlotTaken:
            return self._yield_to(store.lookup(self._key, self._spec), built)
        except OSError as error:
            reason = f"cannot publish: {reason_of(error)}"
            return Private(Path(built.keep()), Failure.STORAGE, reason)
        except BaseException:
            built.discard()
            raise
        built.discard()
        entry = Entry(layout.slot(self._key, self._spec), outcome.manifest, outcome.small_files)
        return Published(entry, outcome.shared_bytes, outcome.damaged_blobs)

    def _yield_to(self, found: Lookup, built: BuildDirectory) -> BuildResult:
        """Someone took the slot in spite of the lock (a file system that only pretends to lock)."""
        if isinstance(found, Hit):
            built.discard()
            return found
        private = Path(built.keep())
        if isinstance(found, (Invalid, StorageError)):
            failure = Failure.INVALID if isinstance(found, Invalid) else Failure.STORAGE
            return Private(private, failure, f"{found.path}: {found.reason}")
        return Private(private, Failure.STORAGE, "the slot was taken and is gone again")

    def _private(self, failure: Failure | None, reason: str) -> Private:
        # Nothing is published, so what the recheck says cannot change the result.
        return Private(Path(self._fill().keep()), failure, reason)

    def _ask_recheck(self, built: BuildDirectory) -> str | None:
        try:
            return None if self._recheck is None else self._recheck()
        except BaseException:
            built.discard()
            raise

    def _fill(self) -> BuildDirectory:
        """Run the builder in a new private directory; on failure nothing remains."""
        built = BuildDirectory(self._private_parent, self._key.digest.hex[:16])
        try:
            self._build(Path(built.path))
        except BaseException:
            built.discard()
            raise
        return built
