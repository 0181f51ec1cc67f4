"""Matrix products against torch: types, odd shapes, valid regions, accumulation, narrowing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.ir.dtypes import BF16, FP16, FP32, INT8, INT32, INT64, DataType

Tensor = torch.Tensor

SHAPES = ((1, 5, 3), (7, 13, 11), (16, 32, 48), (33, 17, 65), (40, 64, 1))
KINDS = {
    "FP32": (FP32, FP32),
    "FP16": (FP16, FP32),
    "BF16": (BF16, FP32),
    "INT8": (INT8, INT32),
}


def make(dtype: DataType, shape: tuple[int, ...], seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype.torch_name)
    if dtype == INT8:
        return torch.randint(-128, 128, shape, generator=generator).to(kind)
    return torch.randn(shape, generator=generator).to(kind)


def product(a: Tensor, b: Tensor) -> Tensor:
    """The exact product, rounded once."""
    if a.dtype == torch.int8:
        return (a.long() @ b.long()).to(torch.int32)
    return (a.double() @ b.double()).float()


def close(actual: Tensor, expected: Tensor, inner: int) -> None:
    """Within the error of `inner` additions in fp32, or equal for integers."""
    if actual.dtype == torch.int32:
        torch.testing.assert_close(actual, expected, rtol=0, atol=0)
    else:
        bound = 2.0**-23 * inner
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=4 * bound)


@pytest.mark.conforms("language.142")
@pytest.mark.parametrize("name", KINDS)
def test_products_of_odd_shapes(name: str, compile_text: Any) -> None:
    element, total = KINDS[name]
    types: dict[str, object] = {}
    lines = []
    for i, (m, k, n) in enumerate(SHAPES):
        types |= {f"a{i}": ((m, k), element), f"b{i}": ((k, n), element)}
        types |= {f"out{i}": ((m, n), total)}
        lines += [
            f"        left = pl.load(a{i}, [0, 0], [{m}, {k}], target_memory=pl.Mem.Mat)",
            f"        right = pl.load(b{i}, [0, 0], [{k}, {n}], target_memory=pl.Mem.Mat)",
            f"        out{i} = pl.store(pl.matmul(left, right), [0, 0], out{i})",
        ]
    params = ", ".join(
        f"{p}: pl.Out[pl.Tensor]" if p.startswith("out") else f"{p}: pl.Tensor" for p in types
    )
    text = f"def products({params}):\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
    compiled = compile_text(text + "\n".join(lines), types)
    tensors = {p: make(t[1], t[0], i) for i, (p, t) in enumerate(types.items())}  # type: ignore[index]
    compiled(*tensors.values())
    for i, (_, k, _) in enumerate(SHAPES):
        expected = product(tensors[f"a{i}"], tensors[f"b{i}"])
        close(tensors[f"out{i}"], expected, k)


@pytest.mark.parametrize("name", ["BF16", "INT8"])
@pytest.mark.parametrize("a_trans", [False, True])
def test_factors_are_transposed(name: str, a_trans: bool, compile_text: Any) -> None:
    element, total = KINDS[name]
    compiled = compile_text(
        f"""
        def transposed(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor], two: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                c = pl.matmul(a, b, a_trans={a_trans}, b_trans=True)
                out[:] = c
                two[:] = pl.matmul_acc(c, a, b, a_trans={a_trans}, b_trans=True)
            return out, two
        """,
        {
            "a": ((33, 19) if a_trans else (19, 33), element),
            "b": ((27, 33), element),
            "out": ((19, 27), total),
            "two": ((19, 27), total),
        },
    )
    a, b = make(element, (33, 19) if a_trans else (19, 33), 1), make(element, (27, 33), 2)
    expected = product(a.t() if a_trans else a, b.t())
    out, two = compiled(a, b)
    close(out, expected, 33)
    close(two, expected * 2, 66)


@pytest.mark.conforms("language.144")
@pytest.mark.parametrize("name", ["FP32", "INT8"])
def test_an_accumulation_over_slices(name: str, compile_text: Any) -> None:
    element, total = KINDS[name]
    compiled = compile_text(
        """
        def accumulate(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                left = pl.load(a, [0, 0], [19, 16], target_memory=pl.Mem.Mat)
                right = pl.load(b, [0, 0], [16, 23], target_memory=pl.Mem.Mat)
                acc = pl.matmul(left, right)
                for k in pl.range(16, 80, 16):
                    left = pl.load(a, [0, k], [19, 16], target_memory=pl.Mem.Mat)
                    right = pl.load(b, [k, 0], [16, 23], target_memory=pl.Mem.Mat)
                    acc = pl.matmul_acc(acc, left, right)
                out = pl.store(acc, [0, 0], out)
            return out
        """,
        {"a": ((19, 80), element), "b": ((80, 23), element), "out": ((19, 23), total)},
    )
    a, b = make(element, (19, 80), 1), make(element, (80, 23), 2)
    close(compiled(a, b), product(a, b), 80)


@pytest.mark.conforms("language.145")
@pytest.mark.parametrize("target", [FP16, BF16], ids=["FP16", "BF16"])
def test_an_accumulator_is_narrowed_when_it_is_stored(target: DataType, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def narrow(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor], whole: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                left = pl.load(a, [0, 0], [9, 14], target_memory=pl.Mem.Mat)
                right = pl.load(b, [0, 0], [14, 21], target_memory=pl.Mem.Mat)
                acc = pl.matmul(left, right)
                out = pl.store(acc, [0, 0], out)
                whole = pl.store(acc, [0, 0], whole)
            return out, whole
        """,
        {
            "a": ((9, 14), target),
            "b": ((14, 21), target),
            "out": ((9, 21), target),
            "whole": ((9, 21), FP32),
        },
    )
    narrow, whole = compiled(make(target, (9, 14), 3), make(target, (14, 21), 4))
    torch.testing.assert_close(narrow, whole.to(narrow.dtype), rtol=0, atol=0)


