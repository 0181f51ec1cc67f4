"""Errors of building, loading and running programs.

``ToolchainUnavailable``  a compiler or toolkit that the target needs is not on this machine
``BinaryError``           a compiler succeeded but left no usable binary
``ArtifactError``         a program's directory or payload does not follow its grammar
``KernelFault``           a kernel or orchestration function broke a rule while it ran

A compiler that fails or exceeds its time raises the errors of ``pypto_toolchains.process``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pypto.ir.errors import CompileError
from pypto.ir.nodes import Span


class ToolchainUnavailable(RuntimeError):
    """The target cannot be built here; says what is missing."""


class BinaryError(RuntimeError):
    """A compiler reported success, but its output is missing or is no binary of the target."""


class ArtifactError(ValueError):
    """A file that describes a program is malformed; names the file and how to remake it."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of a user's file, counted from 1; ``column`` counts from 1 too."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


# From "module:qualname" to the file that holds the function and the line of its ``def``.
SourceMap = Mapping[str, tuple[str, int]]


class KernelFault(RuntimeError):
    """A run was cancelled because a kernel or orchestration function broke a rule.

    ``op`` is the operation, ``reason`` what it found, with the indices and extents. ``kernel`` is
    the function that ran. ``location`` is the user's line, ``None`` where the artifact knows only
    the position inside ``unit`` (``"module:qualname"``): ``line`` counts from that function's
    ``def``, which is line 1, and ``column`` from 0. ``pto_line`` is the line of the ``.pto`` text,
    0 if unknown.
    """

    def __init__(
        self,
        reason: str,
        *,
        op: str = "",
        kernel: str = "",
        unit: str = "",
        line: int = 0,
        column: int = 0,
        pto_line: int = 0,
        location: SourceLocation | None = None,
    ) -> None:
        self.reason = reason
        self.op = op
        self.kernel = kernel
        self.unit = unit
        self.line = line
        self.column = column
        self.pto_line = pto_line
        self.location = location
        super().__init__(self._text())

    def _text(self) -> str:
        if self.location is not None:
            where = f"{self.location}: "
        elif self.unit:
            where = f"{self.unit}, line {self.line} of the function: "
        else:
            where = ""
        culprit = f"{self.op}: " if self.op else ""
        kernel = f" [kernel {self.kernel!r}]" if self.kernel else ""
        shown = "" if self.location is None else _quoted(self.location)
        return f"{where}{culprit}{self.reason}{kernel}{shown}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword arguments do not survive the way exceptions are pickled by default.
        names = ("op", "kernel", "unit", "line", "column", "pto_line", "location")
        fields = {name: getattr(self, name) for name in names}
        return functools.partial(KernelFault, **fields), (self.reason,)


def _quoted(location: SourceLocation) -> str:
    """The line and a caret under its column; nothing if the file cannot be read any more."""
    try:
        lines = Path(location.file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    if location.line > len(lines):
        return ""
    line = lines[location.line - 1].expandtabs(1)
    return f"\n    {line}\n    {' ' * (location.column - 1)}^"


def locate(sources: SourceMap, unit: str, line: int, column: int) -> SourceLocation | None:
    """The user's line of a position inside ``unit``; ``None`` where the map does not know it."""
    entry = sources.get(unit)
    if entry is None or line < 1:
        return None
    file, first_line = entry
    return SourceLocation(file, first_line + line - 1, column + 1)


@contextmanager
def located(sources: SourceMap) -> Iterator[None]:
    """While it is open, a CompileError that ``sources`` can place says the user's file and line."""
    try:
        yield
    except CompileError as error:
        span = error.span
        place = None if span is None else locate(sources, span.unit, span.line, span.column)
        if place is None:
            raise
        notes = [_note(sources, where, text) for where, text in error.related]
        raise type(error)("\n    ".join([f"{place}: {error.message}", *notes]), span) from error


def _note(sources: SourceMap, span: Span, text: str) -> str:
    place = locate(sources, span.unit, span.line, span.column)
    return text if place is None else f"{place}: {text}"
