"""Opaque functions: what calls of them become."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from pypto.backend import BackendType
from pypto.ir.dtypes import FP32, INDEX
from pypto.ir.nodes import (
    Call,
    Const,
    Direction,
    DynDim,
    Function,
    FunctionKind,
    Op,
    Param,
    Program,
    Return,
    ScalarType,
    Scope,
    Span,
    TensorType,
    Var,
)
from pypto.ir.passes import limits_of
from pypto.ir.passes.splice_opaque import splice_opaque_functions
from pypto.ir.verifier import Form, verify

SPAN = Span("tests:splice", 1, 0)
LIMITS = limits_of(BackendType.Ascend910B)


def attrs(**values):
    return MappingProxyType(values)


def created(extent: Var, result: Var, symbol: str) -> Op:
    attributes = attrs(shape=(None, 8), symbols=(symbol,), dtype=FP32)
    return Op("tensor.create", (extent,), result, SPAN, attributes)


def stage() -> Function:
    """``out = x`` over ``[M, 8]``, with a scratch tensor ``[M, 8]`` and one of ``[n, 8]``."""
    dynamic = TensorType((DynDim("M"), 8), FP32)
    x, out, n = Var("x", dynamic), Var("out", dynamic), Var("n", ScalarType(INDEX))
    rows, like = Var("rows", ScalarType(INDEX)), Var("like", dynamic)
    other = Var("other", TensorType((DynDim("n$0"), 8), FP32))
    body = (
        Op("tensor.dim", (x,), rows, SPAN, attrs(axis=0)),
        created(rows, like, "M"),
        created(n, other, "n$0"),
        Scope("", (Op("tensor.assign", (out, x), Var("out", dynamic), SPAN),), SPAN),
        Return((), SPAN),
    )  # fmt: skip
    params = (Param(x, Direction.In), Param(out, Direction.Out), Param(n, Direction.In))
    return Function("stage", FunctionKind.OPAQUE, params, body, (), SPAN)


def program(*functions: Function) -> Program:
    table = {function.name: function for function in functions}
    return Program("p", MappingProxyType(table), functions[-1].name)


@pytest.mark.conforms("language.51")
def test_a_call_becomes_the_statements_and_its_result_names_the_argument():
    fixed = TensorType((16, 8), FP32)
    a, b, first = Var("a", fixed), Var("b", fixed), Var("b", fixed)
    seven = Const(7, INDEX)
    body = (
        Call("stage", (a, b, seven), (first,), SPAN),
        Call("stage", (first, b, seven), (Var("b", fixed),), SPAN),
        Return((b,), SPAN),
    )
    params = (Param(a, Direction.In), Param(b, Direction.InOut))
    main = Function("main", FunctionKind.ORCHESTRATION, params, body, (fixed,), SPAN)
    before = program(stage(), main)
    verify(before, Form.FRONTEND)
    after = splice_opaque_functions(before, LIMITS)
    verify(after, Form.FRONTEND)
    assert list(after.functions) == ["main"]
    spliced = after.functions["main"].body
    assert [type(stmt).__name__ for stmt in spliced] == ["Op", "Op", "Scope"] * 2 + ["Return"]
    scopes = [stmt for stmt in spliced if isinstance(stmt, Scope)]
    assert [scope.body[0].operands for scope in scopes] == [(b, a), (b, b)]
    tensors = [stmt for stmt in spliced if isinstance(stmt, Op) and stmt.op == "tensor.create"]
    assert [op.result.type.shape for op in tensors] == [
        (16, 8), (DynDim("n$0.stage.1"), 8), (16, 8), (DynDim("n$0.stage.2"), 8),
    ]  # fmt: skip
    assert tensors[0].operands == () and tensors[1].operands == (seven,)


def test_an_opaque_function_that_nobody_calls_is_run_from_outside():
    before = program(stage())
    assert before.orchestrations == ("stage",)
    after = splice_opaque_functions(before, LIMITS)
    assert after.functions["stage"].func_type is FunctionKind.ORCHESTRATION
    assert after.functions["stage"].body == before.functions["stage"].body


def test_a_program_without_opaque_functions_stays_what_it_is():
    main = Function("main", FunctionKind.ORCHESTRATION, (), (Return((), SPAN),), (), SPAN)
    before = program(main)
    assert splice_opaque_functions(before, LIMITS) is before
