"""What holds the tensor-level values of one scope: tiles, and tensors made before the scope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from pypto.ir.dtypes import INDEX
from pypto.ir.errors import CompileError, IrTypeError
from pypto.ir.nodes import (
    AttrValue,
    Const,
    MemorySpace,
    Op,
    Operand,
    ScalarType,
    Span,
    Stmt,
    TensorType,
    Var,
)
from pypto.ir.ops import infer_result
from pypto.ir.passes.rewrite import ZERO, bindings
from pypto.ir.passes.tensor_values import (
    computed_values,
    static_extents,
    stores,
    tensor_type,
    whole_extents,
)
from pypto.ir.passes.valid_values import cuts_valid_part, is_whole, matrix, origins, own_region
from pypto.ir.regions import load_attrs


class ScopeValues:
    """The values of one scope, and the statements that are made for them.

    ``prelude`` is what has to stand before the scope; ``out`` is the body as far as it is made.
    ``tiles`` and ``memory`` hold a tensor variable now. Both are scoped: what a nested body adds
    does not outlive it, and a store drops every loaded tile, since it may alias. Tiles are wholly
    valid; how much counts of the values of ``partly``, along the axes that it names, is kept apart.
    """

    def __init__(self, body: Sequence[Stmt], partly: Mapping[Var, frozenset[int]]) -> None:
        self._partly = partly
        self._regions: dict[Var, tuple[Operand | None, Operand | None]] = {}
        self.prelude: list[Op] = []
        self.out: list[Stmt] = []
        self.tiles: dict[tuple[Var, MemorySpace], Var] = {}
        self._memory: dict[Var, Var] = {}
        self._values = computed_values(body)
        self._bound = frozenset(bindings(body))

    def __contains__(self, var: object) -> bool:
        """Whether a variable is a value, not a name of memory."""
        return var in self._values

    @contextmanager
    def nested(self, body: Sequence[Stmt]) -> Iterator[list[Stmt]]:
        """A body of its own, to which ``out`` is bound until the end."""
        saved = self.out, dict(self.tiles), dict(self._memory)
        if stores(body):
            self.drop_loaded()
        self.out = []
        yield self.out
        self.out, self.tiles, self._memory = saved
        if stores(body):
            self.drop_loaded()

    def drop_loaded(self) -> None:
        """Forget the tiles of memory, which may have changed."""
        self.tiles = {key: tile for key, tile in self.tiles.items() if key[0] in self._values}

    def hoist(self, op: Op) -> None:
        """Creation has to happen outside; it can when its extents come from there."""
        inside = [o for o in op.operands if isinstance(o, Var) and o in self._bound]
        if inside:
            raise CompileError(
                f"{bound_name(op)}: the extent {inside[0].name} is computed inside the scope; "
                "create the tensor before the scope",
                op.span,
            )
        self.prelude.append(op)

    def store(self, tile: Var, target: Var, result: Var, span: Span) -> None:
        """The whole of ``target`` takes ``tile``; ``result`` names it afterwards."""
        type_ = tensor_type(target)
        self.drop_loaded()
        if len(type_.shape) <= 2:
            zeros = (ZERO,) * len(type_.shape)
            self.emit("tile.store", (tile, *zeros, target), result, span)
            return
        flat = whole_extents(target, span)
        matrix = TensorType(flat, type_.dtype)
        view, written = Var(target.name, matrix), Var(target.name, matrix)
        self.emit("tensor.reshape", (target,), view, span, shape=flat)
        self.emit("tile.store", (tile, ZERO, ZERO, view), written, span)
        self.emit("tensor.reshape", (written,), result, span, shape=static_extents(type_))

    def tile(self, var: Operand, space: MemorySpace, span: Span) -> Var:
        """A tile in `space` that holds a tensor variable, made now if there is none."""
        assert isinstance(var, Var)
        tile = self.tiles.get((var, space))
        if tile is None:
            tile = self._made(var, space, span)
            self.tiles[var, space] = tile
        return tile

    def _made(self, var: Var, space: MemorySpace, span: Span) -> Var:
        if var in self._values:
            acc = self.tiles.get((var, MemorySpace.Acc))
            if acc is not None:
                return self.tile_op("tile.move", (acc,), var.name, span, space=space)
            var = self.memory_of(var, span)
        shape = whole_extents(var, span)
        source = var
        if len(tensor_type(var).shape) > 2:
            source = Var(var.name, TensorType(shape, tensor_type(var).dtype))
            self.emit("tensor.reshape", (var,), source, span, shape=shape)
        zeros = (ZERO,) * len(tensor_type(source).shape)
        attrs = load_attrs(shape, space)
        return self.tile_op("tile.load", (source, *zeros), var.name, span, **attrs)

    def memory_of(self, var: Var, span: Span) -> Var:
        """Global memory that holds a value."""
        memory = self._memory.get(var)
        return self.materialise(var, span, escapes=False) if memory is None else memory

    def materialise(self, var: Var, span: Span, *, escapes: bool) -> Var:
        """Write a value to a tensor created before the scope; the tensor afterwards."""
        type_ = tensor_type(var)
        whole_extents(var, span)
        created = Var(var.name, type_)
        attrs: dict[str, AttrValue] = {
            "shape": static_extents(type_),
            "symbols": (),
            "dtype": type_.dtype,
        }
        self.prelude.append(Op("tensor.create", (), created, span, MappingProxyType(attrs)))
        acc = self.tiles.get((var, MemorySpace.Acc))
        if self.is_partly_valid(var):
            # Memory has no valid region: what is not valid is 0, which a product does not notice.
            part = self.valid_part(var, span)
            tile = self.tile_op("tile.fillpad", (part,), var.name, span, pad="zero")
        else:
            tile = acc or self.tile(var, MemorySpace.Vec, span)
        # Outside, the value keeps its own variable: it now names the memory.
        written = var if escapes else Var(var.name, type_)
        self.store(tile, created, written, span)
        self._memory[var] = written
        return written

    # Valid regions.

    def is_partly_valid(self, var: Operand) -> bool:
        """Whether a tensor-level value may be valid in part."""
        return var in self._partly

    def valid_part(self, var: Var, span: Span, axes: Sequence[int] = (0, 1)) -> Var:
        """A tile in Vec that is valid, along these axes, as far as a value is."""
        tile = self.tile(var, MemorySpace.Vec, span)
        region = [self._extent(var, axis, span) for axis in axes]
        if all(is_whole(e, var, axis) for e, axis in zip(region, axes, strict=True)):
            return tile
        bounds: list[Operand] = [Const(e, INDEX) for e in whole_extents(var, span)]
        for axis, extent in zip(axes, region, strict=True):
            bounds[axis] = extent
        return self.tile_op("tile.set_validshape", (tile, *bounds), var.name, span)

    def carry_region(self, op: Op) -> None:
        """Find out how much is valid of what an operation computes."""
        result = op.result
        if result is None or result not in self._partly or cuts_valid_part(op, self._partly):
            return
        own, come_from = own_region(op), origins(op)
        if own is not None:
            self._regions[result] = own
        elif come_from is not None:
            rows, cols = (
                self._least([self._known(v, a) for v, a in sources], result, axis, op.span)
                for axis, sources in enumerate(come_from)
            )
            self._regions[result] = rows, cols

    def _known(self, var: Var, axis: int) -> Operand | None:
        """The valid extent of an axis; None where it is not known here."""
        if axis not in self._partly.get(var, ()):
            extent = matrix(var)[axis]
            return Const(extent, INDEX) if isinstance(extent, int) else None
        region = self._regions.get(var)
        return None if region is None else region[axis]

    def _extent(self, var: Var, axis: int, span: Span) -> Operand:
        extent = self._known(var, axis)
        if extent is None:
            raise CompileError(
                f"{var.name} is valid in part, and its valid region is not known here: it comes "
                "from another scope, through a loop or a branch, or from an operation that moves "
                "elements. Fill it with pl.fillpad before that",
                span,
            )
        return extent

    def _least(
        self, extents: Sequence[Operand | None], var: Var, axis: int, span: Span
    ) -> Operand | None:
        least: Operand = Const(matrix(var)[axis], INDEX)  # type: ignore[arg-type]
        for extent in dict.fromkeys(extents):
            if extent is None:
                return None
            if is_whole(extent, var, axis):
                continue
            if is_whole(least, var, axis):
                least = extent
            elif isinstance(least, Const) and isinstance(extent, Const):
                least = min(least, extent, key=lambda const: const.value)
            elif least != extent:
                smaller = Var("valid", ScalarType(INDEX))
                self.emit("scalar.min", (least, extent), smaller, span)
                least = smaller
        return least

    def tile_op(
        self, name: str, values: tuple[Operand, ...], hint: str, span: Span, **attrs: AttrValue
    ) -> Var:
        """Append an operation that makes a tile; CompileError where its operands do not fit."""
        try:
            type_ = infer_result(name, values, attrs)
        except IrTypeError as error:
            raise CompileError(str(error), span) from error
        result = Var(hint, type_)
        self.emit(name, values, result, span, **attrs)
        return result

    def emit(
        self, name: str, values: tuple[Operand, ...], result: Var, span: Span, **attrs: AttrValue
    ) -> None:
        """Append an operation whose result is known."""
        self.out.append(Op(name, values, result, span, MappingProxyType(attrs)))


def bound_name(op: Op) -> str:
    """What the user called the result of an operation."""
    return op.op if op.result is None else op.result.name
