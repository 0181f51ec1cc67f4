"""``python -m pypto.jit complete``: the binaries of all programs whose sources a root has.

For chosen CPU levels, this machine's own unless some are named: a root that is made for other
machines must not depend on the processor that made it. Needs neither the kernels' modules nor
torch, because GENERATED holds all that a compiler is given. The tools have to be those that made
it, or the binaries would stand under a key that says otherwise.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TextIO

from pypto.jit.artifacts import ready_spec
from pypto.jit.native_validation import best_validator
from pypto.jit.placement import private_parent, writing_below
from pypto.jit.policy import capture_policy
from pypto.jit.session import TOOLCHAIN
from pypto.jit.steps import steps_on
from pypto.jit.surroundings import Surroundings, read_surroundings
from pypto.runtime import kernel_config
from pypto.runtime.binary_build import build_payload
from pypto.runtime.cpu_level import compiles_for, host_level
from pypto.runtime.host import host_compilers, selected_sdk
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.sdk import Sdk, SdkError
from pypto_store import ArtifactStore, CacheConfig, Entry, Hit, Private
from pypto_store.keys import State
from pypto_store.listing import EntryRow, iterate_entries
from pypto_store.tools.comparison import EvidenceShelf
from pypto_toolchains.evidence import Unavailable

REPORT_SCHEMA = 1

OK = 0
BUILD_FAILED = 1
BAD_REQUEST = 2


class NotCompleted(Exception):
    """Why the binaries of an entry could not be published."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one key at one CPU level; `error` is None for success.

    `kernel` is None where the root does not say whose key it is.
    """

    kernel: str | None
    key: str
    cpu_level: str
    milliseconds: float
    error: str | None


def complete(root: str, levels: Sequence[str], out: TextIO, err: TextIO) -> int:
    """Run the command; gives the exit status."""
    try:
        world = read_surroundings()
        wanted = _checked(levels or [host_level()], selected_sdk(world.tools))
        bench = _Bench.at(root, world)
        rows = [row for row in iterate_entries(root) if row.state is State.GENERATED]
    except OSError as error:
        print(f"error: {root}: {error.strerror or error}", file=err)
        return BAD_REQUEST
    except (ValueError, SdkError) as error:
        print(f"error: {error}", file=err)
        return BAD_REQUEST
    results: list[Result] = []
    with steps_on(err, len(rows) * len(wanted)) as step:
        for row, level in product(rows, wanted):
            step(len(results), f"{bench.shelf.kernel(row) or row.key} for {level}")
            results.append(_tried(row, level, bench))
    _report(results, out)
    for result in results:
        if result.error is not None:
            name = result.kernel or result.key
            print(f"error: {name} ({result.cpu_level}): {result.error}", file=err)
    return BUILD_FAILED if any(result.error is not None for result in results) else OK


def _checked(levels: Iterable[str], sdk: Sdk) -> tuple[str, ...]:
    """The levels, each once; ValueError for one that cannot be compiled for here."""
    wanted = tuple(dict.fromkeys(levels))
    machine = os.uname().machine
    known = [level for level in sdk.cpu_levels if compiles_for(level, machine)]
    for level in wanted:
        if level not in known:
            raise ValueError(f"no CPU level {level!r} here; there are {', '.join(known)}")
    return wanted


@dataclass(frozen=True, slots=True)
class _Bench:
    """What every build of the command shares."""

    store: ArtifactStore
    shelf: EvidenceShelf
    root: str
    world: Surroundings

    @classmethod
    def at(cls, root: str, world: Surroundings) -> _Bench:
        policy = capture_policy(
            CacheConfig(enabled=True, root=Path(root)), world.environ, world.cwd
        )
        assert policy.root is not None
        store = ArtifactStore(Path(policy.root), validator=best_validator())
        return cls(store, EvidenceShelf(store.layout()), policy.root, world)

    def complete(self, row: EntryRow, level: str) -> None:
        """Publish the binaries of an entry, unless they are there. Raises NotCompleted, and what
        a build raises."""
        entry = self._sources(row)
        config = KernelConfig.parse(entry.read(kernel_config.FILE_NAME), row.path)
        unfit = self._toolchain(config.platform, entry)
        world, parent = (
            self.world,
            Path(private_parent(self.world.tools, self.world.cwd, self.root)),
        )
        compiler = host_compilers(environ=world.tools, cpu_level=level)

        def build(directory: Path) -> None:
            build_payload(entry.path, compiler(config.platform, config.runtime), directory)

        with writing_below(str(parent)):
            done = self.store.get_or_build(
                entry.key, ready_spec(config, level), build, private_parent=parent, recheck=unfit
            )
        if isinstance(done, Private):
            raise NotCompleted(done.reason)

    def _sources(self, row: EntryRow) -> Entry:
        if row.manifest is None:
            raise NotCompleted(f"{row.path} is damaged: {row.damage}")
        found = self.store.lookup_generated(row.manifest.key)
        if not isinstance(found, Hit):
            raise NotCompleted(f"{row.path} cannot be used: {found}")
        return found.entry

    def _toolchain(self, platform: str, entry: Entry) -> Callable[[], str | None]:
        """Why this toolchain is not what it says it is, to be asked after a build."""
        asked = self.world.question(platform, self.root)
        identity = TOOLCHAIN.identity(asked)
        if isinstance(identity, Unavailable):
            raise NotCompleted(str(identity))
        if identity.digest != entry.key.environment:
            raise NotCompleted(
                "its sources were made by another toolchain than there is now; warm it up again, "
                "or `python -m pypto_store why` tells what differs"
            )
        return partial(TOOLCHAIN.changed, asked)


def _tried(row: EntryRow, level: str, bench: _Bench) -> Result:
    begin = time.perf_counter()
    failure = None
    try:
        bench.complete(row, level)
    except NotCompleted as error:
        failure = str(error)
    except Exception as error:  # noqa: BLE001 - one program's failure must not hide the others
        failure = f"{type(error).__name__}: {error}"
    spent = round((time.perf_counter() - begin) * 1e3, 3)
    return Result(bench.shelf.kernel(row) or None, row.key, level, spent, failure)


def _report(results: Sequence[Result], out: TextIO) -> None:
    if out.isatty():
        for line in _lines(results):
            print(line, file=out)
        return
    entries = [
        {"status": "ok" if result.error is None else "failed", **asdict(result)}
        for result in results
    ]
    print(json.dumps({"schema_version": REPORT_SCHEMA, "entries": entries}, indent=2), file=out)


def _lines(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        state = "ready" if result.error is None else "failed"
        name = result.kernel or result.key
        yield f"{state:<8}{result.milliseconds:>10.1f} ms  {result.cpu_level:<10}  {name}"