@pytest.mark.conforms("language.153")
def test_a_product_of_valid_regions(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def partial(a: pl.Tensor, b: pl.Tensor, m: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                left = pl.load(a, [0, 0], [32, 32], valid_shape=[m, 27], target_memory=pl.Mem.Mat)
                right = pl.load(b, [0, 0], [32, 16], valid_shape=[27, 9], target_memory=pl.Mem.Mat)
                out = pl.store(pl.matmul(left, right), [0, 0], out)
            return out
        """,
        {
            "a": ((30, 27), FP32),
            "b": ((27, 9), FP32),
            "m": INT64,
            "out": ((30, 9), FP32),
        },
    )
    a, b = make(FP32, (30, 27), 5), make(FP32, (27, 9), 6)
    for rows in (1, 30):
        out = torch.full((30, 9), 7.0)
        compiled(a, b, rows, out)
        close(out[:rows], product(a[:rows], b), 27)
        assert bool((out[rows:] == 7.0).all())


def test_tensor_level_products_in_expressions(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def layer(x: pl.Tensor, w: pl.Tensor, v: pl.Tensor, bias: pl.Tensor,
                  hidden: pl.Out[pl.Tensor], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                h = pl.relu(pl.col_expand_add(pl.matmul(x, w), bias))
                hidden[:] = h
                acc = pl.matmul(h, v)
                for i in pl.range(2):
                    acc = pl.matmul_acc(acc, h, v)
                out[:] = pl.mul(acc, 0.5)
            return hidden, out
        """,
        {
            "x": ((10, 20), FP32),
            "w": ((20, 30), FP32),
            "v": ((30, 7), FP32),
            "bias": ((1, 30), FP32),
            "hidden": ((10, 30), FP32),
            "out": ((10, 7), FP32),
        },
    )
    x, w, v, bias = (make(FP32, s, i) for i, s in enumerate([(10, 20), (20, 30), (30, 7), (1, 30)]))
    hidden, out = compiled(x, w, v, bias)
    h = torch.relu(product(x, w) + bias)
    close(hidden, h, 20)
    torch.testing.assert_close(out, 1.5 * product(h, v), rtol=1e-4, atol=1e-4)
