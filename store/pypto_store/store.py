"""The store: looking artifacts up, and building those that are not there exactly once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_store.discovery import HINT_LIMIT, HINT_NAME, discover
from pypto_store.entry import Entry
from pypto_store.flights import Flights
from pypto_store.keys import State
from pypto_store.layout import resolve
from pypto_store.locks import WriterLease, acquire, try_acquire
from pypto_store.outcomes import Hint, Hit, Invalid, Miss, StorageError, reason_of
from pypto_store.validation import PYTHON_VALIDATOR, SlotFault, open_slot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pypto_store.discovery import DeriveSpec
    from pypto_store.evidence import EvidenceRecord
    from pypto_store.keys import ArtifactKey, ArtifactSpec
    from pypto_store.layout import Layout
    from pypto_store.locks import FileLock
    from pypto_store.outcomes import BuildResult, Lookup
    from pypto_store.remote_store import Remote
    from pypto_store.validation import Validator

# Longer than any build of one kernel: a waiter that gives up compiles a second time.
LOCK_TIMEOUT = 3600.0


class ArtifactStore:
    """One root as one process uses it. Safe for threads and across fork.

    root: any directory; a relative one is taken from the working directory now. Nothing is
        touched before the first operation.
    readonly: never write, lock or create anything under the root.
    lock_timeout: seconds to wait for another builder of the same key.
    validator: who proves entries valid; a faster one than the standard library's may be given.
    remote: who is asked before something is built, and offered what was published. Nobody asks it
        for what is here, or for what is damaged here.

    Keep one object per root: overlapping builds share one flight per object.
    """

    def __init__(
        self,
        root: Path,
        *,
        readonly: bool = False,
        lock_timeout: float = LOCK_TIMEOUT,
        validator: Validator = PYTHON_VALIDATOR,
        remote: Remote | None = None,
    ) -> None:
        self._remote = remote
        self._validator = validator
        self._given_root = os.path.abspath(os.fspath(root))
        self._readonly = readonly
        self._lock_timeout = lock_timeout
        self._layout: Layout | None = None
        self._lease = WriterLease()
        self._flights: Flights[BuildResult] = Flights()

    @property
    def root(self) -> Path:
        """The absolute root as given."""
        return Path(self._given_root)

    @property
    def readonly(self) -> bool:
        """Whether this object never writes."""
        return self._readonly

    # -- looking up -------------------------------------------------------------------------

    def lookup(self, key: ArtifactKey, spec: ArtifactSpec) -> Lookup:
        """The entry of `key` and `spec`, validated completely. Writes nothing."""
        return self._look(lambda: (self.layout().slot(key, spec), spec, spec.state), key)

    def look_again(self, entry: Entry) -> Lookup:
        """What is now where `entry` was found, in this store or privately; validated completely."""
        key, spec = entry.key, entry.spec
        return self._look(lambda: (entry.directory, spec, spec.state), key)

    def lookup_generated(self, key: ArtifactKey) -> Lookup:
        """The GENERATED entry of `key`, whatever its specification says. Writes nothing."""
        return self._look(lambda: (self.layout().generated(key), None, State.GENERATED), key)

    def read_hint(self, key: ArtifactKey) -> Hint | Miss | Invalid | StorageError:
        """GENERATED's kernel_config.json, checked against its manifest; nothing else is read."""
        try:
            slot = self.layout().generated(key)
        except OSError as error:
            return StorageError(self._given_root, reason_of(error))
        try:
            descriptor = open_slot(slot)
            if descriptor is None:
                return Miss()
            try:
                data = self._validator.read_file(
                    descriptor, key, State.GENERATED, HINT_NAME, HINT_LIMIT
                )
            finally:
                os.close(descriptor)
            return Invalid(slot, f"the entry has no {HINT_NAME}") if data is None else Hint(data)
        except SlotFault as fault:
            return Invalid(slot, fault.reason)
        except OSError as error:
            return StorageError(slot, reason_of(error))

    def discover_ready(self, key: ArtifactKey, derive_spec: DeriveSpec) -> Lookup:
        """The only valid READY entry of `key` when no hint names it. Writes nothing.

        `derive_spec` makes the specification from a candidate's kernel_config.json and raises
        ValueError if it cannot. More than 32 candidates are a Miss and none is opened; two valid
        ones are Invalid. Damaged candidates are listed in `rejected` of a Hit or a Miss.
        """
        try:
            return discover(self.layout(), key, derive_spec, self._validator)
        except OSError as error:
            return StorageError(self._given_root, reason_of(error))

    def _look(
        self, place: Callable[[], tuple[str, ArtifactSpec | None, State]], key: ArtifactKey
    ) -> Lookup:
        slot = self._given_root
        try:
            slot, spec, state = place()
            descriptor = open_slot(slot)
            if descriptor is None:
                return Miss()
            try:
                manifest, kept = self._validator.validate(descriptor, key, spec, state)
            finally:
                os.close(descriptor)
        except SlotFault as fault:
            return Invalid(slot, fault.reason)
        except OSError as error:
            return StorageError(slot, reason_of(error))
        return Hit(Entry(slot, manifest, kept))

    def layout(self) -> Layout:
        """The layout under the resolved root, remembered once that is marked; OSError."""
        layout = self._layout
        if layout is None:
            layout, marked = resolve(self._given_root)
            if marked:
                self._layout = layout
        return layout

    # -- building ---------------------------------------------------------------------------

    def get_or_build(
        self,
        key: ArtifactKey,
        spec: ArtifactSpec,
        build: Callable[[Path], None],
        *,
        private_parent: Path,
        recheck: Callable[[], str | None] | None = None,
    ) -> BuildResult:
        """The entry of `key` and `spec`, from here, from the remote, or built by `build`.

        One process and thread builds; the others wait for it.

        build: fills the empty directory it is given. What it raises is raised here, and to every
            overlapping caller of this process; nothing is kept of that build.
        private_parent: where build directories are made (created if need be, mode 0700). After a
            publication the build directory is gone; with Private it is the caller's. OSError if
            no directory can be made there: then nothing was built.
        recheck: asked after the build; a reason it returns keeps the build private.

        Private means that a build was made and could not, or may not, become an entry. What the
        remote had may be kept out of the store for the same reasons (see Fetched).
        """
        hit = self.lookup(key, spec)
        if isinstance(hit, Hit):
            return hit
        name = (key.digest.hex, spec.digest.hex)
        # Threads, ctypes and the rest of the writing side are not needed by a hit.
        from pypto_store.building import Build

        flight = Build(key, spec, build, private_parent, recheck, self._remote)
        return self._flights.run(name, lambda: flight.obtain(self))

    def try_writer_lock(self, key: ArtifactKey) -> FileLock | None:
        """Take part as a writer and lock everything under `key`; None if somebody has locked it.

        LockUnavailable if either lock cannot be had, OSError if the root cannot be read.
        """
        return try_acquire(self._as_writer().key_lock(key), shared=False)

    def wait_for_writer(self, key: ArtifactKey, *, shared: bool) -> FileLock:
        """The lock on everything under `key`, after whoever holds it; errors as above.

        shared: with everyone else who waits this way, to look at what was published; otherwise
            alone, to publish.
        """
        return acquire(self._as_writer().key_lock(key), shared=shared, timeout=self._lock_timeout)

    def keep_evidence(self, records: Iterable[EvidenceRecord]) -> None:
        """Leave readable inputs of an entry just published, for people who ask why a key differs.

        No entry depends on them. A read-only store keeps none. OSError and LockUnavailable say
        that they were not kept, which loses explanations only.
        """
        if not self._readonly:
            from pypto_store.evidence import keep

            keep(self._as_writer(), records)

    def _as_writer(self) -> Layout:
        layout = self.layout()
        self._lease.hold(layout.store_lock, self._lock_timeout)
        return layout
