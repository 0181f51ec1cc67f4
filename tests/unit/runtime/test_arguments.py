from __future__ import annotations

import ctypes
import math
import struct
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pypto.ir.dtypes import BF16, BOOL, BY_NAME, FP16, FP32, INDEX, INT8, INT32, INT64, UINT8
from pypto.ir.nodes import Direction
from pypto.ir.param_info import DYNAMIC, ParamInfo
from pypto.runtime.arguments import Signature
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.scalars import encode_scalar

IN, OUT, INOUT = Direction.In, Direction.Out, Direction.InOut


def _signature(*params: ParamInfo, returns: int = 1) -> Signature:
    return Signature("f", params, returns)


SIMPLE = _signature(
    ParamInfo("x", IN, (2, 3), FP32),
    ParamInfo("n", IN, None, INT32),
    ParamInfo("out", OUT, (2, 3), FP32),
)


def test_arguments_are_split_in_order() -> None:
    x, out = torch.ones(2, 3), torch.zeros(2, 3)
    bound = SIMPLE.bind((x, -1, out))
    assert [tensor.address for tensor in bound.tensors] == [x.data_ptr(), out.data_ptr()]
    assert bound.tensors[0].nbytes == 24
    assert bound.tensors[0].shape == (2, 3)
    assert bound.scalars == (2**64 - 1,)


@pytest.mark.conforms("language.21", "language.122", "language.124")
def test_the_count_decides_the_style() -> None:
    assert SIMPLE.output_indices == (2,)
    assert SIMPLE.returns_for(3) is False
    assert SIMPLE.returns_for(2) is True
    for count in (0, 1, 4):
        with pytest.raises(
            TypeError,
            match=rf"f expects 3 \(in-place\) or 2 \(return\) arguments, got {count}\. "
            r"Parameters: \[x, n, out\]",
        ):
            SIMPLE.returns_for(count)


@pytest.mark.conforms("language.21")
def test_without_return_values_or_outputs_there_is_one_style() -> None:
    silent = _signature(ParamInfo("x", IN, (2,), FP32), ParamInfo("o", OUT, (2,), FP32), returns=0)
    with pytest.raises(TypeError, match=r"expects 2 \(in-place\) arguments, got 1"):
        silent.returns_for(1)
    updating = _signature(ParamInfo("x", INOUT, (2,), FP32))
    assert updating.output_indices == ()
    assert updating.returns_for(1) is False


@pytest.mark.conforms("language.122")
def test_outputs_are_made_at_their_places() -> None:
    signature = _signature(
        ParamInfo("first", OUT, (2,), FP16),
        ParamInfo("x", IN, (2,), FP32),
        ParamInfo("second", OUT, (3, 1), INT8),
    )
    x = torch.ones(2)
    full, outputs = signature.with_outputs((x,))
    assert full[1] is x
    assert [full[0], full[2]] == outputs
    assert [(tuple(t.shape), t.dtype) for t in outputs] == [
        ((2,), torch.float16),
        ((3, 1), torch.int8),
    ]
    assert not outputs[1].any()


@pytest.mark.conforms("language.123")
def test_an_output_of_run_time_extent_must_be_passed() -> None:
    signature = _signature(
        ParamInfo("x", IN, (DYNAMIC,), FP32), ParamInfo("out", OUT, (DYNAMIC,), FP32)
    )
    with pytest.raises(ValueError, match=r"'out' .*pass it in place"):
        signature.with_outputs((torch.ones(2),))


@pytest.mark.conforms("language.125")
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (torch.ones(2, 3, dtype=torch.float64), TypeError, "torch.float32, got torch.float64"),
        (torch.ones(3, 2), ValueError, r"shape \[2, 3\], got \[3, 2\]"),
        (torch.ones(6), ValueError, r"shape \[2, 3\], got \[6\]"),
        (torch.ones(3, 2).T, ValueError, "contiguous"),
        (torch.ones(2, 6)[:, ::2], ValueError, "contiguous"),
        (torch.ones(2, 3).to_sparse(), ValueError, "dense"),
        (torch.ones(2, 3, device="meta"), ValueError, "device meta"),
        (np.ones((2, 3), dtype=np.float32), TypeError, "torch.from_numpy"),
        ([1.0], TypeError, "must be a torch.Tensor, got list"),
        (1.0, TypeError, "must be a torch.Tensor, got float"),
        (DeviceTensor(64, (2, 3), INT32), TypeError, "dtype fp32, got int32"),
        (DeviceTensor(64, (3, 2), FP32), ValueError, "shape"),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(
    value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=rf"f: argument 'x' \(position 0\).*{message}"):
        SIMPLE.bind((value, 1, torch.zeros(2, 3)))


@pytest.mark.conforms("language.125")
def test_a_tensor_is_no_scalar() -> None:
    with pytest.raises(TypeError, match=r"'n' \(position 1\) must be a scalar"):
        SIMPLE.bind((torch.ones(2, 3), torch.tensor(1), torch.zeros(2, 3)))


