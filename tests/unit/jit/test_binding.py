from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pypto.language as pl
import pytest
import torch
from pypto.ir.dtypes import BF16, FP32, INT32
from pypto.ir.nodes import Direction, DynDim, ScalarType, TensorType
from pypto.jit.binding import Bound, Signature
from pypto.language.source import ConstValue, ParamAnnotation, ParamCategory

FULL = TensorType((16, 64), FP32)
DYNAMIC = TensorType((DynDim("N"), 64), FP32)


def param(
    name: str,
    category: ParamCategory = ParamCategory.TENSOR,
    type_: Any = None,
    direction: Direction = Direction.In,
) -> ParamAnnotation:
    return ParamAnnotation(name, direction, category, type_)


def signature(*params: ParamAnnotation, **defaults: object) -> Signature:
    return Signature("k", params, defaults)


X = param("x", type_=FULL)
BARE = param("x")
OUT = param("out", type_=FULL, direction=Direction.Out)
S = param("s", ParamCategory.SCALAR, ScalarType(INT32))
C = param("c", ParamCategory.CONSTEXPR)


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


def bind(sig: Signature, *args: Any, **kwargs: Any) -> Bound:
    if sig.is_signature_request(args, kwargs):
        return sig.bind_signature(kwargs)
    return sig.bind_samples(sig.positional(args, kwargs))


def test_names_and_outputs() -> None:
    sig = signature(X, S, OUT)
    assert sig.names == ("x", "s", "out")
    assert sig.outputs == ("out",)


@pytest.mark.conforms("language.118")
def test_annotations_and_samples_of_one_shape_are_one() -> None:
    sig = signature(X, OUT)
    by_name = bind(sig)
    by_sample = bind(sig, meta(16, 64), meta(16, 64))
    assert by_name.parameters == by_sample.parameters
    assert by_name.arguments == by_sample.arguments


@pytest.mark.conforms("language.117")
def test_a_request_with_a_tensor_by_keyword_takes_samples() -> None:
    sig = signature(X, OUT)
    assert bind(sig, out=meta(16, 64), x=meta(16, 64)).parameters == bind(sig).parameters
    with pytest.raises(TypeError, match="missing a required argument: 'out'"):
        bind(sig, x=meta(16, 64))


@pytest.mark.conforms("language.118")
def test_extents_and_types_of_samples_count() -> None:
    sig = signature(BARE)
    described = {
        bind(sig, meta(16, 64)).parameters,
        bind(sig, meta(32, 64)).parameters,
        bind(sig, meta(16, 64, dtype=torch.bfloat16)).parameters,
    }
    assert len(described) == 3
    assert bind(sig, meta(2, dtype=torch.bfloat16)).arguments["x"] == TensorType((2,), BF16)


@pytest.mark.conforms("language.119")
def test_a_terabyte_is_described_without_being_allocated() -> None:
    bound = bind(signature(BARE), meta(1 << 20, 1 << 20))
    assert bound.arguments["x"] == TensorType((1 << 20, 1 << 20), FP32)


@pytest.mark.conforms("language.27")
def test_dynamic_extents_do_not_count() -> None:
    sig = signature(param("x", type_=DYNAMIC))
    assert bind(sig).parameters == bind(sig, meta(5, 64)).parameters
    assert bind(sig, meta(5, 64)).arguments["x"] == DYNAMIC


@pytest.mark.conforms("language.28")
def test_extents_that_the_body_declares_dynamic_do_not_count() -> None:
    sig = Signature("k", (BARE,), {}, {"x": {0: "N"}})
    assert bind(sig, meta(5, 64)).parameters == bind(sig, meta(6, 64)).parameters
    assert bind(sig, meta(5, 64)).arguments["x"] == DYNAMIC


