"""One call in a kernel, its arguments evaluated and bound to the callee's parameters."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pypto.ir.dtypes import DataType
from pypto.ir.nodes import AttrValue, MemorySpace, Operand, Var
from pypto.ir.typing_rules import is_whole
from pypto.language.markers import PadValue
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserError,
    ParserTypeError,
)
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import index_operand
from pypto.language.parser.values import (
    Value,
    is_number,
    is_runtime_scalar,
    is_tensor,
    is_tile,
    show_value,
)

# Numbers that stand for pad values.
_PAD_NUMBERS: Mapping[float, PadValue] = MappingProxyType(
    {0.0: PadValue.zero, math.inf: PadValue.max, -math.inf: PadValue.min}
)


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call of a language function. ``name`` is how the user knows it, such as ``pl.load``."""

    frame: Frame
    node: ast.Call
    name: str
    hint: str
    values: Mapping[str, Value]
    nodes: Mapping[str, ast.AST]

    def at(self, parameter: str) -> ast.AST:
        """The argument's place, or the call's where a default was taken."""
        return self.nodes.get(parameter, self.node)

    def wrong(
        self, parameter: str, message: str, kind: type[ParserError] = ParserTypeError
    ) -> ParserError:
        """An error about one argument, to be raised by the caller."""
        return self.frame.error(kind, self.at(parameter), f"{self.name}: {message}")

    def emit(
        self, op: str, operands: list[Operand], attrs: Mapping[str, AttrValue] | None = None
    ) -> Var:
        """Adds the operation that the call stands for."""
        return self.frame.emit(op, operands, self.node, hint=self.hint, attrs=attrs)

    def tensor(self, parameter: str) -> Var:
        """An argument that is a tensor."""
        value = self.values[parameter]
        if is_tensor(value):
            return value
        raise self.wrong(parameter, f"{parameter} must be a tensor, not {show_value(value)}")

    def tile(self, parameter: str) -> Var:
        """An argument that is a tile."""
        value = self.values[parameter]
        if is_tile(value):
            return value
        remedy = "; load it with pl.load" if is_tensor(value) else ""
        raise self.wrong(parameter, f"{parameter} must be a tile, not {show_value(value)}{remedy}")

    def shaped(self, parameter: str) -> Var:
        """An argument that is a tile or a tensor."""
        value = self.values[parameter]
        if is_tile(value) or is_tensor(value):
            return value
        raise self.wrong(
            parameter, f"{parameter} must be a tile or a tensor, not {show_value(value)}"
        )

    def dtype(self, parameter: str) -> DataType:
        """An argument that is an element type."""
        value = self.values[parameter]
        if isinstance(value, DataType):
            return value
        raise self.wrong(
            parameter,
            f"{parameter} must be an element type such as pl.FP32, not {show_value(value)}",
        )

    def space(self, parameter: str) -> MemorySpace:
        """An argument that is a memory space."""
        value = self.values[parameter]
        if isinstance(value, MemorySpace):
            return value
        raise self.wrong(
            parameter,
            f"{parameter} must be a pl.MemorySpace such as pl.Mem.Vec, not {show_value(value)}",
        )

    def sequence(self, parameter: str) -> tuple[Value, ...]:
        """An argument that is a list or a tuple."""
        value = self.values[parameter]
        if isinstance(value, list | tuple):
            return tuple(value)
        raise self.wrong(
            parameter, f"{parameter} must be a list such as [0, 0], not {show_value(value)}"
        )

    def indices(self, parameter: str) -> list[Operand]:
        """An argument that is a list of sizes or offsets, which may be run-time values."""
        at = self.at(parameter)
        return [
            index_operand(self.frame, item, at, f"{self.name}: {parameter}[{i}]")
            for i, item in enumerate(self.sequence(parameter))
        ]

    def index(self, parameter: str) -> Operand:
        """An argument that is one size or offset, which may be a run-time value."""
        at = self.at(parameter)
        return index_operand(self.frame, self.values[parameter], at, f"{self.name}: {parameter}")

    def bounded_ints(self, parameter: str) -> tuple[int, ...]:
        """The same of what :meth:`static_ints` takes, and for the run-time extent of a part of a
        tensor as much as the tensor has."""
        items = []
        for index, item in enumerate(self.sequence(parameter)):
            extent = self.frame.values.symbols.get(item) if is_runtime_scalar(item) else None
            if extent is not None and extent.limit is not None:
                items.append(extent.limit)
            else:
                items.append(self._static_int(parameter, index, item))
        return tuple(items)

    def static_ints(self, parameter: str) -> tuple[int, ...]:
        """An argument that is a list of ints known when the kernel is compiled."""
        items = enumerate(self.sequence(parameter))
        return tuple(self._static_int(parameter, index, item) for index, item in items)

    def _static_int(self, parameter: str, index: int, item: Value) -> int:
        if not is_whole(item):
            extra = " known when the kernel is compiled" if is_runtime_scalar(item) else ""
            raise self.wrong(
                parameter, f"{parameter}[{index}] must be an int{extra}, not {show_value(item)}"
            )
        return item

    def flag(self, parameter: str) -> bool:
        """An argument that is True or False."""
        value = self.values[parameter]
        if isinstance(value, bool):
            return value
        raise self.wrong(parameter, f"{parameter} must be True or False, not {show_value(value)}")

    def pad(self, parameter: str) -> str:
        """An argument that is a pad value, or a number that stands for one."""
        value = self.values[parameter]
        pad = _PAD_NUMBERS.get(value) if is_number(value) else value
        if isinstance(pad, PadValue) and pad is not PadValue.null:
            return str(pad.value)
        raise self.wrong(
            parameter,
            f"{parameter} must be pl.PadValue.zero, max or min, or 0, math.inf or -math.inf, not "
            f"{show_value(value)}",
        )

    def needs_core(self) -> None:
        """Refuses a call outside a core's code."""
        if not self.frame.on_core:
            raise self.frame.error(
                InvalidOperationError,
                self.node,
                f"{self.name}: works on a core only; put it into a "
                "'with pl.at(level=pl.Level.CORE_GROUP):' block or a @pl.jit.incore function",
            )


Handler = Callable[[CallSite], Value]
