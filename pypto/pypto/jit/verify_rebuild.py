"""Building an entry once more, privately, and comparing.

Nothing below the root is written or locked: entries are read as any reader reads them, copied to a
temporary directory, and built there. What cannot be built here as it was built is not compared, and
says why: a difference then would tell nothing about reproducibility.
"""

from __future__ import annotations

import enum
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pypto.ir.errors import CompileError
from pypto.jit.artifacts import FORMAT
from pypto.jit.building import Recipe
from pypto.jit.evidence import environment_inputs
from pypto.jit.placement import TEMPORARY_VARIABLE, temporary_parent
from pypto.jit.surroundings import Surroundings
from pypto.jit.toolchain import Toolchain
from pypto.jit.verify_difference import FileDifference, differences
from pypto.language.parser.diagnostics.exceptions import ParserError
from pypto.runtime import kernel_config
from pypto.runtime.binary_build import build_payload
from pypto.runtime.cpu_level import compiles_for
from pypto.runtime.errors import ArtifactError, BinaryError, ToolchainUnavailable
from pypto.runtime.host import host_compilers, selected_sdk
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.sdk import SdkError
from pypto_store import ArtifactKey, Entry, EntryChanged
from pypto_store.evidence import EvidenceRecord
from pypto_store.listing import EntryRow
from pypto_store.tools.comparison import EvidenceShelf, input_differences
from pypto_store.tools.selection import payload_fault
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identity import ToolchainIdentity
from pypto_toolchains.process import ToolError, ToolFailed

_NAMED = 2  # inputs of another environment
_VALUE = 40  # characters of one


class Outcome(enum.Enum):
    """What became of a comparison."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_COMPARABLE = "not_comparable"

    @property
    def words(self) -> str:
        """How it reads in a sentence."""
        return self.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of one entry after it was built again.

    `reason` says why it is not comparable, or why building it failed; `differences` which files
    are others. Both are empty exactly where the entry is equal.
    """

    outcome: Outcome
    reason: str | None = None
    differences: tuple[FileDifference, ...] = ()


class NotComparable(Exception):
    """Why an entry cannot be built here as it was built."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where entries are built again: with which tools, in which environment, beside which root.

    `machine` is the processor's architecture as uname has it.
    """

    toolchain: Toolchain
    shelf: EvidenceShelf
    world: Surroundings
    root: str
    machine: str

    @property
    def temporary(self) -> str:
        """Where temporary files go, which is not in the cache."""
        return temporary_parent(self.world.environ, self.root)

    @property
    def tool_environ(self) -> Mapping[str, str]:
        """What tools are given."""
        return {**self.world.tools, TEMPORARY_VARIABLE: self.temporary}

    def ready(
        self,
        row: EntryRow,
        generated: EntryRow | None,
        *,
        workers: int,
        cancelled: threading.Event,
    ) -> Verdict:
        """Build a READY entry's payload from the sources beside it, and compare all its files.

        At most `workers` compilers run at a time. Setting `cancelled`, which belongs to this
        call, kills them.
        """

        def rebuild(directory: Path) -> Verdict:
            kept = _validated(row, "the entry")
            sources = _validated(generated, "its GENERATED entry")
            config = _kernel_table(sources)
            level = self._level(kept)
            self._require_this_environment(kept.key, config.platform)
            sources.materialize(directory / "sources")
            payload = directory / "payload"
            payload.mkdir()
            compilers = host_compilers(environ=self.tool_environ, cpu_level=level)
            build_payload(
                directory / "sources",
                compilers(config.platform, config.runtime),
                payload,
                workers=workers,
                cancelled=cancelled,
            )
            return _verdict(differences(kept, _files(payload)))

        return self._judged(rebuild)

    def sources(self, row: EntryRow | None, recipe: Recipe) -> Verdict:
        """Make the sources of a GENERATED entry from Python again, and compare them all."""

        def regenerate(directory: Path) -> Verdict:
            kept = _validated(row, "the entry")
            self._require_this_environment(kept.key, _kernel_table(kept).platform)
            made = directory / "sources"
            recipe.generate(made)
            return _verdict(differences(kept, _files(made)))

        return self._judged(regenerate)

    def _judged(self, work: Callable[[Path], Verdict]) -> Verdict:
        try:
            with tempfile.TemporaryDirectory(prefix="pypto-verify-", dir=self.temporary) as name:
                return work(Path(name))
        except (NotComparable, EntryChanged, ToolchainUnavailable, SdkError) as error:
            return Verdict(Outcome.NOT_COMPARABLE, str(error))
        except (ToolFailed, BinaryError, ParserError, CompileError) as error:
            # These tools made it before.
            return Verdict(Outcome.DIFFERENT, f"it cannot be built again: {error}")
        except (ToolError, OSError) as error:
            return Verdict(Outcome.NOT_COMPARABLE, f"it could not be built: {error}")

    def _level(self, kept: Entry) -> str:
        level = kept.spec.cpu_level
        if level is None or level not in selected_sdk(self.world.tools).cpu_levels:
            raise NotComparable(f"the SDK here has no CPU level {level!r}")
        if not compiles_for(level, self.machine):
            raise NotComparable(
                f"it is for CPU level {level}, for which no host compiler of {self.machine} builds"
            )
        return level

    def _require_this_environment(self, key: ArtifactKey, platform: str) -> None:
        """Raise NotComparable unless the tools of `key` are those that would build it now."""
        if key.format != FORMAT:
            raise NotComparable("another version of pypto made it, in another format of artifacts")
        asked = self.world.question(platform, self.root)
        identity = self.toolchain.identity(asked)
        if isinstance(identity, Unavailable):
            raise NotComparable(f"the tools here have no identity: {identity}")
        if identity.digest != key.environment:
            raise NotComparable(self._environment_difference(key, identity))
        changed = self.toolchain.changed(asked)
        if changed is not None:
            raise NotComparable(changed)

    def _environment_difference(self, key: ArtifactKey, identity: ToolchainIdentity) -> str:
        told = "it was made by other tools, or under another identity policy or epoch"
        kept = self.shelf.of(key.environment)
        if not isinstance(kept, EvidenceRecord):
            return told
        here = EvidenceRecord.of("environment", identity.digest, environment_inputs(identity))
        found = list(input_differences(kept, here))
        named = "; ".join(
            f"{item.of} {item.name}: {_shown(item.before)} -> {_shown(item.after)}"
            for item in found[:_NAMED]
        )
        more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        return f"{told} ({named}{more})" if named else told


def _shown(value: str | None) -> str:
    if value is None:
        return "nothing"
    line = value.partition("\n")[0]
    return line if len(line) <= _VALUE else f"{line[: _VALUE - 3]}..."


def _validated(row: EntryRow | None, what: str) -> Entry:
    if row is None:
        raise NotComparable(f"{what} is not in the root")
    fault = row.damage if row.manifest is None else payload_fault(row.path, row.manifest)
    if row.manifest is None or fault is not None:
        raise NotComparable(f"{what} is damaged: {fault}; see `python -m pypto_store fsck`")
    return Entry(row.path, row.manifest)


def _kernel_table(sources: Entry) -> KernelConfig:
    try:
        return KernelConfig.parse(sources.read(kernel_config.FILE_NAME), str(sources.path))
    except (KeyError, ArtifactError) as error:
        raise NotComparable(f"its sources have no usable kernel table: {error}") from error


def _files(directory: Path) -> dict[str, bytes]:
    """Every file below a directory by its relative path."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def _verdict(found: tuple[FileDifference, ...]) -> Verdict:
    return Verdict(Outcome.DIFFERENT if found else Outcome.EQUAL, None, found)
