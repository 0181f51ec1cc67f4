"""One scope: its tensor-level operations become tile operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pypto.ir.dtypes import INDEX
from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    Carried,
    Const,
    For,
    If,
    MemorySpace,
    Op,
    Operand,
    Return,
    ScalarType,
    Span,
    Stmt,
    TensorType,
    Var,
    While,
)
from pypto.ir.op_spec import Role
from pypto.ir.ops import OPS
from pypto.ir.passes.lower_matrices import batched_product, transposed
from pypto.ir.passes.rewrite import ZERO, reads, results, walk
from pypto.ir.passes.scope_values import ScopeValues
from pypto.ir.passes.tensor_values import (
    region_of,
    space_of,
    static_extents,
    stores,
    tensor_type,
    whole_extents,
)
from pypto.ir.regions import load_attrs


class ScopeLowering:
    """The lowering of one scope, whose values that are read after it are ``escaping``.

    ``partly`` are the values of its function that may be valid in part, with the axes that may.
    """

    def __init__(
        self,
        body: Sequence[Stmt],
        escaping: frozenset[Var],
        partly: Mapping[Var, frozenset[int]],
    ) -> None:
        self._at = ScopeValues(body, partly)
        products = [
            stmt
            for stmt in walk(body)
            if isinstance(stmt, Op) and OPS[stmt.op].role is Role.PRODUCT
        ]
        self._products = {op.result for op in products}
        self._escaping = escaping
        self._factors = Counter(operand for op in products for operand in op.operands[-2:])
        self._reads = Counter(reads(body))

    @property
    def prelude(self) -> list[Op]:
        """What has to stand before the scope."""
        return self._at.prelude

    def run(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The lowered body."""
        return self._nested(body, ())[0]

    def _nested(
        self, body: Sequence[Stmt], yields: Sequence[tuple[Operand, MemorySpace | None]]
    ) -> tuple[tuple[Stmt, ...], tuple[Operand, ...]]:
        """A body and its yields; a space asks for the tile of that yield there."""
        with self._at.nested(body) as lowered:
            for stmt in body:
                self._lower(stmt)
            span = body[-1].span if body else Span("", 0, 0)
            handed = tuple(
                value
                if space is None or isinstance(value, Const)
                else self._at.tile(value, space, span)
                for value, space in yields
            )
        return tuple(lowered), handed

    def _lower(self, stmt: Stmt) -> None:
        match stmt:
            case Op():
                self._lower_op(stmt)
            case For() | While():
                self._lower_loop(stmt)
            case If():
                self._lower_branch(stmt)
            case Return():
                for value in stmt.values:
                    if value in self._at:
                        raise CompileError(
                            f"{_name(value)} is computed here and written nowhere, so it cannot "
                            "be returned: write it to a pl.Out parameter first",
                            stmt.span,
                        )
                self._at.out.append(stmt)
            case _:
                self._at.out.append(stmt)
        for var in results(stmt):
            if var in self._escaping and var in self._at:
                self._at.materialise(var, stmt.span, escapes=True)

    def _lower_op(self, op: Op) -> None:
        if op.op.startswith("tensor."):
            match op.op:
                case "tensor.create":
                    self._at.hoist(op)
                case "tensor.assign":
                    self._lower_assign(op)
                case "tensor.assemble":
                    self._lower_assemble(op)
                case "tensor.slice":
                    self._lower_slice(op)
                case "tensor.transpose":
                    assert op.result is not None
                    for space in self._spaces_read(op.result):
                        self._at.tiles[op.result, space] = transposed(self._at, op, space)
                case "tensor.reshape" if op.operands[0] in self._at:
                    self._lower_reshape(op)
                case "tensor.dim" if op.operands[0] in self._at:
                    self._static_dim(op)
                case "tensor.read" | "tensor.write" if op.operands[0] in self._at:
                    self._lower_element(op)
                case "tensor.write":
                    self._at.drop_loaded()
                    self._at.out.append(op)
                case "tensor.reshape" | "tensor.dim" | "tensor.read":
                    self._at.out.append(op)
                case _:
                    self._compute(op)
            self._at.carry_region(op)
            return
        if op.op == "tile.store":
            self._at.drop_loaded()
        values = [
            self._at.memory_of(o, op.span) if isinstance(o, Var) and o in self._at else o
            for o in op.operands
        ]
        self._at.out.append(replace(op, operands=tuple(values)))

    def _lower_element(self, op: Op) -> None:
        """An element of a value, which is a tile: leading axes are its rows."""
        value = op.operands[0]
        assert isinstance(value, Var) and op.result is not None
        rank = len(tensor_type(value).shape)
        whole_extents(value, op.span)  # says that the value's extents must be constants
        indices, rest = op.operands[1 : rank + 1], op.operands[rank + 1 :]
        row: Operand = ZERO
        extents = static_extents(tensor_type(value))
        for index, extent in zip(indices[:-1], extents[:-1], strict=True):
            if row is not ZERO:
                row = self._index_op("scalar.mul", row, Const(extent, INDEX), op.span)
            row = index if row is ZERO else self._index_op("scalar.add", row, index, op.span)
        tile = self._at.tile(value, MemorySpace.Vec, op.span)
        operands = (tile, row, indices[-1], *rest)
        if op.op == "tensor.read":
            self._at.emit("tile.read", operands, op.result, op.span)
            return
        self._at.tiles[op.result, MemorySpace.Vec] = self._at.tile_op(
            "tile.write", operands, op.result.name, op.span
        )

    def _index_op(self, name: str, left: Operand, right: Operand, span: Span) -> Var:
        result = Var("row", ScalarType(INDEX))
        self._at.emit(name, (left, right), result, span)
        return result

    def _static_dim(self, op: Op) -> None:
        value, axis = op.operands[0], op.attrs["axis"]
        assert isinstance(value, Var) and isinstance(axis, int) and op.result is not None
        extent = tensor_type(value).shape[axis]
        if not isinstance(extent, int):
            whole_extents(value, op.span)  # says that the value's extents must be constants
            return
        self._at.emit("scalar.add", (Const(extent, INDEX), ZERO), op.result, op.span)

    def _lower_assign(self, op: Op) -> None:
        target, source = op.operands
        assert isinstance(target, Var) and isinstance(source, Var) and op.result is not None
        if self._at.is_partly_valid(source) and target not in self._at:
            self._at.store(self._at.valid_part(source, op.span), target, op.result, op.span)
            return
        acc = (source, MemorySpace.Acc) in self._at.tiles and source in self._products
        tile = self._at.tile(source, MemorySpace.Acc if acc else MemorySpace.Vec, op.span)
        if target in self._at:
            self._at.tiles[op.result, space_of(tile)] = tile
            return
        self._at.store(tile, target, op.result, op.span)

    def _lower_assemble(self, op: Op) -> None:
        (target, *offsets), source = op.operands[:-1], op.operands[-1]
        assert isinstance(target, Var) and isinstance(source, Var) and op.result is not None
        if target in self._at:
            raise CompileError(
                f"{target.name} is computed here, so that it has no memory a part of which could "
                "be written: write it to a tensor first",
                op.span,
            )
        region = region_of(op)
        moves = region != whole_extents(source, op.span)
        acc = (source, MemorySpace.Acc) in self._at.tiles and not moves
        if self._at.is_partly_valid(source):
            tile = self._at.valid_part(source, op.span)
        else:
            tile = self._at.tile(source, MemorySpace.Acc if acc else MemorySpace.Vec, op.span)
        if moves:
            tile = self._at.tile_op("tile.reshape", (tile,), source.name, op.span, shape=region)
        self._at.drop_loaded()
        atomic = {key: value for key, value in op.attrs.items() if key == "atomic"}
        self._at.emit("tile.store", (tile, *offsets, target), op.result, op.span, **atomic)

    def _lower_slice(self, op: Op) -> None:
        """Loaded here, for it is a copy, and to wherever it is read."""
        result, (source, *offsets) = op.result, op.operands
        assert isinstance(source, Var) and result is not None
        if source in self._at:
            source = self._at.memory_of(source, op.span)
        region = region_of(op)
        padded = op.attrs["has_valid"] is True  # which happens in Vec
        for space in [MemorySpace.Vec] if padded else self._spaces_read(result):
            tile = self._at.tile_op(
                "tile.load",
                (source, *offsets),
                result.name,
                op.span,
                **load_attrs(region, space, has_valid=padded),
            )
            if padded:
                # Filled, so that nobody computes with what happens to be there.
                pad = op.attrs["pad"] or "zero"
                tile = self._at.tile_op("tile.fillpad", (tile,), result.name, op.span, pad=pad)
            matrix = whole_extents(result, op.span)
            if region != matrix:
                tile = self._at.tile_op("tile.reshape", (tile,), result.name, op.span, shape=matrix)
            self._at.tiles[result, space] = tile

    def _spaces_read(self, result: Var) -> list[MemorySpace]:
        """Where a copy is read: in Mat as a factor of a product, in Vec as anything else."""
        spaces = [MemorySpace.Mat] if self._factors[result] else []
        if result in self._escaping or self._reads[result] > self._factors[result]:
            spaces.append(MemorySpace.Vec)
        return spaces

    def _lower_reshape(self, op: Op) -> None:
        assert isinstance(op.operands[0], Var) and op.result is not None
        tile = self._at.tile(op.operands[0], MemorySpace.Vec, op.span)
        shape = whole_extents(op.result, op.span)
        self._at.tiles[op.result, MemorySpace.Vec] = self._at.tile_op(
            "tile.reshape", (tile,), op.result.name, op.span, shape=shape
        )

    def _compute(self, op: Op) -> None:
        assert op.result is not None
        name = "tile." + op.op.removeprefix("tensor.")
        attrs = dict(op.attrs)
        if op.op == "tensor.set_validshape":
            value = op.operands[0]
            assert isinstance(value, Var)
            tile = self._at.tile(value, MemorySpace.Vec, op.span)
            self._at.tiles[op.result, MemorySpace.Vec] = tile
            return
        if op.op == "tensor.full":
            attrs["shape"] = whole_extents(op.result, op.span)
        product = OPS[op.op].role is Role.PRODUCT
        if product and len(op.operands) > 2:
            tile = self._accumulate(op)
        elif product and len(tensor_type(op.result).shape) > 2:
            tile = batched_product(self._at, op, _variables(op.operands))
        else:
            space = MemorySpace.Mat if product else MemorySpace.Vec
            values = tuple(
                self._whole_or_valid(op, o, space)
                if isinstance(o, Var) and isinstance(o.type, TensorType)
                else o
                for o in op.operands
            )
            tile = self._at.tile_op(name, values, op.result.name, op.span, **attrs)
        self._at.tiles[op.result, space_of(tile)] = tile

    def _whole_or_valid(self, op: Op, var: Var, space: MemorySpace) -> Var:
        """The tile that an operation reads: the valid part where it matters what is valid."""
        if self._at.is_partly_valid(var):
            spec = OPS[op.op]
            if spec.pads:
                return self._at.valid_part(var, op.span)
            if spec.reduces is not None:
                return self._at.valid_part(var, op.span, (spec.reduces.axis,))
        return self._at.tile(var, space, op.span)

    def _accumulate(self, op: Op) -> Var:
        """In place where the accumulator is in Acc; else a product and a vector addition."""
        acc, *condition = op.operands[:-2]
        factors = _variables(op.operands[-2:])
        assert isinstance(acc, Var) and op.result is not None
        name, span = op.result.name, op.span
        inside = self._at.tiles.get((acc, MemorySpace.Acc))
        if inside is not None:
            tiles = (self._at.tile(factor, MemorySpace.Mat, span) for factor in factors)
            values = (inside, *condition, *tiles)
            return self._at.tile_op(op.op.replace("tensor", "tile"), values, name, span)
        if len(tensor_type(op.result).shape) > 2:
            product = batched_product(self._at, op, factors)
        else:
            tiles = (self._at.tile(factor, MemorySpace.Mat, span) for factor in factors)
            product = self._at.tile_op("tile.matmul", tuple(tiles), name, span)
            product = self._at.tile_op("tile.move", (product,), name, span, space=MemorySpace.Vec)
        start = self._at.tile(acc, MemorySpace.Vec, span)
        total = self._at.tile_op("tile.add", (start, product), name, span)
        if not condition:
            return total
        # A choice between two tiles: the product, or the sum in a copy of it.
        result = Var(name, total.type)
        self._at.out.append(If(condition[0], (), (product,), (), (total,), (result,), span))
        return result

    def _lower_loop(self, loop: For | While) -> None:
        spaces = [self._carried_space(c, y) for c, y in zip(loop.carried, loop.yields, strict=True)]
        carried: list[Carried] = []
        for old, space in zip(loop.carried, spaces, strict=True):
            if space is None:
                carried.append(old)
                continue
            assert isinstance(old.init, Var)
            init = self._at.tile(old.init, space, loop.span)
            arg, result = Var(old.arg.name, init.type), Var(old.result.name, init.type)
            self._at.tiles[old.arg, space] = arg
            carried.append(Carried(init, arg, result))
        if isinstance(loop, While):
            if stores(loop.body):  # the condition is looked at again after the body
                self._at.drop_loaded()
            deciding, (condition,) = self._nested(loop.condition_body, ((loop.condition, None),))
            loop = replace(loop, condition_body=deciding, condition=condition)
        body, yields = self._nested(loop.body, tuple(zip(loop.yields, spaces, strict=True)))
        self._at.out.append(replace(loop, carried=tuple(carried), body=body, yields=yields))
        for old, new, space in zip(loop.carried, carried, spaces, strict=True):
            if space is not None:
                self._at.tiles[old.result, space] = new.result

    def _carried_space(self, carried: Carried, after: Operand) -> MemorySpace | None:
        """Where a carried value lives, or ``None`` for what is not a tensor-level value."""
        if carried.arg not in self._at:
            return None
        starts_there = (carried.init, MemorySpace.Acc) in self._at.tiles
        accumulates = after in self._products
        return MemorySpace.Acc if starts_there and accumulates else MemorySpace.Vec

    def _lower_branch(self, branch: If) -> None:
        spaces = [MemorySpace.Vec if r in self._at else None for r in branch.results]
        then_body, then_yields = self._nested(
            branch.then_body, tuple(zip(branch.then_yields, spaces, strict=True))
        )
        else_body, else_yields = self._nested(
            branch.else_body, tuple(zip(branch.else_yields, spaces, strict=True))
        )
        new_results = []
        for old, value, space in zip(branch.results, then_yields, spaces, strict=True):
            if space is None:
                new_results.append(old)
                continue
            assert isinstance(value, Var)
            new = Var(old.name, value.type)
            self._at.tiles[old, space] = new
            new_results.append(new)
        self._at.out.append(
            replace(
                branch,
                then_body=then_body,
                then_yields=then_yields,
                else_body=else_body,
                else_yields=else_yields,
                results=tuple(new_results),
            )
        )


def _variables(operands: Sequence[Operand]) -> list[Var]:
    return [operand for operand in operands if isinstance(operand, Var)]


def _name(operand: Operand) -> str:
    return operand.name if isinstance(operand, Var) else str(operand.value)
