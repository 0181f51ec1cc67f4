"""Which tensor-level values may be valid in part of their extents.

A tensor has no valid region, so what a slice does not read is filled, unless everybody who reads
the slice minds the valid region of its tile: an operation that fills it otherwise, a reduction, or
an elementwise operation of this tile alone whose result is read by such operations only.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto.ir.nodes import Const, Op, Operand, Stmt, TensorType, Var
from pypto.ir.passes.liveness import IN_PLACE
from pypto.ir.passes.rewrite import blocks, operands, walk

_ELEMENTWISE = frozenset(name.replace("tile.", "tensor.") for name in (*IN_PLACE, "tile.cast")) - {
    "tensor.write",
    "tensor.assemble",
}
_ROWS = ("tensor.row_max", "tensor.row_min", "tensor.row_sum", "tensor.row_prod")


class PartlyValid:
    """The readers of the tensor variables of a body."""

    def __init__(self, body: Sequence[Stmt]) -> None:
        self._readers: dict[Var, list[Stmt]] = {}
        for stmt in walk(body):
            yielded = [value for block in blocks(stmt) for value in block.yields]
            for value in (*operands(stmt), *yielded):
                if isinstance(value, Var) and isinstance(value.type, TensorType):
                    self._readers.setdefault(value, []).append(stmt)

    def minded(self, var: Var, rows: Operand, escaping: frozenset[Var]) -> bool:
        """Whether all readers of a value of which so many rows are valid mind that."""
        return var not in escaping and all(
            self._minds(stmt, rows, escaping) for stmt in self._readers.get(var, ())
        )

    def _minds(self, stmt: Stmt, rows: Operand, escaping: frozenset[Var]) -> bool:
        if not isinstance(stmt, Op) or stmt.result is None:
            return False
        if stmt.op == "tensor.fillpad":
            return True
        if stmt.op in _ROWS and _all_rows(stmt, rows):
            return True
        tensors = sum(isinstance(o, Var) and isinstance(o.type, TensorType) for o in stmt.operands)
        return tensors == 1 and stmt.op in _ELEMENTWISE and self.minded(stmt.result, rows, escaping)


def _all_rows(op: Op, rows: Operand) -> bool:
    source = op.operands[0]
    assert isinstance(source, Var) and isinstance(source.type, TensorType)
    return isinstance(rows, Const) and rows.value == (1, *source.type.shape)[-2]
