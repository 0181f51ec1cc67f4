"""A block of a matrix product, summed up over blocks of the inner extent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto.ir.nodes import MemorySpace, Op, Operand, Var
from pypto.ir.passes.rewrite import ZERO, index
from pypto.ir.passes.tiling.roles import matrix_of, tensors_of

if TYPE_CHECKING:
    from pypto.ir.passes.tiling.nest import Nest


def product_block(nest: Nest, op: Op) -> Var:
    """The block at hand of a product: in Acc, or in Vec where a vector operation ends it."""
    assert op.result is not None
    emission, name = nest.emission, op.result.name
    *start, left, right = tensors_of(op)
    if not start:
        return _summed(nest, op, left, right, None)
    before = nest.accumulator(nest.sweeps.origin(start[0]))
    if before is not None:
        return _summed(nest, op, left, right, before)
    product = _summed(nest, op, left, right, None)
    moved = emission.op("tile.move", (product,), name, space=MemorySpace.Vec)
    return emission.op("tile.add", (nest.tile(start[0]), moved), name)


def _summed(nest: Nest, op: Op, left: Var, right: Var, acc: Var | None) -> Var:
    assert op.result is not None
    emission, name = nest.emission, op.result.name
    extents = matrix_of(left)
    assert extents is not None
    inner = extents[1]
    depth = nest.blocks.inner
    depth = min(depth, inner) if isinstance(inner, int) else depth
    rows, cols = nest.places(op.result)

    def factors(start: Operand) -> tuple[Var, Var]:
        middle = nest.stretch(inner, start, depth, 1)
        one = nest.load(nest.sweeps.origin(left), (rows, middle), MemorySpace.Mat)
        other = nest.load(nest.sweeps.origin(right), (middle, cols), MemorySpace.Mat)
        return one, other

    def more(acc: Var, start: Operand) -> Var:
        return emission.op("tile.matmul_acc", (acc, *factors(start)), name)

    total = emission.op("tile.matmul", factors(ZERO), name) if acc is None else more(acc, ZERO)
    if inner == depth:
        return total
    bounds = (index(depth), nest.extent_of(inner), index(depth))
    return emission.loop("k", bounds, [total], lambda k, args: [more(args[0], k)])[0]
