"""Several compiled programs that came of one, each called by its own name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pypto.backend import BackendType
from pypto.ir.nodes import Program as IrProgram
from pypto.runtime.compiled_program import CompiledProgram


class CompiledOrchestrations(CompiledProgram):
    """What a program with several orchestration functions is compiled to.

    ``compiled["name"]`` and ``compiled.name`` are the `CompiledProgram` of one of them, in order
    ``orchestration_names``. Calling the whole, and asking it for what belongs to one of them, is a
    TypeError that lists the names. Its directory has no description of its own: a later process
    loads the directory below ``next_levels`` that it wants.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        members: Mapping[str, CompiledProgram],
        program: IrProgram | None = None,
    ) -> None:
        # The state of a single program is not made: whatever needs it is answered here.
        self.program = program
        self._name = name
        self._directory = directory
        self._members = dict(members)

    def __getitem__(self, name: str) -> CompiledProgram:
        """The program of one orchestration function; KeyError naming those that there are."""
        try:
            return self._members[name]
        except KeyError:
            raise KeyError(self._unknown(name)) from None

    def __getattr__(self, name: str) -> CompiledProgram:
        if not name.startswith("_") and name in self._members:
            return self._members[name]
        raise AttributeError(self._unknown(name))

    def _unknown(self, name: str) -> str:
        return f"{self._name} has no orchestration {name!r}; it has {', '.join(self._members)}"

    @property
    def orchestration_names(self) -> tuple[str, ...]:
        """The orchestration functions, in the order of the program."""
        return tuple(self._members)

    @property
    def output_dir(self) -> Path:
        """The directory that holds those of all programs."""
        return self._directory

    @property
    def platform(self) -> str:
        """The platform token that all were compiled for."""
        return next(iter(self._members.values())).platform

    @property
    def backend_type(self) -> BackendType:
        """The architecture that all were compiled for."""
        return next(iter(self._members.values())).backend_type

    @property
    def artifact_key(self) -> None:
        """None: it is in no cache."""

    def complete(self) -> None:
        """Make sure that all binaries of all programs exist."""
        for member in self._members.values():
            member.complete()

    def load(self) -> None:
        """Build what is missing of all programs and load it."""
        for member in self._members.values():
            member.load()

    def validate_ir(self) -> None:
        """`CompiledProgram.validate_ir` of each program."""
        for member in self._members.values():
            member.validate_ir()

    def _one(self, verb: str) -> CompiledProgram:
        """Raises TypeError: which of them is meant has to be said."""
        choices = " or ".join(f"compiled[{name!r}]" for name in self._members)
        raise TypeError(
            f"{self._name} has {len(self._members)} orchestrations and cannot be {verb} as a "
            f"whole; use {choices}"
        )

    def __fspath__(self) -> str:
        return str(self._directory)

    def __str__(self) -> str:
        return str(self._directory)

    def __repr__(self) -> str:
        return f"CompiledOrchestrations({self._name!r}, {str(self._directory)!r})"
