"""Making sources from a snapshot: parse, compile, and say errors in the user's terms."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pypto.backend import target_of
from pypto.ir.nodes import Program
from pypto.jit import log
from pypto.jit.extern_sources import NO_EXTERNS, ExternSources
from pypto.jit.placement import TEMPORARY_VARIABLE, temporary_parent
from pypto.jit.snapshot import SourceSnapshot
from pypto.jit.specialization import Specialization
from pypto.jit.statistics import Counter, Statistics
from pypto.runtime.errors import located
from pypto.runtime.host import host_compilers
from pypto.runtime.storage import CompilerFactory

Environ = Mapping[str, str]
Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that a build needs: what to compile, in which environment, and beside which cache.

    `identified` says that the result will be known by the tools which `environ` selects, so that
    no other tool may do their work.
    """

    snapshot: SourceSnapshot
    specialization: Specialization
    environ: Environ
    root: str | None
    externs: ExternSources = NO_EXTERNS
    identified: bool = False

    @property
    def name(self) -> str:
        """The kernel's name, which is the program's."""
        return self.snapshot.entry.name

    @property
    def tool_environ(self) -> Environ:
        """What tools are given: the environment, but no temporary files in the cache."""
        return {**self.environ, TEMPORARY_VARIABLE: temporary_parent(self.environ, self.root)}

    def compilers(self) -> CompilerFactory:
        """Compilers of what is generated, for this machine."""
        return self.externs.in_users_terms(host_compilers(environ=self.tool_environ))

    def parse(self) -> Program:
        """The program in frontend form. Raises ParserError."""
        from pypto.language.parser.program import parse_program

        bound = self.specialization.bound
        return parse_program(self.snapshot.entry, bound.arguments, name=self.name)

    def lower(self) -> Program:
        """The program in lowered form. Raises ParserError or CompileError."""
        from pypto.compiler.driver import lower

        program = self.parse()
        with located(self.snapshot.source_map()):
            return lower(program, target_of(self.specialization.options.platform))

    def generate(self, directory: Path, *, live: bool = False) -> Program:
        """Write the program's sources to `directory`; gives the program in frontend form.

        What is `live` is for whoever asked: it has a ``debug/run.py``, unless the environment says
        no, and hints that name the user's files. What is stored has neither.

        Raises ParserError or CompileError for a kernel that cannot be compiled, and the errors of
        the assembler.
        """
        from pypto.compiler.build_options import (
            RUNNER_VARIABLE,
            BuildOptions,
            hint_options,
        )
        from pypto.compiler.entry import build_installed
        from pypto.compiler.pass_record import dump_level
        from pypto.runtime.switches import switched_on

        program = self.parse()
        options = self.specialization.options
        sources = self.snapshot.source_map()
        hints = hint_options(options.diagnostic_phase, options.disabled_diagnostics)
        with located(sources):
            build_installed(
                replace(program, sources=sources),
                directory,
                options=BuildOptions(
                    target_of(options.platform),
                    dump_passes=dump_level(options.dump_passes),
                    profiling=options.profiling,
                    debug_runner=live and switched_on(self.environ, RUNNER_VARIABLE),
                    hints=hints if live else None,
                ),
                environ=self.tool_environ,
                packages=self.externs.packages,
                identified=self.identified,
            )
        return program


class Meter:
    """Counts stages of one request and keeps their time apart from the rest of it.

    `kernel` is its name, for the log.
    """

    __slots__ = ("_clock", "_kernel", "_statistics", "built_ns")

    def __init__(
        self, statistics: Statistics, clock: Clock = time.perf_counter_ns, kernel: str = "?"
    ) -> None:
        self._statistics = statistics
        self._clock = clock
        self._kernel = kernel
        self.built_ns = 0

    def count(self, counter: Counter) -> None:
        """Count a stage whose time is known elsewhere."""
        self._statistics.add(counter)

    def stage(self, counter: Counter, work: Callable[[], None]) -> None:
        """Do `work`; its time counts as building, and the stage counts if it completes."""
        begin = self._clock()
        try:
            work()
            self._statistics.add(counter)
        finally:
            spent = self._clock() - begin
            self.built_ns += spent
            self._statistics.add(Counter.BUILD_NS, spent)
            log.built(self._kernel, counter.field, spent)
