"""Files that describe the passes of one compilation.

::

    passes_dump/00_frontend.py            the program before the first pass, each statement with
                                          the line of the user's source that it is from
    passes_dump/NN_after_<pass>.py        the program after a pass, likewise
    passes_dump/memory_map.json           what memory the tiles take, and when (memory_record.py)
    report/pipeline_profile.{json,txt}    seconds that each pass took (pass_profile.py)
"""

from __future__ import annotations

from collections.abc import Callable

from pypto.compiler import memory_record
from pypto.compiler.memory_of_program import is_planned, memory_of
from pypto.compiler.pass_profile import PassProfile
from pypto.compiler.perf_hints import HintRecord
from pypto.ir.nodes import Program
from pypto.ir.options import PassDumpLevel
from pypto.ir.passes.target import TargetLimits
from pypto.ir.printer import print_program


class Records:
    """Several observers as one; ``files`` are those of all."""

    def __init__(self, *observers: PassRecord | HintRecord) -> None:
        self._observers = observers

    def __call__(self, index: int, name: str, program: Program) -> None:
        for observer in self._observers:
            observer(index, name, program)

    @property
    def files(self) -> dict[str, str]:
        """The files of all observers."""
        return {path: text for observer in self._observers for path, text in observer.files.items()}


def dump_level(dump_passes: bool | PassDumpLevel) -> PassDumpLevel:
    """The level that an option asks for; True is ``EXPLICIT``."""
    if isinstance(dump_passes, PassDumpLevel):
        return dump_passes
    return PassDumpLevel.EXPLICIT if dump_passes else PassDumpLevel.NONE


class PassRecord:
    """An observer of the passes; ``files`` fills while they run.

    ``dump`` says how much of the program is written: with ``CONCISE``, the types of what operations
    bind are left out. ``clock`` gives seconds, from any origin. ``limits`` are those of the chip
    that is compiled for.
    """

    def __init__(
        self,
        *,
        dump: PassDumpLevel,
        profile: bool,
        clock: Callable[[], float],
        limits: TargetLimits,
    ) -> None:
        self.files: dict[str, str] = {}
        self._limits = limits
        self._dump = dump
        self._profile = profile
        self._clock = clock
        self._stages: list[tuple[str, float]] = []
        self._since = clock()

    def __call__(self, index: int, name: str, program: Program) -> None:
        seconds = self._clock() - self._since
        if self._dump is not PassDumpLevel.NONE:
            stem = f"{index:02d}_{name}" if index == 0 else f"{index:02d}_after_{name}"
            self.files[f"passes_dump/{stem}.py"] = print_program(
                program, annotated=self._dump is PassDumpLevel.EXPLICIT, places=True
            )
            if is_planned(program):
                record = memory_of(program, self._limits)
                self.files[memory_record.FILE_NAME] = record.to_json()
        if self._profile and index > 0:
            self._stages.append((name, seconds))
            self.files |= PassProfile(tuple(self._stages)).files()
        self._since = self._clock()
