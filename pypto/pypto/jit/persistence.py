"""An enabled request with a key: restore from the store, or build and publish.

The order of looking is fixed. GENERATED's kernel table is the hint that names the READY entry; a
READY entry that does not validate leaves GENERATED to serve; only without a usable GENERATED are
the READY entries of the key discovered. What is found invalid is counted and left as it is.

A read-only root serves the best READY entry it has for this processor, a root that may be written
to only one for its very CPU level: the first user on a better processor improves it.

Only what is missing is asked of a remote, by the transaction that would build it: the root comes
first, and its READY hit asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pypto.ir.nodes import Program
from pypto.jit import log
from pypto.jit.artifacts import (
    GENERATED,
    ReadySpecs,
    meta_of,
    ready_payload,
    ready_spec,
)
from pypto.jit.building import Meter, Recipe
from pypto.jit.fitness import misfit
from pypto.jit.placement import fresh_directory, writing_below
from pypto.jit.private import PrivateBuilds
from pypto.jit.recovery import RecoveringStorage, StoredFileLost, file_check
from pypto.jit.snapshot import texts_now
from pypto.jit.statistics import Counter, Statistics
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.errors import ArtifactError
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.storage import (
    PayloadBuilder,
    PendingPayload,
    ProgramStorage,
    Publication,
)
from pypto_store import (
    ArtifactKey,
    ArtifactStore,
    Entry,
    EntryChanged,
    Failure,
    Fetched,
    Hint,
    Hit,
    Invalid,
    Miss,
    Private,
    Published,
    StorageError,
)


class _ToolsUnfit(Exception):
    """Why nothing that the tools make here may be published under the key."""


class _Misfit(Exception):
    """The valid entry in `slot` describes no artifact: its author, or a remote's, erred or lied."""

    def __init__(self, slot: Invalid) -> None:
        super().__init__(slot.reason)
        self.slot = slot


@contextmanager
def _read_as_artifact(entry: Entry) -> Iterator[None]:
    try:
        yield
    except ArtifactError as error:
        raise _Misfit(Invalid(entry.directory, str(error))) from error


def _check_fitness(entry: Entry) -> None:
    """StoredFileLost for an entry of binaries that describes none."""
    try:
        reason = misfit(entry.manifest, entry.directory)
    except OSError as error:
        raise StoredFileLost(entry.directory, error) from error
    if reason is not None:
        raise StoredFileLost(entry.directory, EntryChanged(f"{entry.directory}: {reason}"))


