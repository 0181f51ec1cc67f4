"""Programs built by hand, without the parser."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from pypto.ir.dtypes import FP32, INDEX, DataType
from pypto.ir.nodes import (
    AttrValue,
    Const,
    Direction,
    Function,
    FunctionKind,
    MemorySpace,
    Op,
    Operand,
    Param,
    Program,
    Return,
    ScalarType,
    Scope,
    Span,
    Stmt,
    TensorType,
    Var,
)
from pypto.ir.ops import infer_result


class BodyBuilder:
    """Appends operations to a body and names their results."""

    def __init__(self) -> None:
        self.body: list[Stmt] = []
        self._line = 1

    def span(self) -> Span:
        self._line += 1
        return Span("tests:kernel", self._line, 4)

    def op(self, name: str, *operands: Operand, to: str = "v", **attrs: AttrValue) -> Var:
        result = Var(to, infer_result(name, operands, attrs))
        self.body.append(Op(name, operands, result, self.span(), MappingProxyType(attrs)))
        return result

    def load(
        self,
        tensor: Var,
        shape: tuple[int, int],
        *offsets: Operand,
        space: MemorySpace = MemorySpace.Vec,
        to: str = "tile",
    ) -> Var:
        at = offsets or (zero(), zero())
        return self.op("tile.load", tensor, *at, to=to, shape=shape, space=space, has_valid=False)


def zero() -> Const:
    return Const(0, INDEX)


def tensor(name: str, *shape: int, dtype: DataType = FP32) -> Var:
    return Var(name, TensorType(shape, dtype))


def entry_program(
    params: list[tuple[Var, Direction]], body: list[Stmt], name: str = "kernel"
) -> Program:
    span = Span("tests:kernel", 1, 0)
    function = Function(
        name=name,
        func_type=FunctionKind.ORCHESTRATION,
        params=tuple(Param(var, direction) for var, direction in params),
        body=(*body, Return((), span)),
        return_types=(),
        span=span,
    )
    return Program(name, MappingProxyType({name: function}), name)


@pytest.fixture
def softmax() -> Program:
    """Row softmax of a 16 x 64 tensor in one scope."""
    x, out = tensor("x", 16, 64), tensor("out", 16, 64)
    b = BodyBuilder()
    tile = b.load(x, (16, 64), to="tile")
    largest = b.op("tile.row_max", tile, to="largest")
    shifted = b.op("tile.row_expand_sub", tile, largest, to="shifted")
    exps = b.op("tile.exp", shifted, to="exps")
    total = b.op("tile.row_sum", exps, to="total")
    result = b.op("tile.row_expand_div", exps, total, to="result")
    b.op("tile.store", result, zero(), zero(), out, to="out")
    scope = Scope("softmax_rows", tuple(b.body), b.span())
    return entry_program([(x, Direction.In), (out, Direction.Out)], [scope], "softmax")


@pytest.fixture
def matmul() -> Program:
    """A 32 x 48 x 64 matrix product in one scope, operands in Mat."""
    a, w, out = tensor("a", 32, 48), tensor("w", 48, 64), tensor("out", 32, 64)
    b = BodyBuilder()
    left = b.load(a, (32, 48), space=MemorySpace.Mat, to="left")
    right = b.load(w, (48, 64), space=MemorySpace.Mat, to="right")
    acc = b.op("tile.matmul", left, right, to="acc")
    b.op("tile.store", acc, zero(), zero(), out, to="out")
    scope = Scope("", tuple(b.body), b.span())
    params = [(a, Direction.In), (w, Direction.In), (out, Direction.Out)]
    return entry_program(params, [scope], "matmul")


@pytest.fixture
def parts() -> Program:
    """A part of a plane of a 4 x 8 x 32 tensor, copied in one scope."""
    x, out, i = tensor("x", 4, 8, 32), tensor("out", 8, 16), Var("i", ScalarType(INDEX))
    b = BodyBuilder()
    attrs = {"shape": (1, 8, 16), "symbols": (), "drop": (0,)}
    part = b.op("tensor.view", x, i, zero(), Const(4, INDEX), to="part", **attrs)
    view, inner = b.body[:], BodyBuilder()
    tile = inner.load(part, (8, 16), to="tile")
    inner.op("tile.store", tile, zero(), zero(), out, to="out")
    scope = Scope("taken", tuple(inner.body), inner.span())
    params = [(x, Direction.In), (i, Direction.In), (out, Direction.Out)]
    return entry_program(params, [*view, scope], "parts")
