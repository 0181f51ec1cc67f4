"""Scalars that leave the scope that computes them."""

from __future__ import annotations

import ast
import builtins
import textwrap

import pypto.language as pl
import pytest
from pypto.ir.dtypes import FP32, INT32
from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    Const,
    Direction,
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
from pypto.ir.passes import TargetLimits
from pypto.ir.passes.outline_scopes import outline_scopes
from pypto.ir.passes.rewrite import walk
from pypto.language.parser.program import parse_program
from pypto.language.source import FunctionSource

SPAN = Span("tests:kernel", 1, 0)


def parsed(text: str) -> Program:
    text = textwrap.dedent(text).strip() + "\n"
    tree = ast.parse(text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    source = FunctionSource(
        name="kernel",
        unit="tests:kernel",
        kind=FunctionKind.ORCHESTRATION,
        tree_of=lambda: tree,
        file="kernel.py",
        first_line=1,
        namespace={**vars(builtins), "pl": pl},
        lines=tuple(text.splitlines()),
    )
    tensor = TensorType((8, 16), FP32)
    types = {"x": tensor, "n": ScalarType(INT32), "out": tensor}
    return parse_program(source, types, name="kernel")


@pytest.mark.conforms("language.64")
def test_they_are_computed_before_it_with_what_they_need(limits: TargetLimits) -> None:
    program = outline_scopes(
        parsed(
            """
            def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
                with pl.at(level=pl.Level.CORE_GROUP):
                    half = n // 2
                    inner = n * 3
                    rows = half + 1
                    t = pl.load(x, [inner, 0], [1, 16])
                    out = pl.store(t, [half, 0], out)
                for i in pl.range(rows):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        out = pl.store(pl.load(x, [i, 0], [1, 16]), [i, 0], out)
            """
        ),
        limits,
    )
    entry = [s.op for s in walk(program.functions["kernel"].body) if isinstance(s, Op)]
    core = [s.op for s in walk(program.functions["kernel_incore_0"].body) if isinstance(s, Op)]
    assert [op for op in entry if op != "scalar.cast"] == ["scalar.floordiv", "scalar.add"]
    assert [op for op in core if op != "scalar.cast"] == ["scalar.mul", "tile.load", "tile.store"]


def test_what_a_core_reads_does_not_leave(limits: TargetLimits) -> None:
    tensor = TensorType((8, 16), FP32)
    x, read = Var("x", tensor), Var("s", ScalarType(FP32))
    zero = Const(0, pl.INDEX)
    scope = Scope("", (Op("tensor.read", (x, zero, zero), read, SPAN),), SPAN)
    after = Op("scalar.add", (read, read), Var("twice", ScalarType(FP32)), SPAN)
    body = (scope, after, Return((), SPAN))
    params = (Param(x, Direction.In),)
    entry = Function("kernel", FunctionKind.ORCHESTRATION, params, body, (), SPAN)
    with pytest.raises(CompileError, match="s is computed inside the scope and cannot be used"):
        outline_scopes(Program("kernel", {"kernel": entry}, "kernel"), limits)
