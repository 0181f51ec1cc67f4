"""InCore functions that some call gives a part of a tensor take its strides."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from pypto.ir.dtypes import FP32
from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    Call,
    Direction,
    Function,
    FunctionKind,
    Op,
    Param,
    Program,
    Return,
    Span,
    TensorLayout,
    TensorType,
    Var,
)
from pypto.ir.passes import TargetLimits
from pypto.ir.passes.take_strides import take_strides
from pypto.ir.verifier import Form, verify

SPAN = Span("tests:kernel", 7, 4)


def program_of(kit: Any, callee: Any, parts: list[tuple[int, int]]) -> Program:
    """Calls of `callee(x, out)` with parts of [8, 16] of a wide tensor, at the given columns."""
    x, out = kit.tensor("x", 8, 16), kit.tensor("out", 8, 16)
    inner = kit.Body()
    callee(inner, x, out)
    params = (Param(x, Direction.In), Param(out, Direction.Out))
    returned = Return((), SPAN)
    kernel = Function("f", FunctionKind.INCORE, params, (*inner.stmts, returned), (), SPAN)
    wide, whole = kit.tensor("wide", 8, 64), kit.tensor("whole", 8, 16)
    body, calls = kit.Body(), []
    attrs = {"shape": (8, 16), "symbols": (), "drop": ()}
    for left, right in parts:
        source: Var = (
            whole
            if left < 0
            else body.op("tensor.view", wide, kit.index(0), kit.index(left), to="part", **attrs)
        )
        target: Var = (
            whole
            if right < 0
            else body.op("tensor.view", wide, kit.index(0), kit.index(right), to="part", **attrs)
        )
        result = Var("out", target.type)
        body.stmts.append(Call("f", (source, target), (result,), SPAN))
        calls.append(result)
    params = (Param(wide, Direction.InOut), Param(whole, Direction.InOut))
    entry = Function(
        "kernel", FunctionKind.ORCHESTRATION, params, (*body.stmts, returned), (), SPAN
    )  # fmt: skip
    program = Program("kernel", MappingProxyType({"f": kernel, "kernel": entry}), "kernel")
    verify(program, Form.FRONTEND)
    return program


def copies(body: Any, x: Var, out: Var) -> None:
    body.store(body.load(x, shape=(8, 16)), out)


def strided(shape: tuple[int, ...], adjacent: int | None) -> TensorType:
    return TensorType(shape, FP32, TensorLayout.ND, adjacent)


def test_a_parameter_takes_the_strides_that_any_call_needs(kit: Any, limits: TargetLimits) -> None:
    program = program_of(kit, copies, [(-1, -1), (16, -1), (-1, -1)])
    lowered = take_strides(program, limits)
    verify(lowered, Form.FRONTEND)
    x, out = (param.var.type for param in lowered.functions["f"].params)
    assert x == strided((8, 16), 1)
    assert out == strided((8, 16), None)
    assert lowered.functions["kernel"] is program.functions["kernel"]


def test_what_a_store_gives_is_strided_like_its_target(kit: Any, limits: TargetLimits) -> None:
    lowered = take_strides(program_of(kit, copies, [(-1, 32)]), limits)
    verify(lowered, Form.FRONTEND)
    (store,) = [s for s in lowered.functions["f"].body if getattr(s, "op", "") == "tile.store"]
    assert isinstance(store, Op)
    assert store.result is not None
    assert store.result.type == store.operands[-1].type == strided((8, 16), 1)  # type: ignore[union-attr]


def test_a_function_that_is_given_whole_tensors_stays(kit: Any, limits: TargetLimits) -> None:
    program = program_of(kit, copies, [(-1, -1)])
    assert take_strides(program, limits).functions["f"] is program.functions["f"]


def test_a_part_with_gaps_cannot_be_reshaped(kit: Any, limits: TargetLimits) -> None:
    def reshapes(body: Any, x: Var, out: Var) -> None:
        flat = body.op("tensor.reshape", x, shape=(16, 8))
        body.store(body.load(flat, shape=(16, 8)), body.op("tensor.reshape", out, shape=(16, 8)))

    with pytest.raises(CompileError, match="x is given a part of a larger tensor with gaps") as e:
        take_strides(program_of(kit, reshapes, [(16, -1)]), limits)
    assert e.value.span is not None
    assert e.value.span.unit == "tests:kernel"
    take_strides(program_of(kit, reshapes, [(-1, -1)]), limits)
