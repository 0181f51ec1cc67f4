"""Errors of the intermediate representation.

``IrTypeError``    operands or attributes do not fit an operation; has no position, and whoever
                   builds the operation adds one
``CompileError``   a pass or a later stage cannot go on; carries the span of the culprit
``VerifyError``    a program breaks an invariant of its form: a defect of the compiler
"""

from __future__ import annotations

from pypto.ir.nodes import Span


class IrTypeError(Exception):
    """Operands or attributes that an operation does not accept."""


class CompileError(Exception):
    """A program that cannot be compiled, and the place that makes it so.

    ``message`` names the culprit and what to do. ``span`` is ``None`` where no place is to blame.
    ``related`` are other places that have to do with it, and what is there.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        related: tuple[tuple[Span, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.related = related


class VerifyError(CompileError):
    """An invariant of the representation does not hold."""
