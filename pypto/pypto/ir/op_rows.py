"""The rows of the table of operations. :mod:`pypto.ir.ops` is the table."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir.axis_rows import EXPANSIONS, REDUCTIONS
from pypto.ir.elementwise_rows import BINARY, UNARY, WITH_SCALAR
from pypto.ir.mask_rows import MASKS
from pypto.ir.matrix_rows import PRODUCTS, RESHAPED
from pypto.ir.memory_rows import memory_rows
from pypto.ir.op_spec import OperandKind, OpSpec
from pypto.ir.row import Row
from pypto.ir.scalar_rows import scalar_rows
from pypto.ir.scheduling_rows import scheduling_rows


def _of_family(row: Row, family: OperandKind) -> OpSpec:
    """The operation on tiles, or on tensors, that a row describes."""
    on_tiles = family is OperandKind.TILE
    kinds = {
        "x": family,
        "s": OperandKind.SCALAR,
        "i": OperandKind.INDICES,
        "t": OperandKind.SCRATCH,
    }
    letters = row.operands if on_tiles else row.operands.replace("t", "")
    return OpSpec(
        f"{'tile' if on_tiles else 'tensor'}.{row.name}",
        tuple(kinds[letter] for letter in letters),
        row.attrs,
        row.infer,
        # Tensor forms are lowered before any .pto text exists.
        row.mnemonic if on_tiles else "",
        row.reference,
        row.doc,
        scratch="t" in letters,
        elements=row.elements,
        in_place=row.in_place,
        role=row.role,
        reduces=row.reduces,
        faults=row.faults,
        pads=row.pads,
        public=row.public,
        scalar_forms=row.scalar_forms,
        line_form=row.line_form,
        commutes=row.commutes,
        of_scalars=row.of_scalars,
    )


def rows() -> Iterator[OpSpec]:
    """Every operation, in the order of the table."""
    for row in (
        *(*BINARY, *WITH_SCALAR, *UNARY, *MASKS),
        *(*REDUCTIONS, *EXPANSIONS, *RESHAPED, *PRODUCTS),
    ):
        yield _of_family(row, OperandKind.TILE)
        yield _of_family(row, OperandKind.TENSOR)
    yield from memory_rows()
    yield from scheduling_rows()
    yield from scalar_rows()
