"""Pass: tensor-level operations of scopes and InCore functions become tile operations.

A tensor-level value is a tile: whole tensors are loaded when an operation first needs them, a
value that only tiles read never touches global memory, and an assignment is a store. One axis
becomes a row ``[1, N]``; three or more collapse onto the last.

A value goes through global memory, in a tensor created before the scope, where the rest of the
orchestration reads it and where a matrix product needs what a vector operation computed (no
direct way leads from Vec to Mat).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.dtypes import INDEX
from pypto.ir.errors import CompileError, IrTypeError
from pypto.ir.nodes import (
    AttrValue,
    Carried,
    Const,
    For,
    Function,
    FunctionKind,
    If,
    MemorySpace,
    Op,
    Operand,
    Program,
    Return,
    Scope,
    Span,
    Stmt,
    TensorType,
    TileType,
    Var,
)
from pypto.ir.ops import infer_result
from pypto.ir.passes.rewrite import bindings, reads, results, walk
from pypto.ir.passes.target import TargetLimits

_ZERO = Const(0, INDEX)
_PRODUCTS = ("tensor.matmul", "tensor.matmul_acc")
_STORES = ("tile.store", "tensor.assign", "tensor.assemble")
# Tensor operations that name memory; all others of ``tensor.*`` compute a value.
_MEMORY = ("tensor.create", "tensor.dim", "tensor.assign", "tensor.assemble", "tensor.reshape")


def lower_tensor_operations(program: Program, target: TargetLimits) -> Program:
    """The program without tensor-level computation."""
    functions = {name: _lowered(function) for name, function in program.functions.items()}
    return replace(program, functions=MappingProxyType(functions))


def _lowered(function: Function) -> Function:
    if function.func_type is FunctionKind.INCORE:
        lowering = _Lowering(function.body, escaping=frozenset())
        body = lowering.run(function.body)
        if lowering.prelude:
            culprit = lowering.prelude[0]
            raise CompileError(
                f"{_bound_name(culprit)} needs a tensor of its own in global memory, which an "
                "InCore function cannot create: create it in the orchestration function with "
                "pl.create_tensor and pass it as a pl.Out parameter",
                culprit.span,
            )
        return replace(function, body=body)
    total = Counter(reads(function.body))
    return replace(function, body=_lower_scopes(function.body, total))


def _bound_name(op: Op) -> str:
    return op.op if op.result is None else op.result.name


def _lower_scopes(body: Sequence[Stmt], total: Counter[Var]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Scope():
                inside = Counter(reads(stmt.body))
                escaping = frozenset(v for v in bindings(stmt.body) if total[v] > inside[v])
                lowering = _Lowering(stmt.body, escaping)
                lowered = lowering.run(stmt.body)
                out.extend(lowering.prelude)
                out.append(replace(stmt, body=lowered))
            case For():
                out.append(replace(stmt, body=_lower_scopes(stmt.body, total)))
            case If():
                out.append(
                    replace(
                        stmt,
                        then_body=_lower_scopes(stmt.then_body, total),
                        else_body=_lower_scopes(stmt.else_body, total),
                    )
                )
            case _:
                out.append(stmt)
    return tuple(out)


def _computed_values(body: Sequence[Stmt]) -> frozenset[Var]:
    """The tensor variables of a scope that are values, not names of memory."""
    values: set[Var] = set()
    size = -1
    while size != len(values):
        size = len(values)
        for stmt in walk(body):
            match stmt:
                case Op() if stmt.op.startswith("tensor.") and stmt.result is not None:
                    if stmt.op in ("tensor.assign", "tensor.assemble", "tensor.reshape"):
                        if stmt.operands[0] in values:
                            values.add(stmt.result)
                    elif stmt.op not in _MEMORY:
                        values.add(stmt.result)
                case For():
                    for carried, after in zip(stmt.carried, stmt.yields, strict=True):
                        if isinstance(carried.arg.type, TensorType) and (
                            carried.init in values or after in values
                        ):
                            values.update((carried.arg, carried.result))
                case If():
                    pairs = zip(stmt.results, stmt.then_yields, stmt.else_yields, strict=True)
                    for result, first, second in pairs:
                        if isinstance(result.type, TensorType) and (
                            first in values or second in values
                        ):
                            values.add(result)
                case _:
                    pass
    return frozenset(values)


class _Lowering:
    """One scope. ``prelude`` is what has to stand before it."""

    def __init__(self, body: Sequence[Stmt], escaping: frozenset[Var]) -> None:
        self.prelude: list[Op] = []
        self._values = _computed_values(body)
        self._bound = frozenset(bindings(body))
        self._producers = {
            stmt.result: stmt.op for stmt in walk(body) if isinstance(stmt, Op) and stmt.result
        }
        self._escaping = escaping
        self._factors = Counter(
            operand
            for stmt in walk(body)
            if isinstance(stmt, Op) and stmt.op in _PRODUCTS
            for operand in stmt.operands[-2:]
        )
        self._reads = Counter(reads(body))
        self._out: list[Stmt] = []
        # Tiles and memory that hold a tensor variable now. Both are scoped: what a nested body
        # adds does not outlive it, and a store drops every loaded tile, since it may alias.
        self._tiles: dict[tuple[Var, MemorySpace], Var] = {}
        self._memory: dict[Var, Var] = {}

    def run(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The lowered body."""
        return self._nested(body, ())[0]

    def _nested(
        self, body: Sequence[Stmt], yields: Sequence[tuple[Operand, MemorySpace | None]]
    ) -> tuple[tuple[Stmt, ...], tuple[Operand, ...]]:
        """A body and its yields; a space asks for the tile of that yield there."""
        saved = self._out, dict(self._tiles), dict(self._memory)
        if _stores(body):
            self._drop_loaded()
        self._out = []
        for stmt in body:
            self._lower(stmt)
        handed = tuple(
            value if space is None or isinstance(value, Const) else self._tile(value, space, span)
            for value, space, span in ((v, s, _last_span(body)) for v, s in yields)
        )
        lowered = tuple(self._out)
        self._out, self._tiles, self._memory = saved
        if _stores(body):
            self._drop_loaded()
        return lowered, handed

    def _drop_loaded(self) -> None:
        self._tiles = {key: tile for key, tile in self._tiles.items() if key[0] in self._values}

    def _lower(self, stmt: Stmt) -> None:
        match stmt:
            case Op():
                self._lower_op(stmt)
            case For():
                self._lower_loop(stmt)
            case If():
                self._lower_branch(stmt)
            case Return():
                for value in stmt.values:
                    if value in self._values:
                        raise CompileError(
                            f"{_name(value)} is computed here and written nowhere, so it cannot "
                            "be returned: write it to a pl.Out parameter first",
                            stmt.span,
                        )
                self._out.append(stmt)
            case _:
                self._out.append(stmt)
        for var in results(stmt):
            if var in self._escaping and var in self._values:
                self._materialise(var, stmt.span, escapes=True)

    def _lower_op(self, op: Op) -> None:
        if op.op.startswith("tensor."):
            match op.op:
                case "tensor.create":
                    self._hoist(op)
                case "tensor.assign":
                    self._lower_assign(op)
                case "tensor.assemble":
                    self._lower_assemble(op)
                case "tensor.slice":
                    self._lower_slice(op)
                case "tensor.reshape" if op.operands[0] in self._values:
                    self._lower_reshape(op)
                case "tensor.dim" if op.operands[0] in self._values:
                    self._static_dim(op)
                case "tensor.reshape" | "tensor.dim":
                    self._out.append(op)
                case _:
                    self._compute(op)
            return
        if op.op == "tile.store":
            self._drop_loaded()
        values = [
            self._gm(o, op.span) if isinstance(o, Var) and o in self._values else o
            for o in op.operands
        ]
        self._out.append(replace(op, operands=tuple(values)))

    def _hoist(self, op: Op) -> None:
        """Creation has to happen outside; it can when its extents come from there."""
        inside = [o for o in op.operands if isinstance(o, Var) and o in self._bound]
        if inside:
            raise CompileError(
                f"{_bound_name(op)}: the extent {inside[0].name} is computed inside the scope; "
                "create the tensor before the scope",
                op.span,
            )
        self.prelude.append(op)

    def _static_dim(self, op: Op) -> None:
        value, axis = op.operands[0], op.attrs["axis"]
        assert isinstance(value, Var) and isinstance(axis, int) and op.result is not None
        extent = _tensor_type(value).shape[axis]
        if not isinstance(extent, int):
            _matrix(value, op.span)  # says that the value's extents must be constants
            return
        self._emit("scalar.add", (Const(extent, INDEX), _ZERO), op.result, op.span)

    def _lower_assign(self, op: Op) -> None:
        target, source = op.operands
        assert isinstance(target, Var) and isinstance(source, Var) and op.result is not None
        producer = self._producers.get(source)
        acc = (source, MemorySpace.Acc) in self._tiles and producer in _PRODUCTS
        tile = self._tile(source, MemorySpace.Acc if acc else MemorySpace.Vec, op.span)
        if target in self._values:
            self._tiles[op.result, _space(tile)] = tile
            return
        self._store(tile, target, op.result, op.span)

    def _lower_assemble(self, op: Op) -> None:
        (target, *offsets), source, shape = op.operands[:-1], op.operands[-1], op.attrs["shape"]
        assert isinstance(target, Var) and isinstance(source, Var) and op.result is not None
        assert isinstance(shape, tuple)
        if target in self._values:
            raise CompileError(
                f"{target.name} is computed here, so that it has no memory a part of which could "
                "be written: write it to a tensor first",
                op.span,
            )
        region = shape[-2:] if len(shape) > 1 else (1, *shape)
        moves = region != _matrix(source, op.span)
        acc = (source, MemorySpace.Acc) in self._tiles and not moves
        tile = self._tile(source, MemorySpace.Acc if acc else MemorySpace.Vec, op.span)
        if moves:
            tile = self._tile_op("tile.reshape", (tile,), source.name, op.span, shape=region)
        self._drop_loaded()
        self._emit("tile.store", (tile, *offsets, target), op.result, op.span)

    def _store(self, tile: Var, target: Var, result: Var, span: Span) -> None:
        """The whole of ``target`` takes ``tile``; ``result`` names it afterwards."""
        type_ = _tensor_type(target)
        self._drop_loaded()
        if len(type_.shape) <= 2:
            zeros = (_ZERO,) * len(type_.shape)
            self._emit("tile.store", (tile, *zeros, target), result, span)
            return
        flat = _matrix(target, span)
        matrix = TensorType(flat, type_.dtype)
        view, written = Var(target.name, matrix), Var(target.name, matrix)
        self._emit("tensor.reshape", (target,), view, span, shape=flat)
        self._emit("tile.store", (tile, _ZERO, _ZERO, view), written, span)
        self._emit("tensor.reshape", (written,), result, span, shape=_static(type_))

    def _lower_slice(self, op: Op) -> None:
        """Loaded here, for it is a copy, and to wherever it is read."""
        result, (source, *offsets), shape = op.result, op.operands, op.attrs["shape"]
        assert isinstance(source, Var) and result is not None and isinstance(shape, tuple)
        if source in self._values:
            source = self._gm(source, op.span)
        region = shape[-2:] if len(shape) > 1 else (1, *shape)
        padded = op.attrs["has_valid"] is True  # which happens in Vec
        spaces = [MemorySpace.Mat] if self._factors[result] and not padded else []
        if padded or result in self._escaping or self._reads[result] > self._factors[result]:
            spaces.append(MemorySpace.Vec)
        for space in spaces:
            tile = self._tile_op(
                "tile.load",
                (source, *offsets),
                result.name,
                op.span,
                shape=region,
                space=space,
                has_valid=padded,
            )
            if padded:
                pad = op.attrs["pad"]
                tile = self._tile_op("tile.fillpad", (tile,), result.name, op.span, pad=pad)
            matrix = _matrix(result, op.span)
            if region != matrix:
                tile = self._tile_op("tile.reshape", (tile,), result.name, op.span, shape=matrix)
            self._tiles[result, space] = tile

    def _lower_reshape(self, op: Op) -> None:
        assert isinstance(op.operands[0], Var) and op.result is not None
        tile = self._tile(op.operands[0], MemorySpace.Vec, op.span)
        shape = _matrix(op.result, op.span)
        self._tiles[op.result, MemorySpace.Vec] = self._tile_op(
            "tile.reshape", (tile,), op.result.name, op.span, shape=shape
        )

    def _compute(self, op: Op) -> None:
        assert op.result is not None
        name = "tile." + op.op.removeprefix("tensor.")
        attrs = dict(op.attrs)
        if op.op == "tensor.full":
            attrs["shape"] = _matrix(op.result, op.span)
        if op.op == "tensor.matmul_acc":
            tile = self._accumulate(op)
        else:
            space = MemorySpace.Mat if op.op == "tensor.matmul" else MemorySpace.Vec
            values = tuple(
                self._tile(o, space, op.span)
                if isinstance(o, Var) and isinstance(o.type, TensorType)
                else o
                for o in op.operands
            )
            tile = self._tile_op(name, values, op.result.name, op.span, **attrs)
        self._tiles[op.result, _space(tile)] = tile

    def _accumulate(self, op: Op) -> Var:
        """In place where the accumulator is in Acc; else a product and a vector addition."""
        acc, left, right = op.operands
        assert isinstance(acc, Var) and op.result is not None
        factors = tuple(
            self._tile(o, MemorySpace.Mat, op.span) for o in (left, right) if isinstance(o, Var)
        )
        inside = self._tiles.get((acc, MemorySpace.Acc))
        if inside is not None:
            values = (inside, *factors)
            return self._tile_op("tile.matmul_acc", values, op.result.name, op.span)
        product = self._tile_op("tile.matmul", factors, op.result.name, op.span)
        moved = self._tile_op(
            "tile.move", (product,), op.result.name, op.span, space=MemorySpace.Vec
        )
        start = self._tile(acc, MemorySpace.Vec, op.span)
        return self._tile_op("tile.add", (start, moved), op.result.name, op.span)

    def _lower_loop(self, loop: For) -> None:
        spaces = [self._carried_space(c, y) for c, y in zip(loop.carried, loop.yields, strict=True)]
        carried: list[Carried] = []
        for old, space in zip(loop.carried, spaces, strict=True):
            if space is None:
                carried.append(old)
                continue
            assert isinstance(old.init, Var)
            init = self._tile(old.init, space, loop.span)
            arg, result = Var(old.arg.name, init.type), Var(old.result.name, init.type)
            self._tiles[old.arg, space] = arg
            carried.append(Carried(init, arg, result))
        body, yields = self._nested(loop.body, tuple(zip(loop.yields, spaces, strict=True)))
        self._out.append(replace(loop, carried=tuple(carried), body=body, yields=yields))
        for old, new, space in zip(loop.carried, carried, spaces, strict=True):
            if space is not None:
                self._tiles[old.result, space] = new.result

    def _carried_space(self, carried: Carried, after: Operand) -> MemorySpace | None:
        """Where a carried value lives, or ``None`` for what is not a tensor-level value."""
        if carried.arg not in self._values:
            return None
        starts_there = (carried.init, MemorySpace.Acc) in self._tiles
        accumulates = isinstance(after, Var) and self._producers.get(after) in _PRODUCTS
        return MemorySpace.Acc if starts_there and accumulates else MemorySpace.Vec

    def _lower_branch(self, branch: If) -> None:
        spaces = [MemorySpace.Vec if r in self._values else None for r in branch.results]
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
            self._tiles[old, space] = new
            new_results.append(new)
        self._out.append(
            replace(
                branch,
                then_body=then_body,
                then_yields=then_yields,
                else_body=else_body,
                else_yields=else_yields,
                results=tuple(new_results),
            )
        )

    def _tile(self, var: Operand, space: MemorySpace, span: Span) -> Var:
        """A tile in `space` that holds a tensor variable, made now if there is none."""
        assert isinstance(var, Var)
        tile = self._tiles.get((var, space))
        if tile is None:
            tile = self._made(var, space, span)
            self._tiles[var, space] = tile
        return tile

    def _made(self, var: Var, space: MemorySpace, span: Span) -> Var:
        if var in self._values:
            acc = self._tiles.get((var, MemorySpace.Acc))
            if acc is not None:
                return self._tile_op("tile.move", (acc,), var.name, span, space=space)
            var = self._gm(var, span)
        shape = _matrix(var, span)
        source = var
        if len(_tensor_type(var).shape) > 2:
            source = Var(var.name, TensorType(shape, _tensor_type(var).dtype))
            self._emit("tensor.reshape", (var,), source, span, shape=shape)
        zeros = (_ZERO,) * len(_tensor_type(source).shape)
        return self._tile_op(
            "tile.load", (source, *zeros), var.name, span, shape=shape, space=space, has_valid=False
        )

    def _gm(self, var: Var, span: Span) -> Var:
        """Global memory that holds a value."""
        memory = self._memory.get(var)
        return self._materialise(var, span, escapes=False) if memory is None else memory

    def _materialise(self, var: Var, span: Span, *, escapes: bool) -> Var:
        type_ = _tensor_type(var)
        _matrix(var, span)
        created = Var(var.name, type_)
        attrs: dict[str, AttrValue] = {
            "shape": _static(type_),
            "symbols": (),
            "dtype": type_.dtype,
        }
        self.prelude.append(Op("tensor.create", (), created, span, MappingProxyType(attrs)))
        acc = self._tiles.get((var, MemorySpace.Acc))
        tile = acc or self._tile(var, MemorySpace.Vec, span)
        # Outside, the value keeps its own variable: it now names the memory.
        written = var if escapes else Var(var.name, type_)
        self._store(tile, created, written, span)
        self._memory[var] = written
        return written

    def _tile_op(
        self, name: str, values: tuple[Operand, ...], hint: str, span: Span, **attrs: AttrValue
    ) -> Var:
        try:
            type_ = infer_result(name, values, attrs)
        except IrTypeError as error:
            raise CompileError(str(error), span) from error
        result = Var(hint, type_)
        self._emit(name, values, result, span, **attrs)
        return result

    def _emit(
        self, name: str, values: tuple[Operand, ...], result: Var, span: Span, **attrs: AttrValue
    ) -> None:
        self._out.append(Op(name, values, result, span, MappingProxyType(attrs)))


def _stores(body: Sequence[Stmt]) -> bool:
    return any(isinstance(s, Op) and s.op in _STORES for s in walk(body))


def _last_span(body: Sequence[Stmt]) -> Span:
    return body[-1].span if body else Span("", 0, 0)


def _space(tile: Var) -> MemorySpace:
    assert isinstance(tile.type, TileType)
    return tile.type.space


def _tensor_type(var: Var) -> TensorType:
    assert isinstance(var.type, TensorType)
    return var.type


def _static(type_: TensorType) -> tuple[int, ...]:
    """The extents of a type all of whose extents are known to be constants."""
    return tuple(extent for extent in type_.shape if isinstance(extent, int))


def _name(operand: Operand) -> str:
    return operand.name if isinstance(operand, Var) else str(operand.value)


def _matrix(var: Var, span: Span) -> tuple[int, int]:
    """The extents of the tile that holds a whole tensor."""
    shape = _tensor_type(var).shape
    static = [extent for extent in shape if isinstance(extent, int)]
    if len(static) != len(shape):
        raise CompileError(
            f"{var.name} has extents that are known at run time only, so it cannot be used as a "
            "whole: load tiles of constant shape with pl.load",
            span,
        )
    return math.prod(static[:-1]), static[-1]