@pytest.mark.conforms("language.31")
def test_equal_symbols_are_equal_extents() -> None:
    signature = _signature(
        ParamInfo("a", IN, (DYNAMIC, 4), FP32, ("N", None)),
        ParamInfo("b", IN, (DYNAMIC,), FP32, ("N",)),
        ParamInfo("c", IN, (DYNAMIC,), FP32),
    )
    signature.bind((torch.ones(5, 4), torch.ones(5), torch.ones(9)))
    with pytest.raises(ValueError, match=r"'b' .* extent 6 where 'a' has 5, but both are 'N'"):
        signature.bind((torch.ones(5, 4), torch.ones(6), torch.ones(9)))
    with pytest.raises(ValueError, match=r"'a' .*shape \[N, 4\], got \[5, 3\]"):
        signature.bind((torch.ones(5, 3), torch.ones(5), torch.ones(9)))


def test_device_tensors_are_passed_by_address() -> None:
    bound = SIMPLE.bind((DeviceTensor(128, (2, 3), FP32), 1, torch.zeros(2, 3)))
    assert (bound.tensors[0].address, bound.tensors[0].nbytes) == (128, 24)


@pytest.mark.conforms("language.126")
@pytest.mark.parametrize(
    ("dtype", "value", "bits"),
    [
        (INT8, -1, 2**64 - 1),
        (UINT8, 255, 255),
        (INT64, -(2**63), 2**63),
        (INDEX, 7, 7),
        (INT32, True, 1),
        (INT32, np.int64(5), 5),
        (INT32, ctypes.c_int32(-2), 2**64 - 2),
        (BOOL, True, 1),
        (BOOL, np.bool_(False), 0),
        (FP32, 1, 0x3F800000),
        (FP32, np.float32(0.5), 0x3F000000),
        (FP32, ctypes.c_float(-2.0), 0xC0000000),
        (FP32, math.inf, 0x7F800000),
        (FP16, 1.0, 0x3C00),
        (BF16, 1.0, 0x3F80),
        (BF16, -math.inf, 0xFF80),
        (BF16, 1.00390625, 0x3F80),
        (BF16, 1.01171875, 0x3F82),
    ],
)
def test_scalars_become_bits(dtype: Any, value: object, bits: int) -> None:
    assert encode_scalar(dtype, value, "n") == bits


@pytest.mark.conforms("language.126")
@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [
        (INT8, 128, ValueError),
        (INT8, -129, ValueError),
        (UINT8, -1, ValueError),
        (INT64, 2**63, ValueError),
        (INT32, 1.0, TypeError),
        (INT32, "1", TypeError),
        pytest.param(INT32, 10**5000, ValueError, id="digits"),
        (INT32, torch.tensor(1), TypeError),
        (INT32, torch.tensor([1]), TypeError),
        (INT32, np.array(1), TypeError),
        (FP32, torch.tensor(1.0), TypeError),
        (FP32, np.array(1.0), TypeError),
        pytest.param(FP32, -(10**5000), ValueError, id="float digits"),
        (INT32, None, TypeError),
        (INT32, ctypes.c_int64(1), TypeError),
        (INT32, ctypes.c_float(1), TypeError),
        (FP32, "1.0", TypeError),
        (FP32, True, TypeError),
        (FP32, 1j, TypeError),
        (FP32, 1e39, ValueError),
        (FP32, 10**400, ValueError),
        (FP16, 1e6, ValueError),
        (FP16, ctypes.c_float(1), TypeError),
        (BF16, 3.4e38, ValueError),
        (BOOL, 1, TypeError),
    ],
)
def test_other_scalars_are_refused_by_name(
    dtype: Any, value: object, error: type[Exception]
) -> None:
    with pytest.raises(error, match="argument 'n'"):
        encode_scalar(dtype, value, "argument 'n'")


@given(st.floats(width=32, allow_infinity=False))
def test_bf16_rounds_as_torch_does(value: float) -> None:
    expected = torch.tensor(value, dtype=torch.float32).to(torch.bfloat16)
    if expected.isinf():
        with pytest.raises(ValueError, match="range"):
            encode_scalar(BF16, value, "n")
        return
    bits = encode_scalar(BF16, value, "n")
    got = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    assert got == expected.item() or (math.isnan(got) and math.isnan(value))


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_survive_the_way_through_64_bits(value: int) -> None:
    bits = encode_scalar(INT64, value, "n")
    assert struct.unpack("<q", struct.pack("<Q", bits))[0] == value


def test_every_element_type_has_an_encoding() -> None:
    for dtype in BY_NAME.values():
        assert encode_scalar(dtype, dtype is BOOL or 1, "n") > 0


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": (-2,)},
        {"shape": (4,), "symbols": ("N",)},
        {"shape": (DYNAMIC,), "symbols": ("N", "M")},
        {"shape": None, "direction": OUT},
    ],
)
def test_parameters_are_valid_from_birth(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="'p'"):
        ParamInfo(**{"name": "p", "direction": IN, "dtype": FP32, **fields})