@pytest.mark.conforms("language.116")
@pytest.mark.parametrize("values", [(1, 2), (1, 2.5), (1, True)])
def test_scalar_values_do_not_count(values: tuple[Any, Any]) -> None:
    sig = signature(X, S)
    first, second = (bind(sig, meta(16, 64), value) for value in values)
    assert first.parameters == second.parameters
    assert [bound.values[1] for bound in (first, second)] == list(values)


@pytest.mark.conforms("language.115")
@pytest.mark.parametrize(
    "values", [(1, 2), (1, 1.0), (1, True), (0.0, -0.0), ([1], (1,)), ("a", b"a"), (FP32, BF16)]
)
def test_constants_count_with_their_types(values: tuple[Any, Any]) -> None:
    sig = signature(C)
    first, second = (bind(sig, c=value) for value in values)
    assert first.parameters != second.parameters
    assert first.arguments["c"] == ConstValue(values[0])


@pytest.mark.conforms("language.120")
def test_defaults_fill_in() -> None:
    sig = signature(X, S, C, s=3, c=7)
    bound = bind(sig, meta(16, 64))
    assert bound.values[1:] == (3, 7)
    assert bind(sig).arguments["c"] == ConstValue(7)
    assert sig.run_time(bound.values)[1:] == (3,)


@pytest.mark.conforms("language.116")
def test_a_literal_for_a_scalar_of_a_signature_is_deprecated() -> None:
    sig = signature(X, S)
    with pytest.warns(DeprecationWarning, match="'s'"):
        bound = bind(sig, s=3)
    assert bound.parameters == bind(sig).parameters
    assert bind(sig, s=pl.RUNTIME).parameters == bound.parameters


REFUSED: dict[str, tuple[Signature, tuple[Any, ...], dict[str, Any], str]] = {
    "bare": (signature(BARE), (), {}, "bare 'pl.Tensor' annotation with no shape"),
    "unannotated": (
        signature(param("x", ParamCategory.UNANNOTATED)),
        (),
        {},
        "cannot infer parameter 'x'",
    ),
    "missing": (signature(X, OUT), (meta(16, 64),), {}, "missing a required argument: 'out'"),
    "too many": (signature(X), (meta(1), meta(1)), {}, "takes 1 arguments"),
    "unexpected": (signature(X), (meta(16, 64),), {"y": 1}, "unexpected argument 'y'"),
    "unexpected in a signature": (signature(X), (), {"y": 1}, "unexpected argument 'y'"),
    "twice": (signature(X), (meta(16, 64),), {"x": meta(16, 64)}, "two values for argument 'x'"),
    "number for tensor": (signature(X), (1,), {}, "'x' is a tensor, got int"),
    "tensor for scalar": (signature(S), (meta(1),), {}, "'s' is a scalar, got a tensor"),
    "element type": (
        signature(X),
        (meta(16, 64, dtype=torch.complex64),),
        {},
        "Unsupported torch dtype",
    ),
    "no torch tensor": (
        signature(X),
        (SimpleNamespace(shape=(1,), dtype="float32"),),
        {},
        "'x' is a tensor, got SimpleNamespace",
    ),
    "array": (signature(X), (np.ones((16, 64)),), {}, "got ndarray; use torch.from_numpy"),
    "constant": (signature(C), (), {"c": object()}, "constexpr 'c'"),
    "missing constant": (signature(C), (), {}, "missing a required argument: 'c'"),
}


@pytest.mark.conforms("language.23", "language.117", "language.120", "language.125")
@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_named(name: str) -> None:
    sig, args, kwargs, text = REFUSED[name]
    with pytest.raises(TypeError) as caught:
        bind(sig, *args, **kwargs)
    assert text in str(caught.value)
    assert "k" in str(caught.value)


@pytest.mark.parametrize("number", [np.int64(2), np.int8(2), np.array(2)[()]])
def test_a_numpy_number_is_a_scalar(number: Any) -> None:
    assert bind(signature(S), number).arguments["s"] == ScalarType(INT32)
