"""What counts as the same program, and how the first difference is named."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType

import pytest
from pypto.ir.dtypes import FP16, FP32, INDEX, INT32
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
    Span,
    TensorType,
    Var,
)
from pypto.ir.structure import StructuralDifference, assert_structural_equal, structural_equal

SPAN = Span("m:f", 1, 0)
TWO = Const(2.0, FP32)


def program(
    *,
    name: str = "p",
    local: str = "t",
    symbol: str = "M",
    dtype=FP32,
    number=TWO,
    span: Span = SPAN,
    param: str = "x",
    direction: Direction = Direction.In,
    again: bool = False,
    swapped: bool = False,
    limit: int | None = None,
) -> Program:
    tensor = TensorType((DynDim(symbol, limit), 8), dtype)
    x, y, n = Var(param, tensor), Var("y", tensor), Var("n", TensorType((4,), INT32))
    created, total = Var(local, tensor), Var("total", tensor)
    attrs = MappingProxyType({"shape": (None, 8), "symbols": (symbol,), "dtype": dtype})
    body = [
        Op("tensor.create", (Const(3, INDEX),), created, span, attrs),
        Op("tensor.muls", (y if swapped else x, number), total, span),
        Call("g", (created, total), (), span),
        *([Call("g", (created, total), (), span)] if again else []),
        Return((), span),
    ]
    params = (Param(x, direction), Param(y, Direction.In), Param(n, Direction.In))
    main = Function("f", FunctionKind.ORCHESTRATION, params, tuple(body), (), span)
    return Program(name, MappingProxyType({"f": main}), "f", {"m:f": ("a.py", 1)})


@pytest.mark.parametrize(
    "other",
    [
        program(),
        program(local="other"),
        program(symbol="rows$0"),
        program(span=Span("elsewhere:g", 9, 9)),
        replace(program(), sources=MappingProxyType({})),
    ],
    ids=["the same", "names of values", "extents", "places", "files"],
)
def test_names_of_local_values_and_places_do_not_count(other):
    assert_structural_equal(program(), other)
    assert structural_equal(other, program())


MAIN = "functions['f']"


@pytest.mark.parametrize(
    ("other", "path", "detail"),
    [
        (program(name="q"), "name", "'p' and 'q'"),
        (program(param="z"), f"{MAIN}.params[0].name_hint", "'x' and 'z'"),
        (
            program(direction=Direction.InOut),
            f"{MAIN}.params[0].direction",
            "Direction.In and Direction.InOut",
        ),
        (program(dtype=FP16), f"{MAIN}.params[0].var.type.dtype", "pl.FP32 and pl.FP16"),
        (program(limit=4), f"{MAIN}.params[0].var.type.shape[0].limit", "None and 4"),
        (
            program(number=Const(3.0, FP32)),
            f"{MAIN}.body[1].operands[1]",
            "pl.const(2.0, pl.FP32) and pl.const(3.0, pl.FP32)",
        ),
        (
            program(number=Const(2, FP32)),
            f"{MAIN}.body[1].operands[1]",
            "pl.const(2.0, pl.FP32) and pl.const(2, pl.FP32)",
        ),
        (
            program(swapped=True),
            f"{MAIN}.body[1].operands[0]",
            "'x' and 'y' stand for different values",
        ),
        (program(again=True), f"{MAIN}.body[3]", "a Return and a Call"),
    ],
)
def test_the_first_difference_is_named(other, path, detail):
    message = f"the representations differ at {path}: {detail}"
    with pytest.raises(StructuralDifference, match=re.escape(message) + "$") as caught:
        assert_structural_equal(program(), other)
    assert (caught.value.path, caught.value.detail) == (path, detail)
    assert not structural_equal(other, program())


def test_either_style_of_except_catches_it():
    for kind in (AssertionError, ValueError):
        with pytest.raises(kind):
            assert_structural_equal(program(), program(name="q"))


def test_extents_correspond_one_to_one():
    square = TensorType((DynDim("M"), DynDim("M")), FP32)
    oblong = TensorType((DynDim("M"), DynDim("N")), FP32)

    def over(type_: TensorType) -> Function:
        params = (Param(Var("x", type_), Direction.In),)
        return Function("f", FunctionKind.INCORE, params, (Return((), SPAN),), (), SPAN)

    with pytest.raises(StructuralDifference, match="stand for different run-time extents"):
        assert_structural_equal(over(square), over(oblong))
    with pytest.raises(StructuralDifference, match="stand for different run-time extents"):
        assert_structural_equal(over(oblong), over(square))


def test_functions_and_programs_are_two_things():
    with pytest.raises(StructuralDifference, match="at the top: a Program and a Function"):
        assert_structural_equal(program(), program().functions["f"])


def test_items_that_only_one_side_has():
    longer, shorter = program(again=True), program()
    function = shorter.functions["f"]
    cut = replace(function, body=function.body[:-1])
    with pytest.raises(StructuralDifference, match=r"5 and 3 items; only the left has a Call$"):
        assert_structural_equal(longer.functions["f"], cut)
