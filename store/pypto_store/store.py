"""The store: looking artifacts up, and building those that are not there exactly once."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from pypto_store import crash_points
from pypto_store.discovery import HINT_LIMIT, HINT_NAME, DeriveSpec, discover
from pypto_store.entry import Entry
from pypto_store.flights import Flights
from pypto_store.keys import ArtifactKey, ArtifactSpec, State
from pypto_store.layout import DIRECTORY_MODE, Layout, make_directories, resolve
from pypto_store.locks import FileLock, LockUnavailable, WriterLease, acquire
from pypto_store.outcomes import (
    BuildResult,
    Failure,
    Hint,
    Hit,
    Invalid,
    Lookup,
    Miss,
    Private,
    Published,
    StorageError,
)
from pypto_store.validation import (
    SlotFault,
    open_slot,
    read_checked,
    read_manifest,
    validate_slot,
)

# Longer than any build of one kernel: a waiter that gives up compiles a second time.
LOCK_TIMEOUT = 3600.0

Builder = Callable[[Path], None]
Recheck = Callable[[], "str | None"]


class ArtifactStore:
    """One root as one process uses it. Safe for threads and across fork.

    root: any directory; a relative one is taken from the working directory now. Nothing is
        touched before the first operation.
    readonly: never write, lock or create anything under the root.
    lock_timeout: seconds to wait for another builder of the same key.

    Keep one object per root: overlapping builds share one flight per object.
    """

    def __init__(
        self, root: Path, *, readonly: bool = False, lock_timeout: float = LOCK_TIMEOUT
    ) -> None:
        self._given_root = os.path.abspath(os.fspath(root))
        self._readonly = readonly
        self._lock_timeout = lock_timeout
        self._layout: Layout | None = None
        self._lease: WriterLease | None = None
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
        return self._look(lambda layout: (layout.slot(key, spec), spec, spec.state), key)

    def lookup_generated(self, key: ArtifactKey) -> Lookup:
        """The GENERATED entry of `key`, whatever its specification says. Writes nothing."""
        return self._look(lambda layout: (layout.generated(key), None, State.GENERATED), key)

    def read_hint(self, key: ArtifactKey) -> Hint | Miss | Invalid | StorageError:
        """GENERATED's kernel_config.json, checked against its manifest; nothing else is read."""
        try:
            slot = self._resolved().generated(key)
        except OSError as error:
            return StorageError(self._given_root, _said(error))
        try:
            descriptor = open_slot(slot)
            if descriptor is None:
                return Miss()
            try:
                manifest = read_manifest(descriptor, key, None)
                record = manifest.find(HINT_NAME)
                if manifest.spec.state is not State.GENERATED or record is None:
                    return Invalid(slot, f"the entry has no {HINT_NAME}")
                return Hint(read_checked(descriptor, record, HINT_LIMIT))
            finally:
                os.close(descriptor)
        except SlotFault as fault:
            return Invalid(slot, fault.reason)
        except OSError as error:
            return StorageError(slot, _said(error))

    def discover_ready(self, key: ArtifactKey, derive_spec: DeriveSpec) -> Lookup:
        """The only valid READY entry of `key` when no hint names it. Writes nothing.

        `derive_spec` makes the specification from a candidate's kernel_config.json and raises
        ValueError if it cannot. More than 32 candidates are a Miss and none is opened; two valid
        ones are Invalid. Damaged candidates are listed in `rejected` of a Hit or a Miss.
        """
        try:
            return discover(self._resolved(), key, derive_spec)
        except OSError as error:
            return StorageError(self._given_root, _said(error))

    def _look(
        self,
        place: Callable[[Layout], tuple[str, ArtifactSpec | None, State]],
        key: ArtifactKey,
    ) -> Lookup:
        slot = self._given_root
        try:
            slot, spec, state = place(self._resolved())
            descriptor = open_slot(slot)
            if descriptor is None:
                return Miss()
            try:
                manifest, kept = validate_slot(descriptor, key, spec, state)
            finally:
                os.close(descriptor)
        except SlotFault as fault:
            return Invalid(slot, fault.reason)
        except OSError as error:
            return StorageError(slot, _said(error))
        return Hit(Entry(slot, manifest, kept))

    def _resolved(self) -> Layout:
        """The layout under the resolved root; remembered once the root is marked."""
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
        build: Builder,
        *,
        private_parent: Path,
        recheck: Recheck | None = None,
    ) -> BuildResult:
        """The entry of `key` and `spec`, built by `build` if need be, by one process and thread.

        build: fills the empty directory it is given. What it raises is raised here, and to every
            overlapping caller of this process; nothing is kept of that build.
        private_parent: where build directories are made (created if need be, mode 0700). After a
            publication the build directory is gone; with Private it is the caller's.
        recheck: asked after the build; a reason it returns keeps the build private.

        Private means that a build was made and could not, or may not, become an entry.
        """
        hit = self.lookup(key, spec)
        if isinstance(hit, Hit):
            return hit
        name = (key.digest.hex, spec.digest.hex)
        return self._flights.run(
            name, lambda: _Build(key, spec, build, private_parent, recheck).obtain(self)
        )

    def _writer_lock(self, key: ArtifactKey) -> FileLock:
        layout = self._resolved()
        lease = self._lease
        if lease is None:
            lease = self._lease = WriterLease(layout.store_lock)
        lease.hold(self._lock_timeout)
        return acquire(layout.key_lock(key), shared=False, timeout=self._lock_timeout)


