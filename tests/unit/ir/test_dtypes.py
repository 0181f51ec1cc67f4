"""Element types and their names elsewhere."""

from __future__ import annotations

import pytest
from pypto.ir import dtypes


@pytest.mark.conforms("language.22")
@pytest.mark.parametrize(
    ("dtype", "text", "size", "torch_name", "code"),
    [
        (dtypes.FP32, "fp32", 4, "float32", 0),
        (dtypes.FP16, "fp16", 2, "float16", 1),
        (dtypes.INT32, "int32", 4, "int32", 2),
        (dtypes.INT16, "int16", 2, "int16", 3),
        (dtypes.INT8, "int8", 1, "int8", 4),
        (dtypes.UINT8, "uint8", 1, "uint8", 5),
        (dtypes.BF16, "bfloat16", 2, "bfloat16", 6),
        (dtypes.INT64, "int64", 8, "int64", 7),
        (dtypes.UINT16, "uint16", 2, "uint16", 9),
        (dtypes.UINT32, "uint32", 4, "uint32", 10),
        (dtypes.UINT64, "uint64", 8, "uint64", 11),
        (dtypes.BOOL, "bool", 1, "bool", 8),
        (dtypes.INDEX, "index", 8, "int64", 7),
    ],
)
def test_names_sizes_and_codes(dtype, text, size, torch_name, code):
    assert str(dtype) == text
    assert dtype.get_byte() == size
    assert dtype.torch_name == torch_name
    assert dtype.code() == code
    assert dtypes.BY_NAME[text] is dtype
    assert repr(dtype) == f"pl.{dtype.constant_name}"
    assert getattr(dtypes, dtype.constant_name) is dtype


def test_every_type_is_listed_once():
    assert len(set(dtypes.DTYPES)) == len(dtypes.DTYPES) == len(dtypes.BY_NAME) == 13
    assert {d.name for d in dtypes.DTYPES if d.is_float} == {"fp32", "fp16", "bfloat16"}
    assert all(d.is_int == (d.name in dtypes.INT_RANGES) for d in dtypes.DTYPES)
