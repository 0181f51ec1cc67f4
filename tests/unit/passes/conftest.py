"""Building InCore functions by hand, and two ways to execute them.

``evaluate`` takes the representation at its word: every variable is a value. ``execute`` does what
the generated code does: every tile is a place in the memory of a core, found by the address that
memory planning gave it, and whatever shares memory overwrites each other. Where both agree on what
reaches the tensors, placing, copying and planning kept the program's meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from pypto.backend import BackendType
from pypto.ir.dtypes import BOOL, FP32, INDEX, DataType
from pypto.ir.nodes import (
    AttrValue,
    Carried,
    Const,
    Direction,
    For,
    Function,
    FunctionKind,
    If,
    MemorySpace,
    Op,
    Operand,
    Param,
    Program,
    ScalarType,
    Span,
    Stmt,
    TensorType,
    TileType,
    Var,
)
from pypto.ir.ops import infer_result
from pypto.ir.passes import TargetLimits, limits_of
from pypto.ir.passes.tile_layout import tile_bytes

Array = np.ndarray

UNIT = "tests:kernel"


class Body:
    """Appends statements to a body."""

    def __init__(self, lines: list[int] | None = None) -> None:
        self.stmts: list[Stmt] = []
        self._lines = [1] if lines is None else lines

    def span(self) -> Span:
        self._lines[0] += 1
        return Span(UNIT, self._lines[0], 4)

    def nested(self) -> Body:
        return Body(self._lines)

    def op(self, name: str, *operands: Operand, to: str = "v", **attrs: AttrValue) -> Var:
        result = Var(to, infer_result(name, operands, attrs))
        self.stmts.append(Op(name, operands, result, self.span(), MappingProxyType(attrs)))
        return result

    def load(self, tensor: Var, *at: int, shape: tuple[int, int], **attrs: AttrValue) -> Var:
        offsets = [index(o) for o in at] or [index(0), index(0)]
        attrs = {"space": MemorySpace.Vec, "has_valid": False, **attrs}
        return self.op("tile.load", tensor, *offsets, to="tile", shape=shape, **attrs)

    def store(self, tile: Var, tensor: Var, *at: int) -> Var:
        offsets = [index(o) for o in at] or [index(0), index(0)]
        return self.op("tile.store", tile, *offsets, tensor, to=tensor.name)

    def loop(
        self,
        count: Operand,
        inits: Sequence[Var],
        make: Callable[[Body, Var, list[Var]], Sequence[Operand]],
    ) -> list[Var]:
        carried = [Carried(v, Var(v.name, v.type), Var(v.name, v.type)) for v in inits]
        counter, body, span = Var("i", ScalarType(INDEX)), self.nested(), self.span()
        yields = make(body, counter, [c.arg for c in carried])
        self.stmts.append(
            For(
                counter,
                index(0),
                count,
                index(1),
                tuple(carried),
                tuple(body.stmts),
                tuple(yields),
                span,
            )
        )
        return [c.result for c in carried]

    def branch(
        self,
        condition: Operand,
        then: Callable[[Body], Sequence[Var]],
        other: Callable[[Body], Sequence[Var]],
    ) -> list[Var]:
        span, first, second = self.span(), self.nested(), self.nested()
        then_yields, else_yields = then(first), other(second)
        results = [Var(v.name, v.type) for v in then_yields]
        self.stmts.append(
            If(
                condition,
                tuple(first.stmts),
                tuple(then_yields),
                tuple(second.stmts),
                tuple(else_yields),
                tuple(results),
                span,
            )
        )
        return results


def index(value: int) -> Const:
    return Const(value, INDEX)


def number(value: float) -> Const:
    return Const(value, FP32)


def truth(value: bool) -> Const:
    return Const(value, BOOL)


def tensor(name: str, *shape: int, dtype: DataType = FP32) -> Var:
    return Var(name, TensorType(shape, dtype))


def incore(params: Sequence[Var], body: Sequence[Stmt], written: Sequence[Var] = ()) -> Program:
    """A program whose only function is an InCore one, `f`."""
    function = Function(
        name="f",
        func_type=FunctionKind.INCORE,
        params=tuple(Param(p, Direction.Out if p in written else Direction.In) for p in params),
        body=tuple(body),
        return_types=(),
        span=Span(UNIT, 1, 0),
    )
    return Program("f", MappingProxyType({"f": function}), "f")


_BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "adds": np.add,
    "muls": np.multiply,
    "row_expand_add": np.add,
    "row_expand_sub": np.subtract,
    "col_expand_mul": np.multiply,
}
_UNARY: Mapping[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "row_sum": lambda x: x.sum(axis=1, keepdims=True, dtype=np.float32),
    "row_max": lambda x: x.max(axis=1, keepdims=True),
}


# By operation, the operands that its result may be written over.
MAY_LIE_ON: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "maximum"), (0, 1)),
    **dict.fromkeys(("adds", "muls", "neg", "abs", "relu", "move", "matmul_acc"), (0,)),
    **dict.fromkeys(("row_expand_add", "row_expand_sub", "col_expand_mul"), (0,)),
}


def compute(op: Op, values: Sequence[object]) -> Array:
    """What a tile operation gives."""
    name = op.op.removeprefix("tile.")
    arrays = [np.asarray(v, dtype=np.float32) for v in values]
    if name in _BINARY:
        return _BINARY[name](arrays[0], arrays[1])
    if name in _UNARY:
        return _UNARY[name](arrays[0])
    if name == "matmul":
        return arrays[0] @ arrays[1]
    if name == "matmul_acc":
        return arrays[0] + arrays[1] @ arrays[2]
    if name == "reshape":
        return arrays[0].reshape(op.attrs["shape"])  # type: ignore[arg-type]
    if name == "concat":
        return np.concatenate((arrays[0], arrays[1]), axis=1)
    if name == "move":
        return arrays[0].copy()
    raise NotImplementedError(op.op)


class Machine:
    """Executes a function; ``memory`` maps a space to bytes, or is None to keep values."""

    def __init__(self, tensors: Mapping[Var, Array], limits: TargetLimits | None) -> None:
        self.tensors = dict(tensors)
        self.values: dict[Var, object] = {}
        self.addresses: dict[Var, int] = {}
        self.memory = None
        if limits is not None:
            rng = np.random.default_rng(7)
            self.memory = {
                space: rng.integers(0, 255, size, dtype=np.uint8).astype(np.uint8)
                for space, size in limits.capacity.items()
            }

    def read(self, operand: Operand) -> object:
        if isinstance(operand, Const):
            return operand.value
        if isinstance(operand.type, TileType) and self.memory is not None:
            type_, address = operand.type, self.addresses[operand]
            raw = self.memory[type_.space][address : address + tile_bytes(type_)]
            rows, cols = type_.shape
            return raw.view(np.float32)[: rows * cols].reshape(rows, cols).copy()
        return self.values[operand]

    def write(self, var: Var, value: object, address: int | None) -> None:
        if isinstance(var.type, TileType) and self.memory is not None:
            assert address is not None and address % 32 == 0
            self.addresses[var] = address
            if value is None:
                return
            data = np.ascontiguousarray(value, dtype=np.float32).view(np.uint8).ravel()
            place = self.memory[var.type.space][address : address + tile_bytes(var.type)]
            assert len(place) == tile_bytes(var.type), "outside the memory space"
            place[: len(data)] = data
            return
        self.values[var] = value

    def run(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            match stmt:
                case Op():
                    self.run_op(stmt)
                case For():
                    self.run_loop(stmt)
                case If():
                    taken = bool(self.read(stmt.condition))
                    self.run(stmt.then_body if taken else stmt.else_body)
                    yields = stmt.then_yields if taken else stmt.else_yields
                    for result, value in zip(stmt.results, yields, strict=True):
                        self.hand_on(result, value)

    def run_loop(self, loop: For) -> None:
        for c in loop.carried:
            self.hand_on(c.arg, c.init)
            self.hand_on(c.result, c.init)
        for i in range(*(int(self.read(o)) for o in (loop.start, loop.stop, loop.step))):  # type: ignore[call-overload]
            self.values[loop.var] = i
            self.run(loop.body)
            next_values = [self.values.get(y) for y in loop.yields if isinstance(y, Var)]
            if self.memory is None:
                for c, value in zip(loop.carried, next_values, strict=True):
                    self.values[c.arg] = self.values[c.result] = value
            else:
                for c, y in zip(loop.carried, loop.yields, strict=True):
                    assert isinstance(y, Var)
                    assert self.addresses[y] == self.addresses[c.arg]

    def hand_on(self, to: Var, source: Operand) -> None:
        assert isinstance(source, Var)
        if self.memory is not None:
            if to in self.addresses:
                assert self.addresses[to] == self.addresses[source]
            self.addresses[to] = self.addresses[source]
        else:
            self.values[to] = self.values.get(source)

    def check_overlap(self, op: Op, address: int | None) -> None:
        """A result may lie on an operand only element on element, in operations that allow it."""
        result = op.result
        if self.memory is None or result is None or not isinstance(result.type, TileType):
            return
        assert address is not None
        for position, operand in enumerate(op.operands):
            if not isinstance(operand, Var) or not isinstance(operand.type, TileType):
                continue
            if operand.type.space is not result.type.space:
                continue
            start = self.addresses[operand]
            apart = (
                start + tile_bytes(operand.type) <= address
                or address + tile_bytes(result.type) <= start
            )
            exact = start == address and operand.type.shape == result.type.shape
            name = op.op.removeprefix("tile.")
            assert apart or (exact and position in MAY_LIE_ON.get(name, ())), op

    def run_op(self, op: Op) -> None:
        result = op.result
        assert result is not None
        address = op.attrs.get("addr")
        assert address is None or isinstance(address, int)
        self.check_overlap(op, address)
        if op.op == "tile.load":
            tensor_var, *at = op.operands
            assert isinstance(tensor_var, Var) and isinstance(result.type, TileType)
            r, c = (int(self.read(o)) for o in at)  # type: ignore[call-overload]
            rows, cols = result.type.shape
            value = self.tensors[tensor_var][r : r + rows, c : c + cols].copy()
            self.write(result, value, address)
        elif op.op == "tile.store":
            tile, *at, target = op.operands
            assert isinstance(target, Var)
            r, c = (int(self.read(o)) for o in at)  # type: ignore[call-overload]
            value = self.read(tile)
            assert isinstance(value, np.ndarray)
            self.tensors[target][r : r + value.shape[0], c : c + value.shape[1]] = value
            self.tensors[result] = self.tensors[target]
        elif op.op == "tile.create":
            self.write(result, None, address)
        elif op.op.startswith("scalar."):
            left, right = (self.read(o) for o in op.operands)
            table = {"scalar.mod": lambda a, b: a % b, "scalar.eq": lambda a, b: a == b}
            self.values[result] = table[op.op](left, right)
        else:
            scratch = op.op in ("tile.row_sum", "tile.row_max") and len(op.operands) == 2
            if scratch and self.memory is not None:
                # An instruction may leave anything in its temporary tile.
                tmp = op.operands[1]
                assert isinstance(tmp, Var) and isinstance(tmp.type, TileType)
                junk = np.full(tmp.type.shape, -123.0, dtype=np.float32)
                values = [self.read(op.operands[0])]
                self.write(tmp, junk, self.addresses[tmp])
            else:
                values = [self.read(o) for o in op.operands]
            self.write(result, compute(op, values), address)


def outcome(
    program: Program, tensors: Mapping[str, Array], limits: TargetLimits | None
) -> dict[str, Array]:
    """What the InCore function leaves in its tensors."""
    function = program.functions["f"]
    params = {p.var: tensors[p.var.name].copy() for p in function.params}
    machine = Machine(params, limits)
    machine.run(function.body)
    return {p.var.name: machine.tensors[p.var] for p in function.params}


@pytest.fixture
def limits() -> TargetLimits:
    """The limits of the default architecture."""
    return limits_of(BackendType.Ascend910B)


@pytest.fixture
def kit() -> SimpleNamespace:
    """What the tests of this folder build programs with."""
    return SimpleNamespace(
        Body=Body,
        tensor=tensor,
        index=index,
        number=number,
        truth=truth,
        incore=incore,
        outcome=outcome,
    )