class _Build:
    """One call of get_or_build that leads its flight."""

    def __init__(
        self,
        key: ArtifactKey,
        spec: ArtifactSpec,
        build: Builder,
        private_parent: Path,
        recheck: Recheck | None,
    ) -> None:
        self._key = key
        self._spec = spec
        self._build = build
        self._private_parent = os.path.abspath(os.fspath(private_parent))
        self._recheck = recheck
        self._made_parents: list[str] = []

    def obtain(self, store: ArtifactStore) -> BuildResult:
        """Look again, and build if there is still nothing."""
        found = store.lookup(self._key, self._spec)
        if isinstance(found, Hit):
            return found
        if not isinstance(found, Miss) or store.readonly:
            return self._stay_private(found)
        try:
            lock = store._writer_lock(self._key)
        except LockUnavailable as error:
            return self._private(Failure.LOCK, str(error))
        except OSError as error:
            return self._private(Failure.STORAGE, _said(error))
        with lock:
            crash_points.reach("build.locked")
            found = store.lookup(self._key, self._spec)
            if isinstance(found, Hit):
                return found
            if not isinstance(found, Miss):
                return self._stay_private(found)
            result = self._publish(store, lock)
        crash_points.reach("build.released")
        return result

    def _stay_private(self, found: Miss | Invalid | StorageError) -> Private:
        match found:
            case Invalid(path, reason):
                return self._private(Failure.INVALID, f"{path} is invalid: {reason}")
            case StorageError(path, reason):
                return self._private(Failure.STORAGE, f"{path}: {reason}")
        return self._private(None, "the store is read-only")

    def _publish(self, store: ArtifactStore, lock: FileLock) -> BuildResult:
        # ctypes and the rest of the writing side are not needed by a hit.
        from pypto_store.publication import UnfitPayload, publish

        directory = self._fill()
        crash_points.reach("build.built")
        private = Path(directory)
        if (reason := self._ask_recheck(directory)) is not None:
            return Private(private, Failure.PUBLICATION, reason)
        if not lock.owned():
            return Private(private, Failure.LOCK, "the builder forked, and this is the child")
        layout = store._resolved()
        try:
            outcome = publish(layout, self._key, self._spec, directory)
        except UnfitPayload as error:
            return Private(private, Failure.PUBLICATION, str(error))
        except FileExistsError:
            return self._yield_to(store.lookup(self._key, self._spec), private)
        except OSError as error:
            return Private(private, Failure.STORAGE, f"cannot publish: {_said(error)}")
        except BaseException:
            self._discard(directory)
            raise
        self._discard(directory)
        entry = Entry(layout.slot(self._key, self._spec), outcome.manifest, outcome.small_files)
        return Published(entry, outcome.shared_bytes, outcome.damaged_blobs)

    def _yield_to(self, found: Lookup, private: Path) -> BuildResult:
        """Someone took the slot in spite of the lock (a file system that only pretends to lock)."""
        if isinstance(found, Hit):
            self._discard(os.fspath(private))
            return found
        if isinstance(found, (Invalid, StorageError)):
            failure = Failure.INVALID if isinstance(found, Invalid) else Failure.STORAGE
            return Private(private, failure, f"{found.path}: {found.reason}")
        return Private(private, Failure.STORAGE, "the slot was taken and is gone again")

    def _private(self, failure: Failure | None, reason: str) -> Private:
        directory = self._fill()
        # Nothing is published, so what the recheck says cannot change the result.
        return Private(Path(directory), failure, reason)

    def _ask_recheck(self, directory: str) -> str | None:
        try:
            return None if self._recheck is None else self._recheck()
        except BaseException:
            self._discard(directory)
            raise

    def _fill(self) -> str:
        """Run the builder in a new private directory; on failure nothing remains."""
        directory = self._fresh_directory()
        try:
            self._build(Path(directory))
        except BaseException:
            self._discard(directory)
            raise
        return directory

    def _fresh_directory(self) -> str:
        directory = f"{self._private_parent}/{self._key.digest.hex[:16]}-{os.urandom(8).hex()}"
        while True:
            self._made_parents += make_directories(self._private_parent)
            # Another build may just have removed the parent that it had made.
            with contextlib.suppress(FileNotFoundError):
                os.mkdir(directory, DIRECTORY_MODE)
                return directory

    def _discard(self, directory: str) -> None:
        """Remove the build directory, and the parents made for it unless others use them now."""
        shutil.rmtree(directory, ignore_errors=True)
        with contextlib.suppress(OSError):
            for parent in reversed(self._made_parents):
                os.rmdir(parent)


def _said(error: OSError) -> str:
    return f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
