"""C++ of an orchestration function that grows line by line, and the names of its values."""

from __future__ import annotations

from pypto.codegen.literals import cpp_literal
from pypto.codegen.names import Names, identifier
from pypto.ir.nodes import Const, Operand, Span, Var

_INDENT = "  "


class OrchestrationText:
    """The lines so far; ``depth`` is how far the next one is indented."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self._names = Names()
        self._values: dict[Var, str] = {}

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(_INDENT * self.depth + text)

    def at(self, span: Span | None) -> None:
        """Name the place of a statement that may end the run."""
        if span is not None:
            unit = span.unit.replace("\\", "\\\\").replace('"', '\\"')
            self.line(f'PTO2_AT("{unit}", {span.line}, {span.column});')

    def new(self, prefix: str, var: Var) -> str:
        """A fresh name for a variable that the next line declares."""
        name = self._names.new(f"{prefix}_{identifier(var.name)}")
        self._values[var] = name
        return name

    def unused(self, stem: str) -> str:
        """A name that nothing has yet."""
        return self._names.new(stem)

    def alias(self, var: Var, name: str) -> None:
        """Let a variable go by a name that is declared already."""
        self._values[var] = name

    def value(self, operand: Operand) -> str:
        """A literal, or the expression of a variable."""
        return cpp_literal(operand) if isinstance(operand, Const) else self._values[operand]