@dataclass(slots=True)
class Persistent:
    """One request at its store.

    `recheck` says why what was built may not be published; `patched` why the SDK is not what its
    revision says; `explain` leaves the key's readable inputs beside what was published. All cost
    more than a hit may, so only misses ask.
    """

    store: ArtifactStore
    key: ArtifactKey
    recipe: Recipe
    parent: Path
    meter: Meter
    statistics: Statistics
    recheck: Callable[[], str | None]
    patched: Callable[[], str | None]
    explain: Callable[[ArtifactStore], None]
    private: PrivateBuilds
    _rejected: set[str] = field(default_factory=set)
    _specs: ReadySpecs = field(default_factory=ReadySpecs)

    def restore_or_build(self) -> CompiledProgram:
        """The program: from READY, from GENERATED, or built now."""
        try:
            return self._restore_or_build()
        except EntryChanged as error:
            # Between its validation and the reading of its description, a moment later.
            self._reject(Invalid(f"an entry of {self.key.digest.hex}", str(error)))
        except _Misfit as error:
            self._reject(error.slot)
        return self.private.fresh()

    def _restore_or_build(self) -> CompiledProgram:
        ready = self._hinted_ready()
        if ready is not None:
            return self._from_ready(ready)
        generated = self._found(self.store.lookup_generated(self.key))
        if generated is not None:
            program = self._from_generated(generated, None)
            self.statistics.add(Counter.GENERATED_HITS)
            return program
        discovered = self._found(self.store.discover_ready(self.key, self._specs.derive))
        if discovered is not None:
            return self._from_ready(discovered)
        self.statistics.add(Counter.MISSES)
        return self._build()

    # -- looking ----------------------------------------------------------------------------

    def _hinted_ready(self) -> Entry | None:
        hint = self.store.read_hint(self.key)
        if not isinstance(hint, Hint):
            self._count(hint)
            return None
        try:
            spec = self._specs.derive(hint.data)
        except ValueError:
            return None
        found = self._found(self.store.lookup(self.key, spec))
        if found is None and self.store.readonly:
            # Whoever may write builds for this processor. Nobody will here, and what was built
            # for a lesser one runs too.
            for lesser in self._specs.lesser(hint.data):
                found = found or self._found(self.store.lookup(self.key, lesser))
        return found

    def _found(self, outcome: Hit | Miss | Invalid | StorageError) -> Entry | None:
        self._count(outcome)
        return outcome.entry if isinstance(outcome, Hit) else None

    def _count(self, outcome: Hit | Miss | Invalid | StorageError) -> None:
        """Count trouble; a slot that is met twice on the way is one invalid entry."""
        match outcome:
            case Invalid():
                self._reject(outcome)
            case Hit(_, rejected) | Miss(_, rejected):
                for slot in rejected:
                    self._reject(slot)
            case StorageError(path, reason):
                self._count_storage_error(f"{path}: {reason}")

    def _reject(self, slot: Invalid) -> None:
        if slot.path not in self._rejected:
            self._rejected.add(slot.path)
            self.statistics.add(Counter.INVALID_ENTRIES)
            log.invalid_entry(self.recipe.name, slot.path, slot.reason)

    def _count_storage_error(self, reason: str) -> None:
        self.statistics.add(Counter.STORAGE_ERRORS)
        log.storage_failed(self.recipe.name, reason)

    def _count_bypass(self, reason: str) -> None:
        self.statistics.bypass(reason)
        log.bypassed(self.recipe.name, reason)

    # -- restoring --------------------------------------------------------------------------

    def _from_ready(self, entry: Entry) -> CompiledProgram:
        with _read_as_artifact(entry):
            payload = ready_payload(
                entry, self._specs.config_of(entry), self._directory(), file_check(entry)
            )
            meta = meta_of(entry)
        self.statistics.add(Counter.READY_HITS)
        return CompiledProgram(
            RecoveringStorage(payload, self._rebuild),
            meta,
            sources=self.recipe.snapshot.source_map(),
        )

    def _from_generated(
        self, entry: Entry, program: Program | None, *, shared: bool = True
    ) -> CompiledProgram:
        with _read_as_artifact(entry):
            config = self._specs.config_of(entry)
            meta = meta_of(entry)
        payload = PendingPayload(
            entry.path,
            directory=self._directory(),
            config=config,
            compilers=self.recipe.compilers(),
            publish=lambda build: self._publish_ready(entry, config, build),
            artifact_key=self.key.digest.hex if shared else None,
        )
        return CompiledProgram(
            RecoveringStorage(payload, self._rebuild),
            meta,
            program=program,
            sources=self.recipe.snapshot.source_map(),
        )

    def _rebuild(self, lost: StoredFileLost) -> ProgramStorage:
        """What stands in for an entry that was lost after it had been validated."""
        if lost.damaged:
            self._reject(Invalid(lost.slot, str(lost)))
        else:
            self._count_storage_error(str(lost))
        return self.private.storage()

    def _directory(self) -> Path:
        return Path(fresh_directory(str(self.parent), self.recipe.name))

    # -- building ---------------------------------------------------------------------------

    def _build(self) -> CompiledProgram:
        recipe = self.recipe
        unfit = recipe.snapshot.mismatch() or recipe.externs.problem
        if unfit is not None:
            self._count_bypass(unfit)
            return self.private.fresh()
        texts = self.recipe.snapshot.texts()
        before = texts_now(texts)
        made: list[Program] = []

        def generate(directory: Path) -> None:
            # Not before the store had its say: what a remote has was made by tools elsewhere, and
            # there may be none here.
            if (reason := self.patched()) is not None:
                raise _ToolsUnfit(reason)
            self.meter.stage(
                Counter.GENERATION_BUILDS, lambda: made.append(self.recipe.generate(directory))
            )

        def recheck() -> str | None:
            if texts_now(texts) != before:
                return f"the source of kernel {self.recipe.name!r} changed during its build"
            return self.recheck()

        try:
            with writing_below(str(self.parent)):
                result = self.store.get_or_build(
                    self.key, GENERATED, generate, private_parent=self.parent, recheck=recheck
                )
        except _ToolsUnfit as error:
            self._count_bypass(str(error))
            return self.private.fresh()
        # Whoever did not build has no program to show, wherever the winner was.
        program = made[0] if made else None
        if isinstance(result, Private):
            self._count_failure(result.failure, result.reason)
            return self.private.at(result.path, program)
        shared = self._tell(result)
        if shared and not isinstance(result, Hit):
            self.explain(self.store)
        return self._from_generated(result.entry, program, shared=shared)

    def _publish_ready(
        self, sources: Entry, config: KernelConfig, build: PayloadBuilder
    ) -> Publication:
        """The binaries' own transaction: at the first execution, or at warmup.

        That may be long after the sources were validated, and READY vouches for what was made of
        them: they are validated again once they have been read. What cannot be compiled because it
        was damaged is no error of the kernel.
        """

        def check() -> None:
            now = self.store.look_again(sources)
            if not isinstance(now, Hit) or now.entry.manifest != sources.manifest:
                told = "has changed since it was validated; do not write into a store"
                raise StoredFileLost(sources.directory, EntryChanged(f"{sources.directory} {told}"))

        def compile_sources(directory: Path) -> None:
            try:
                self.meter.stage(Counter.BINARY_BUILDS, lambda: build(directory))
            except Exception:
                check()
                raise
            check()

        with writing_below(str(self.parent)):
            result = self.store.get_or_build(
                self.key,
                ready_spec(config),
                compile_sources,
                private_parent=self.parent,
                recheck=self.patched,
            )
        if isinstance(result, Private):
            self._count_failure(result.failure, result.reason)
            return Publication(result.path, shared=False)
        if isinstance(result, Hit):
            _check_fitness(result.entry)
        shared = self._tell(result)
        return Publication(result.entry.path, shared=shared, verify=file_check(result.entry))

    def _tell(self, result: Hit | Published | Fetched) -> bool:
        """Log and count how an entry was obtained; whether others find it in the root."""
        if not isinstance(result, Hit) and result.damaged_blobs:
            log.damaged_blobs(self.recipe.name, result.damaged_blobs)
        if not isinstance(result, Fetched):
            return True
        manifest = result.entry.manifest
        log.fetched(self.recipe.name, manifest.spec.state.value, manifest.payload_size)
        self._count_failure(result.failure, result.reason)
        return not result.private

    def _count_failure(self, failure: Failure | None, reason: str) -> None:
        match failure:
            case Failure.STORAGE | Failure.LOCK:
                self._count_storage_error(reason)
            case Failure.PUBLICATION:
                self._count_bypass(reason)
            case Failure.INVALID | None:
                pass  # Met and counted when it was looked up, or simply read-only.
