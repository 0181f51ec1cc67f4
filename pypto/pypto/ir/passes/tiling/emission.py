"""Building the statements of a nest: scalars, tile operations and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

from pypto.ir.dtypes import INDEX
from pypto.ir.errors import CompileError, IrTypeError
from pypto.ir.nodes import (
    AttrValue,
    Carried,
    Const,
    For,
    Op,
    Operand,
    ScalarType,
    Span,
    Stmt,
    Var,
)
from pypto.ir.ops import infer_result
from pypto.ir.passes.rewrite import ZERO, index


class Emission:
    """A body that grows at its end; ``span`` is where its statements come from."""

    def __init__(self, span: Span) -> None:
        self.body: list[Stmt] = []
        self.span = span

    def op(self, name: str, operands: Sequence[Operand], to: str, **attrs: AttrValue) -> Var:
        """Append an operation; CompileError where its operands do not fit."""
        try:
            type_ = infer_result(name, operands, attrs)
        except IrTypeError as error:
            raise CompileError(str(error), self.span) from error
        result = Var(to, type_)
        self.body.append(Op(name, tuple(operands), result, self.span, MappingProxyType(attrs)))
        return result

    def add(self, first: Operand, second: Operand, to: str) -> Operand:
        """The sum of two offsets."""
        if first == ZERO:
            return second
        if second == ZERO:
            return first
        if isinstance(first, Const) and isinstance(second, Const):
            return index(int(first.value) + int(second.value))
        return self.op("scalar.add", (first, second), to)

    def rest(self, extent: Operand, start: Operand, block: int, to: str) -> Operand:
        """How much of an extent a block that starts there covers."""
        if isinstance(extent, Const) and isinstance(start, Const):
            return index(min(block, int(extent.value) - int(start.value)))
        left = extent if start == ZERO else self.op("scalar.sub", (extent, start), to)
        return self.op("scalar.min", (left, index(block)), to)

    def loop(
        self,
        name: str,
        bounds: tuple[Operand, Operand, Operand],
        carried: Sequence[Var],
        make: Callable[[Var, list[Var]], Sequence[Var]],
    ) -> list[Var]:
        """Append a loop; ``make`` writes its body and gives the next values."""
        values = [Carried(v, Var(v.name, v.type), Var(v.name, v.type)) for v in carried]
        counter, outside = Var(name, ScalarType(INDEX)), self.body
        self.body = []
        yields = tuple(make(counter, [c.arg for c in values]))
        start, stop, step = bounds
        body, self.body = tuple(self.body), outside
        self.body.append(For(counter, start, stop, step, tuple(values), body, yields, self.span))
        return [c.result for c in values]
