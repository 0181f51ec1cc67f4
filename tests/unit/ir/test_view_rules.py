"""The types of parts of tensors: their extents, and which of their strides are known."""

from __future__ import annotations

import pytest
from pypto.ir.dtypes import FP32, INDEX
from pypto.ir.errors import IrTypeError, VerifyError
from pypto.ir.nodes import (
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
    Span,
    TensorLayout,
    TensorType,
    Var,
)
from pypto.ir.ops import infer_result
from pypto.ir.verifier import Form, verify

M = DynDim("M")


def tensor(*shape, adjacent=None, layout=TensorLayout.ND):
    return Var("x", TensorType(shape, FP32, layout, adjacent))


def index(value):
    return Const(value, INDEX)


def scalar(name="n"):
    return Var(name, ScalarType(INDEX))


def view(source, offsets, shape, *sizes, symbols=(), drop=()):
    operands = [source, *(index(o) if isinstance(o, int) else o for o in offsets), *sizes]
    return infer_result("tensor.view", operands, {"shape": shape, "symbols": symbols, "drop": drop})


@pytest.mark.parametrize(
    ("source", "offsets", "shape", "drop", "result", "adjacent"),
    [
        # Whole rows lie side by side, parts of several rows do not, a part of one row does.
        (tensor(64, 32), (16, 0), (8, 32), (), (8, 32), None),
        (tensor(64, 32), (16, 4), (8, 16), (), (8, 16), 1),
        (tensor(64, 32), (16, 4), (1, 16), (), (1, 16), None),
        (tensor(64, 32), (16, 4), (1, 16), (0,), (16,), None),
        (tensor(64, 32), (0, 4), (64, 1), (1,), (64,), 0),
        (tensor(64, 32), (0, 4), (64, 1), (), (64, 1), 1),
        (tensor(4, 64, 32), (1, 0, 0), (1, 64, 32), (0,), (64, 32), None),
        (tensor(4, 64, 32), (1, 8, 0), (2, 16, 32), (), (2, 16, 32), 2),
        (tensor(4, 64, 32), (1, 8, 0), (2, 1, 32), (1,), (2, 32), 1),
        (tensor(4, 64, 32), (1, 0, 8), (2, 64, 8), (), (2, 64, 8), 1),
        # A part of a part.
        (tensor(64, 32, adjacent=1), (3, 0), (1, 32), (0,), (32,), None),
        (tensor(64, 32, adjacent=1), (3, 0), (2, 32), (), (2, 32), 1),
        (tensor(64, adjacent=0), (3,), (8,), (), (8,), 0),
        (tensor(64, adjacent=0), (3,), (1,), (), (1,), None),
        (tensor(64, 1), (3, 0), (8, 1), (), (8, 1), None),
    ],
)  # fmt: skip
def test_a_part_knows_which_axes_have_no_gaps(source, offsets, shape, drop, result, adjacent):
    type_ = view(source, offsets, shape, drop=drop)
    assert type_ == TensorType(result, FP32, TensorLayout.ND, adjacent)
    assert type_.strided == (adjacent is not None)
    strides = [] if adjacent is None else list(range(len(result) - adjacent))
    assert list(type_.run_time_strides) == strides


def test_run_time_extents_have_a_symbol_and_a_limit():
    part = view(tensor(64, 32), (0, 0), (None, 32), scalar(), symbols=("n",))
    assert part == TensorType((DynDim("n", 64), 32), FP32)
    again = view(Var("y", part), (0, 0), (None, 8), scalar("m"), symbols=("m",))
    assert again == TensorType((DynDim("m", 64), 8), FP32, TensorLayout.ND, 1)
    # All of a run-time axis is that axis, so that nothing is cut off.
    whole = view(tensor(4, M), (1, 0), (2, None), scalar(), symbols=("M",))
    assert whole == TensorType((2, M), FP32)
    cut = view(tensor(4, M), (1, 0), (2, None), scalar(), symbols=("rest",))
    assert cut == TensorType((2, DynDim("rest")), FP32, TensorLayout.ND, 1)


@pytest.mark.parametrize(
    ("source", "offsets", "shape", "more", "message"),
    [
        (tensor(64, 32), (60, 0), (8, 32), {}, "pl.slice: takes elements 60 to 68 of axis 0"),
        (tensor(64, 32), (-1, 0), (8, 32), {}, "offset 0 is -1; offsets count from 0"),
        (tensor(64, 32), (scalar(), 0), (65, 32), {}, "takes 65 elements of axis 0, which has 64"),
        (tensor(64, 32), (0, 0), (64,), {}, "needs 2 extents for a tensor fp32[64, 32], got 1"),
        (tensor(64, 32), (0, 0), (0, 32), {}, "extents must be positive, but shape is [0, 32]"),
        (tensor(64, 32), (0, 0), (2, 32), {"drop": (0,)}, "cannot drop axis 0 of a part of [2, 3"),
        (tensor(64, 32), (0, 0), (1, 32), {"drop": (2,)}, "cannot drop axis 2"),
        (tensor(64, 32), (0, 0), (1, 1), {"drop": (0, 1)}, "a tensor has 1 to 5 dimensions, not 0"),
        (tensor(64, 32), (0, 0), (None, 1), {}, "needs one operand for each extent"),
        (tensor(64, 32, layout=TensorLayout.NZ), (0, 0), (8, 32), {}, "a tensor in layout NZ"),
    ],
)
def test_a_wrong_part_is_refused(source, offsets, shape, more, message):
    with pytest.raises(IrTypeError) as caught:
        view(source, offsets, shape, **more)
    assert message in str(caught.value)


def test_a_part_with_gaps_keeps_its_shape():
    with pytest.raises(IrTypeError, match="a part of a larger one with gaps between its elements"):
        infer_result("tensor.reshape", [tensor(8, 16, adjacent=1)], {"shape": (128,)})
    whole = infer_result("tensor.reshape", [tensor(8, 16)], {"shape": (128,)})
    assert whole == TensorType((128,), FP32)


def test_a_core_has_copies_of_parts_only():
    span = Span("tests:f", 1, 0)
    x = tensor(64, 32)
    attrs = {"shape": (8, 32), "symbols": (), "drop": ()}
    part = Var("part", infer_result("tensor.view", [x, index(0), index(0)], attrs))
    body = (Op("tensor.view", (x, index(0), index(0)), part, span, attrs), Return((), span))

    def program(kind):
        function = Function("f", kind, (Param(x, Direction.In),), body, (), span)
        return Program("p", {"f": function}, "f")

    verify(program(FunctionKind.ORCHESTRATION), Form.FRONTEND)
    with pytest.raises(VerifyError, match=r"tensor\.view has no place here in an incore function"):
        verify(program(FunctionKind.INCORE), Form.FRONTEND)
