"""Subscripts on the left of an assignment."""

from __future__ import annotations

import ast

from pypto.ir.dtypes import INDEX
from pypto.ir.nodes import Const, Operand, TensorType, TileType, Var
from pypto.ir.typing_rules import show_shape
from pypto.language.parser.diagnostics.exceptions import InvalidOperationError
from pypto.language.parser.expressions import evaluate
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import index_operand
from pypto.language.parser.slices import part_of


def is_whole(index: ast.expr) -> bool:
    """Whether a subscript is ``[:]``, ``[...]`` or ``[:, :]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(p, ast.Slice) and p.lower is None and p.upper is None and p.step is None)
        or (isinstance(p, ast.Constant) and p.value is Ellipsis)
        for p in parts
    )


def region_offsets(frame: Frame, tensor: TensorType, tile: Var, index: ast.expr) -> list[Operand]:
    """Where a tile goes that is assigned to a subscript; the region must have its shape."""
    assert isinstance(tile.type, TileType)
    rank = len(tensor.shape)
    shape = tile.type.shape[1:] if rank == 1 else (1,) * (rank - 2) + tile.type.shape
    if is_whole(index):
        if tensor.shape != shape:
            raise frame.error(
                InvalidOperationError,
                index,
                f"a tile of {show_shape(tile.type.shape)} does not fill a tensor of "
                f"{show_shape(tensor.shape)}; write out[a:b, c:d] = tile or use pl.store",
            )
        return [Const(0, INDEX)] * rank
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if len(parts) > rank:
        raise frame.error(
            InvalidOperationError, index, f"{len(parts)} indices for a tensor of {rank} dimensions"
        )
    offsets: list[Operand] = []
    for axis in range(rank):
        if axis < len(parts):
            start, extent = part_of(frame, parts[axis], evaluate)
        else:
            start, extent = 0, None
        dim = tensor.shape[axis]
        if extent is None:
            extent = dim - start if isinstance(dim, int) and isinstance(start, int) else None
        if extent != shape[axis]:
            raise frame.error(
                InvalidOperationError,
                index,
                f"axis {axis} of the region has "
                f"{'an unknown number of' if extent is None else extent} elements, but the tile "
                f"has {shape[axis]}",
            )
        offsets.append(index_operand(frame, start, index, f"the start of axis {axis}"))
    return offsets
