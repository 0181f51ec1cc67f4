"""A stored program whose files turn out to have changed: built anew, for this process alone.

Between the lookup that validated an entry and the first run, which loads it, any time may pass. The
files are compared once more then, and a kernel must not stop working for as long as the process
lives because somebody wrote into the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.storage import BinaryPaths, FileCheck, ProgramStorage
from pypto_store import Entry, EntryChanged
from pypto_store.flights import Flights


class StoredFileLost(RuntimeError):
    """A file of the entry in `slot` is not what was validated, or cannot be read.

    `damaged` is false where the entry may be as it was and the storage fails.
    """

    def __init__(self, slot: str, error: Exception) -> None:
        super().__init__(str(error))
        self.slot = slot
        self.damaged = isinstance(error, EntryChanged | FileNotFoundError | NotADirectoryError)


def file_check(entry: Entry) -> FileCheck:
    """What compares a file of `entry` once more, and raises StoredFileLost."""

    def check(file: str) -> None:
        try:
            entry.verify(file)
        except (EntryChanged, OSError) as error:
            raise StoredFileLost(entry.directory, error) from error

    return check


class RecoveringStorage:
    """A stored program, and what `rebuild` makes when its files are lost.

    Threads share one rebuild and its error; the next use after an error tries again. The directory
    for the program's own output stays what it was.
    """

    def __init__(
        self, stored: ProgramStorage, rebuild: Callable[[StoredFileLost], ProgramStorage]
    ) -> None:
        self._current = stored
        self._stored = stored
        self._rebuild = rebuild
        self._flights: Flights[ProgramStorage] = Flights()

    @property
    def directory(self) -> Path:
        """The program's public output directory."""
        return self._stored.directory

    @property
    def config(self) -> KernelConfig:
        """The kernels of the program."""
        return self._stored.config

    @property
    def artifact_key(self) -> str | None:
        """The key under which other processes find the program; None once it was rebuilt."""
        return self._current.artifact_key

    def complete(self) -> None:
        """Make sure that all binaries exist, loading none."""
        try:
            self._current.complete()
        except StoredFileLost as error:
            self._replaced(error).complete()

    @contextmanager
    def binaries(self, platform: str) -> Iterator[BinaryPaths]:
        """The binaries for a platform token; the files may be gone after the block."""
        with ExitStack() as stack:
            try:
                paths = stack.enter_context(self._current.binaries(platform))
            except StoredFileLost as error:
                paths = stack.enter_context(self._replaced(error).binaries(platform))
            yield paths

    def _replaced(self, error: StoredFileLost) -> ProgramStorage:
        def replace() -> ProgramStorage:
            # Another thread may have met the same damage a moment earlier.
            if self._current is self._stored:
                self._current = self._rebuild(error)
            return self._current

        return self._flights.run("rebuild", replace)
