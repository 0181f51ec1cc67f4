"""Bits of run-time scalars, in the orchestration and on a core, against Python and torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.ir.dtypes import BOOL, FP32, INT8, INT32, INT64, UINT8, DataType

EXPRESSIONS = {
    "and": "a & b",
    "or": "a | b",
    "xor": "a ^ b",
    "inverted": "~a",
    "left": "a << n",
    "right": "a >> n",
    "mixed": "((a << 1) | 1) & ~(b >> 2) ^ 5",
}

KERNEL = """
def {name}(
    a: pl.Scalar[pl.{dtype}], b: pl.Scalar[pl.{dtype}], n: pl.Scalar[pl.{dtype}],
    outside: pl.Out[pl.Tensor], inside: pl.Out[pl.Tensor],
):
{outside}
    with pl.at(level=pl.Level.CORE_GROUP):
        none = pl.full([1, 1], pl.{dtype}, 0)
{stored}
{inside}
    return outside, inside
"""


def kernel(dtype: DataType) -> str:
    outside = [f"    o_{name} = {text}" for name, text in EXPRESSIONS.items()]
    stored, inside = [], []
    for i, (name, text) in enumerate(EXPRESSIONS.items()):
        stored.append(f"        outside = pl.store(pl.add(none, o_{name}), [0, {i}], outside)")
        inside.append(f"        inside = pl.store(pl.add(none, {text}), [0, {i}], inside)")
    return KERNEL.format(
        name=f"bits_{dtype.name}",
        dtype=dtype.constant_name,
        outside="\n".join(outside),
        stored="\n".join(stored),
        inside="\n".join(inside),
    )


def wrapped(value: int, dtype: DataType) -> int:
    value &= 2**dtype.bits - 1
    return value - 2**dtype.bits if dtype != UINT8 and value >= 2 ** (dtype.bits - 1) else value


def expected(a: int, b: int, n: int, dtype: DataType) -> list[int]:
    inside = 0 <= n < dtype.bits
    results = {
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
        "inverted": ~a,
        "left": a << n if inside else 0,
        "right": a >> n if inside else -1 if a < 0 else 0,
    }
    first = wrapped(wrapped(a << 1, dtype) | 1, dtype)
    results["mixed"] = first & ~(b >> 2) ^ 5
    return [wrapped(results[name], dtype) for name in EXPRESSIONS]


@pytest.mark.parametrize("dtype", [INT8, INT32, INT64, UINT8], ids=str)
def test_bits_of_scalars(dtype: DataType, compile_text: Any) -> None:
    kind = getattr(torch, dtype.torch_name)
    count = len(EXPRESSIONS)
    types: dict[str, object] = dict.fromkeys(("a", "b", "n"), dtype)
    types |= dict.fromkeys(("outside", "inside"), ((1, count), dtype))
    compiled = compile_text(kernel(dtype), types)
    low, high = torch.iinfo(kind).min, torch.iinfo(kind).max
    counts = [0, 1, dtype.bits - 1, dtype.bits, high] + ([-1] if low < 0 else [])
    for a, b in ((low, high), (high, 3), (0x55, 0x3C), (low + 1, 0)):
        for n in counts:
            outside, inside = compiled(a, b, n)
            assert outside.tolist() == inside.tolist() == [expected(a, b, n, dtype)], (a, b, n)


def test_bits_of_truth_values_and_conditions(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def truth(p: pl.Scalar[pl.BOOL], q: pl.Scalar[pl.BOOL], n: pl.INT32,
                  out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.full([1, 8], pl.FP32, 0)
                if p & ~q:
                    t = pl.add(t, 1)
                if (p ^ q) | ((n & 4) != 0):
                    t = pl.add(t, 2)
                for i in pl.range(n >> 1):
                    t = pl.add(t, 4)
                out = pl.store(t, [0, 0], out)
        """,
        {"p": BOOL, "q": BOOL, "n": INT32, "out": ((1, 8), FP32)},
    )
    for p in (False, True):
        for q in (False, True):
            for n in (1, 4, 7):
                out = torch.zeros((1, 8))
                compiled(p, q, n, out)
                want = (p and not q) + 2 * (p != q or n & 4 != 0) + 4 * (n >> 1)
                assert out.tolist() == [[float(want)] * 8]
