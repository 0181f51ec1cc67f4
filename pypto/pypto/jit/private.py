"""Builds that belong to one process: no key, no store, files in the user's build directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pypto.backend import RuntimeKind
from pypto.ir.nodes import Program
from pypto.jit.building import Meter, Recipe
from pypto.jit.placement import fresh_directory, writing_below
from pypto.jit.statistics import Counter
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.kernel_config import FILE_NAME, KernelConfig
from pypto.runtime.storage import (
    BinaryPaths,
    CompilerFactory,
    OutputDirectory,
    PayloadBuilder,
    PendingPayload,
    ProgramStorage,
    Publication,
)
from pypto_store.layout import make_directories

PAYLOAD = "payload"


class PrivateBuilds:
    """Makes private programs for one recipe.

    `parent` is asked for only when one is made. `cwd` is where the request was captured: relative
    output directories count from there.
    """

    def __init__(self, recipe: Recipe, parent: Callable[[], Path], cwd: str, meter: Meter) -> None:
        self._recipe = recipe
        self._parent = parent
        self._cwd = cwd
        self._meter = meter

    def fresh(self) -> CompiledProgram:
        """Build the sources now, in the directory that was asked for or in one of their own."""
        asked = self._recipe.specialization.options.output_dir
        if asked is None:
            directory, program = self._generated()
            return self.at(directory, program)
        directory = Path(self._cwd, asked)
        program = self._generate(directory)
        # The caller's own directory: it may be edited, so its binaries are kept in transactions.
        return CompiledProgram(
            MeteredDirectory(directory, self._recipe.compilers(), self._meter),
            CompiledMeta.load(directory),
            program=program,
            sources=self._recipe.snapshot.source_map(),
        )

    def storage(self) -> ProgramStorage:
        """Only the storage of such a program, in a directory of its own."""
        directory, _ = self._generated()
        return self._pending(directory)

    def at(self, directory: Path, program: Program | None) -> CompiledProgram:
        """The program whose sources are in a private `directory`; binaries join them there."""
        return CompiledProgram(
            self._pending(directory),
            CompiledMeta.load(directory),
            program=program,
            sources=self._recipe.snapshot.source_map(),
        )

    def _generated(self) -> tuple[Path, Program]:
        parent = str(self._parent())
        directory = Path(fresh_directory(parent, self._recipe.name))
        with writing_below(parent):
            if self._recipe.root is not None:
                # As the store makes it. Outside of the cache it may be in a public place.
                make_directories(parent)
            return directory, self._generate(directory)

    def _generate(self, directory: Path) -> Program:
        made: list[Program] = []
        self._meter.stage(
            Counter.GENERATION_BUILDS,
            lambda: made.append(self._recipe.generate(directory, live=True)),
        )
        return made[0]

    def _pending(self, directory: Path) -> PendingPayload:
        config = KernelConfig.parse((directory / FILE_NAME).read_bytes(), str(directory))

        def publish(build: PayloadBuilder) -> Publication:
            payload = Path(fresh_directory(str(directory), PAYLOAD))

            def work() -> None:
                payload.mkdir()
                build(payload)

            self._meter.stage(Counter.BINARY_BUILDS, work)
            return Publication(payload, shared=False)

        return PendingPayload(
            directory,
            directory=directory,
            config=config,
            compilers=self._recipe.compilers(),
            publish=publish,
        )


class MeteredDirectory(OutputDirectory):
    """An output directory whose transactions count as binary builds when they compile."""

    def __init__(self, directory: Path, compilers: CompilerFactory, meter: Meter) -> None:
        self._compiled = False

        def watched(platform: str, runtime: RuntimeKind) -> KernelCompiler:
            return cast("KernelCompiler", _Watched(compilers(platform, runtime), self))

        super().__init__(directory, watched)
        self._meter = meter

    def compiles(self) -> None:
        """A compiler is about to be run."""
        self._compiled = True

    def complete(self) -> None:
        """Build what is missing."""
        self._compiled = False
        super().complete()
        if self._compiled:
            self._meter.count(Counter.BINARY_BUILDS)

    @contextmanager
    def binaries(self, platform: str) -> Iterator[BinaryPaths]:
        """The binaries for a platform, built where they are missing."""
        self._compiled = False
        with super().binaries(platform) as paths:
            if self._compiled:
                self._meter.count(Counter.BINARY_BUILDS)
            yield paths


class _Watched:
    """A compiler that says when it is used; everything else is the compiler's own."""

    def __init__(self, compiler: KernelCompiler, owner: MeteredDirectory) -> None:
        self._compiler = compiler
        self._owner = owner

    def compile_incore(self, *args: Any, **kwargs: Any) -> bytes:
        self._owner.compiles()
        return self._compiler.compile_incore(*args, **kwargs)

    def compile_orchestration(self, *args: Any, **kwargs: Any) -> bytes:
        self._owner.compiles()
        return self._compiler.compile_orchestration(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiler, name)
