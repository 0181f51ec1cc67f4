"""The nest of loops that computes a group block by block.

The outer loop advances along the axis that no reduction takes away. Where a block does not hold
the other axis whole, inner loops sweep over it. A sweep computes again what it needs of earlier
ones, so that nothing but reduced values stays on chip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pypto.ir.nodes import (
    AttrValue,
    Dim,
    MemorySpace,
    Op,
    Operand,
    Stmt,
    TensorType,
    TileType,
    Var,
)
from pypto.ir.op_spec import Role
from pypto.ir.passes.rewrite import ZERO, index, substitute
from pypto.ir.passes.tiling.blocks import Blocks
from pypto.ir.passes.tiling.emission import Emission
from pypto.ir.passes.tiling.groups import Output
from pypto.ir.passes.tiling.product import product_block
from pypto.ir.passes.tiling.roles import matrix_of, reduction_of, role_of, tensors_of
from pypto.ir.passes.tiling.sweeps import Sweeps
from pypto.ir.regions import load_attrs, tile_slice_attrs
from pypto.ir.typing_rules import rank_of

_COUNTERS = ("row", "col")


class Stretch(NamedTuple):
    """A part of an axis: where it starts, how much a tile holds, and how much of that is valid."""

    start: Operand
    size: int
    valid: Operand


_ONE = Stretch(ZERO, 1, index(1))


class Nest:
    """Writes the statements of one group with one choice of block sizes.

    ``extent_of`` gives the operand that holds an extent.
    """

    def __init__(self, sweeps: Sweeps, blocks: Blocks, extent_of: Callable[[Dim], Operand]) -> None:
        self.blocks = blocks
        self.extent_of = extent_of
        self.emission = Emission(sweeps.group.ops[0].span)
        self.sweeps = sweeps
        self._domain = sweeps.group.domain
        self._outer, self._inner = 1 - sweeps.group.axis, sweeps.group.axis
        self._single = self._size(self._inner) == self._domain[self._inner]
        self._at: list[Stretch] = [_ONE, _ONE]
        self._tiles: dict[tuple[Var, MemorySpace], Var] = {}
        self._flat: dict[Var, Var] = {}
        self._memory: dict[Output, Var] = {}

    def _size(self, axis: int) -> int:
        size = self.blocks.rows if axis == 0 else self.blocks.cols
        extent = self._domain[axis]
        return min(size, extent) if isinstance(extent, int) else size

    # Loops.

    def statements(self) -> tuple[Stmt, ...]:
        """The nest; what it stores has its final names."""
        self._flatten()
        touched = list(self.sweeps.outputs)
        self._over(self._outer, touched, self._turn)
        names: dict[Var, Operand] = {}
        for output in self.sweeps.outputs:
            memory = self._memory[output]
            if output in self._flat_outputs():
                assert isinstance(output.result.type, TensorType)
                shape = tuple(e for e in output.result.type.shape if isinstance(e, int))
                memory = self.emission.op("tensor.reshape", (memory,), memory.name, shape=shape)
            names[memory] = output.result
        return substitute(self.emission.body, names)

    def _over(
        self, axis: int, stores: Sequence[Output], make: Callable[[], None], start: int = 0
    ) -> None:
        """A loop over the blocks of an axis, or its only block."""
        extent, size = self._domain[axis], self._size(axis)
        if extent == size:
            self._at[axis] = Stretch(ZERO, size, index(size))
            make()
            return

        def turn(counter: Var, arguments: list[Var]) -> list[Var]:
            self._memory.update(zip(stores, arguments, strict=True))
            self._advance(axis, counter)
            make()
            return [self._memory[o] for o in stores]

        results = self._loop(axis, start, [self._memory[o] for o in stores], turn)
        self._memory.update(zip(stores, results, strict=True))

    def _loop(
        self,
        axis: int,
        start: int,
        carried: Sequence[Var],
        make: Callable[[Var, list[Var]], Sequence[Var]],
    ) -> list[Var]:
        bounds = (index(start), self.extent_of(self._domain[axis]), index(self._size(axis)))
        kept = dict(self._tiles)
        results = self.emission.loop(_COUNTERS[axis], bounds, carried, make)
        self._tiles = kept
        return results

    def _advance(self, axis: int, start: Operand) -> None:
        self._at[axis] = self.stretch(self._domain[axis], start, self._size(axis), axis)

    def stretch(self, extent: Dim, start: Operand, size: int, axis: int) -> Stretch:
        """The block of an extent that starts there."""
        if isinstance(extent, int) and extent % size == 0:
            return Stretch(start, size, index(size))
        name = ("rows", "cols")[axis]
        return Stretch(start, size, self.emission.rest(self.extent_of(extent), start, size, name))

    def _turn(self) -> None:
        """What happens in one block of the outer axis."""
        if self._single:
            size = self._size(self._inner)
            self._at[self._inner] = Stretch(ZERO, size, index(size))
            self._write(self.sweeps.needed, self.sweeps.outputs)
            return
        for level in self.sweeps.levels:
            self._at[self._inner] = _ONE
            self._write(*self.sweeps.before(level))
            reductions, stores = self.sweeps.at(level)
            if reductions or stores:
                self._sweep(reductions, stores)

    def _sweep(self, reductions: Sequence[int], stores: Sequence[Output]) -> None:
        """A loop over the inner axis that ends reductions and stores what it can."""
        ops = self.sweeps.computed(reductions, stores)
        self._load_ahead(ops)
        reduced = [self.sweeps.group.ops[position] for position in reductions]
        targets = [op.result for op in reduced if op.result is not None]
        joins = [known.joined_by for op in reduced if (known := reduction_of(op)) is not None]
        totals: list[Var] = []
        start = 0
        if reductions:
            # The first block starts the sums, so that nothing has to be neutral to them.
            kept = dict(self._tiles)
            self._advance(self._inner, ZERO)
            self._write(ops, stores)
            totals = [self.tile(v) for v in targets]
            self._tiles, start = kept, self._size(self._inner)

        def turn(counter: Var, arguments: list[Var]) -> list[Var]:
            sums, memory = arguments[: len(targets)], arguments[len(targets) :]
            self._memory.update(zip(stores, memory, strict=True))
            self._advance(self._inner, counter)
            self._write(ops, stores)
            after = [
                self.emission.op(f"tile.{joined_by}", (total, self.tile(v)), total.name)
                for joined_by, v, total in zip(joins, targets, sums, strict=True)
            ]
            return [*after, *(self._memory[o] for o in stores)]

        carried = [*totals, *(self._memory[o] for o in stores)]
        results = self._loop(self._inner, start, carried, turn)
        for var, total in zip(targets, results, strict=False):
            self._tiles[var, MemorySpace.Vec] = total
        self._memory.update(zip(stores, results[len(targets) :], strict=True))

    def _load_ahead(self, positions: Sequence[int]) -> None:
        """Load before a sweep what every block of it reads alike."""
        self._at[self._inner] = _ONE
        for position in positions:
            op = self.sweeps.group.ops[position]
            if role_of(op) not in (Role.MAP, Role.REDUCE):
                continue
            for var in tensors_of(op):
                if not self.sweeps.varies(var) and self.sweeps.is_memory(self.sweeps.origin(var)):
                    self.tile(var)

    # Operations.

    def _write(self, positions: Sequence[int], stores: Sequence[Output]) -> None:
        """Operations and stores, in program order."""
        computed = set(positions)
        for position in sorted(computed | {output.position for output in stores}):
            self.emission.span = self.sweeps.group.ops[position].span
            if position in computed:
                self._compute(self.sweeps.group.ops[position])
            for output in stores:
                if output.position == position:
                    self._store(output)

    def _compute(self, op: Op) -> None:
        assert op.result is not None
        match role_of(op):
            case Role.READ:
                return  # loaded where it is needed
            case Role.PRODUCT:
                tile = product_block(self, op)
            case Role.TRANSPOSE:
                rows, cols = self.places(op.result)
                source = self.load(tensors_of(op)[0], (cols, rows), MemorySpace.Vec)
                tile = self.emission.op("tile.transpose", (source,), op.result.name, **op.attrs)
            case Role.FILL:
                tile = self._full(op)
            case _:
                values = [
                    self.tile(o) if isinstance(o, Var) and isinstance(o.type, TensorType) else o
                    for o in op.operands
                ]
                tile = self.emission.op(_tile_name(op), values, op.result.name, **op.attrs)
        assert isinstance(tile.type, TileType)
        self._tiles[op.result, tile.type.space] = tile

    def _full(self, op: Op) -> Var:
        assert op.result is not None
        rows, cols = self.places(op.result)
        attrs: dict[str, AttrValue] = {**op.attrs, "shape": (rows.size, cols.size)}
        tile = self.emission.op("tile.full", (), op.result.name, **attrs)
        if (rows.valid, cols.valid) == (index(rows.size), index(cols.size)):
            return tile
        part = (tile, ZERO, ZERO, rows.valid, cols.valid)
        shape = (rows.size, cols.size)
        attrs = tile_slice_attrs(shape, has_valid=True)
        return self.emission.op("tile.slice", part, op.result.name, **attrs)

    def places(self, var: Var) -> tuple[Stretch, Stretch]:
        """The part of a value that the block at hand holds."""
        extents = matrix_of(var)
        assert extents is not None
        rows, cols = (
            _ONE if extent == 1 else at for extent, at in zip(extents, self._at, strict=True)
        )
        return rows, cols

    def tile(self, var: Var) -> Var:
        """A tile in Vec that holds the block at hand of a value."""
        var = self.sweeps.origin(var)
        tile = self._tiles.get((var, MemorySpace.Vec))
        if tile is None:
            acc = self._tiles.get((var, MemorySpace.Acc))
            if acc is not None:
                tile = self.emission.op("tile.move", (acc,), var.name, space=MemorySpace.Vec)
            else:
                tile = self.load(var, self.places(var), MemorySpace.Vec)
            self._tiles[var, MemorySpace.Vec] = tile
        return tile

    def accumulator(self, var: Var) -> Var | None:
        """The tile in Acc that holds the block at hand of a value, if it may be summed onto."""
        alone = self.sweeps.sole_reader(var)
        return self._tiles.get((var, MemorySpace.Acc)) if alone else None

    def load(self, var: Var, places: tuple[Stretch, Stretch], space: MemorySpace) -> Var:
        """Load a part of a tensor, or of a slice of one."""
        known = self.sweeps.values.get(var)
        memory, base = var, list[Operand]()
        if known is not None:
            source, *base = known.op.operands
            assert isinstance(source, Var)
            memory = source
        memory = self._flat.get(memory, memory)
        rows, cols = places
        offsets = self._offsets(memory, base, rows, cols)
        has_valid = (rows.valid, cols.valid) != (index(rows.size), index(cols.size))
        counts = (rows.valid, cols.valid) if has_valid else ()
        attrs = load_attrs((rows.size, cols.size), space, has_valid=has_valid)
        return self.emission.op("tile.load", (memory, *offsets, *counts), var.name, **attrs)

    def _offsets(
        self, memory: Var, base: Sequence[Operand], rows: Stretch, cols: Stretch
    ) -> list[Operand]:
        assert isinstance(memory.type, TensorType)
        starts: list[Operand] = [rows.start, cols.start]
        rank = len(memory.type.shape)
        offsets = [*[ZERO] * (rank - 2), *starts] if rank > 1 else starts[1:]
        if not base:
            return offsets
        return [self.emission.add(b, o, "at") for b, o in zip(base, offsets, strict=True)]

    def _store(self, output: Output) -> None:
        value = self.sweeps.origin(output.value)
        tile = self._tiles.get((value, MemorySpace.Acc)) or self.tile(value)
        target = self._memory[output]
        offsets = self._offsets(target, output.offsets, *self.places(value))
        self._memory[output] = self.emission.op(
            "tile.store", (tile, *offsets, target), output.result.name, **output.attrs
        )

    # Tensors of more than two axes are reached through a matrix of the same memory.

    def _flat_outputs(self) -> list[Output]:
        return [o for o in self.sweeps.outputs if not o.offsets and rank_of(o.target) > 2]

    def _flatten(self) -> None:
        for position in self.sweeps.needed:
            op = self.sweeps.group.ops[position]
            if role_of(op) is not Role.READ:
                for var in tensors_of(op):
                    self._flatten_leaf(self.sweeps.origin(var))
        for output in self.sweeps.outputs:
            self._flatten_leaf(self.sweeps.origin(output.value))
            flat = output in self._flat_outputs()
            self._memory[output] = self._matrix(output.target) if flat else output.target

    def _flatten_leaf(self, var: Var) -> None:
        if var not in self.sweeps.values and rank_of(var) > 2 and var not in self._flat:
            self._flat[var] = self._matrix(var)

    def _matrix(self, var: Var) -> Var:
        extents = matrix_of(var)
        assert extents is not None
        shape = tuple(e for e in extents if isinstance(e, int))
        return self.emission.op("tensor.reshape", (var,), var.name, shape=shape)


def _tile_name(op: Op) -> str:
    return "tile." + op.op.removeprefix("tensor.")
