"""What can be wrong with a kernel's source.

``ParserError``
    ``ParserSyntaxError``         a statement or expression is not formed as the language asks
    ``ParserTypeError``           an annotation or an argument has the wrong type
    ``UndefinedVariableError``    a name that means nothing where it is used
    ``SSAViolationError``         a value cannot be rebound that way
    ``UnsupportedFeatureError``   Python that kernels do not have
    ``InvalidOperationError``     operands that an operation does not accept
    ``ScopeIsolationError``       a value is used outside the scope that owns it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypto.ir.nodes import Span


class ParserError(Exception):
    """A kernel that cannot be parsed.

    ``message`` says what is wrong and what to do. ``file``, ``line`` and ``column`` (both from 1)
    are the place in the user's file; ``span`` is the same place relative to its function. The text
    of the exception shows all of it with the source line and a caret.
    """

    def __init__(
        self, message: str, *, span: Span, file: str, line: int, column: int, source_line: str = ""
    ) -> None:
        self.message = message
        self.span = span
        self.file = file
        self.line = line
        self.column = column
        self.source_line = source_line
        super().__init__(self._text())

    def _text(self) -> str:
        text = f"{self.file}:{self.line}:{self.column}: {self.message}"
        if self.source_line:
            # Tabs before the caret stay tabs, so that it stands under its column in any terminal.
            before = self.source_line[: self.span.column]
            pad = "".join("\t" if c == "\t" else " " for c in before)
            text += f"\n    {self.source_line.rstrip()}\n    {pad}^"
        return text


class ParserSyntaxError(ParserError):
    """A statement or expression is not formed as the language asks."""


class ParserTypeError(ParserError, TypeError):
    """An annotation or an argument has the wrong type."""


class UndefinedVariableError(ParserError):
    """A name that means nothing where it is used."""


class SSAViolationError(ParserError):
    """A value cannot be rebound that way."""


class UnsupportedFeatureError(ParserError):
    """Python that kernels do not have."""


class InvalidOperationError(ParserError):
    """Operands that an operation does not accept."""


class ScopeIsolationError(ParserError):
    """A value is used outside the scope that owns it."""
