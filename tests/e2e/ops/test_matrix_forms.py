"""Every form of matrix products and transposition: batches, flags, conditions, on both targets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import BF16, BOOL, FP16, FP32, INDEX, INT8, INT16, INT32, UINT8, DataType

Tensor = torch.Tensor
TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}


def made(*shape: int, dtype: DataType = FP32, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_float:
        return torch.randn(shape, generator=generator).to(getattr(torch, dtype.torch_name))
    low, high = (0, 200) if dtype.is_unsigned else (-100, 100)
    values = torch.randint(low, high, shape, generator=generator)
    return values.to(getattr(torch, dtype.torch_name))


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual.double(), expected.double(), rtol=2e-3, atol=2e-3)


@pytest.mark.conforms("language.142", "language.144", "language.147")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [FP16, BF16, FP32, INT8, UINT8, INT16, INT32], ids=str)
def test_tiles(compile_text: Any, dtype: DataType, target: str) -> None:
    """Products, sums of products, and a first product chosen at run time or known."""
    acc = FP32 if dtype.is_float else INT32
    text = f"""
        def tile_products_{dtype.name}_{target}(
            a: pl.Tensor, b: pl.Tensor, t: pl.Tensor, n: pl.Scalar[pl.INDEX],
            one: pl.Out[pl.Tensor], loop: pl.Out[pl.Tensor], fixed: pl.Out[pl.Tensor],
            turned: pl.Out[pl.Tensor],
        ):
            with pl.at(level=pl.Level.CORE_GROUP):
                left = pl.load(a, [0, 0], [17, 24], target_memory=pl.Mem.Mat)
                right = pl.load(b, [0, 0], [24, 9], target_memory=pl.Mem.Mat)
                one = pl.store(pl.matmul(left, right), [0, 0], one)
                acc = pl.create_tile([17, 9], dtype={acc!r}, target_memory=pl.Mem.Acc)
                for k in pl.range(n):
                    acc = pl.matmul_acc(acc, left, right, init_cond=(k == 0))
                loop = pl.store(acc, [0, 0], loop)
                sure = pl.matmul_acc(pl.matmul(left, right), left, right, init_cond=True)
                sure = pl.matmul_acc(sure, left, right, init_cond=False)
                fixed = pl.store(sure, [0, 0], fixed)
                other = pl.tile.transpose_view(pl.load(t, [0, 0], [9, 24],
                                                       target_memory=pl.Mem.Mat))
                turned = pl.store(pl.matmul(left, other), [0, 0], turned)
    """
    types: dict[str, object] = {
        "a": ((17, 24), dtype), "b": ((24, 9), dtype), "t": ((9, 24), dtype), "n": INDEX,
        **dict.fromkeys(("one", "loop", "fixed", "turned"), ((17, 9), acc)),
    }  # fmt: skip
    a, b, t = made(17, 24, dtype=dtype), made(24, 9, dtype=dtype), made(9, 24, dtype=dtype)
    outs = [torch.zeros(17, 9, dtype=getattr(torch, acc.torch_name)) for _ in range(4)]
    compile_text(text, types, backend_type=TARGETS[target])(a, b, t, 3, *outs)
    product = a.double() @ b.double()
    close(outs[0], product)
    close(outs[1], product * 3)
    close(outs[2], product * 2)
    close(outs[3], a.double() @ t.double().t())


@pytest.mark.conforms("language.143")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [FP16, FP32, INT8], ids=str)
def test_flags_of_tensors(compile_text: Any, dtype: DataType, target: str) -> None:
    """Transposed factors never pass through global memory."""
    acc = FP32 if dtype.is_float else INT32
    narrow = dtype if dtype.is_float else FP32
    text = f"""
        def flags_{dtype.name}_{target}(a: pl.Tensor, b: pl.Tensor, x: pl.Tensor, y: pl.Tensor,
                                        p: pl.Out[pl.Tensor], q: pl.Out[pl.Tensor],
                                        r: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                p[:] = pl.matmul(x, b, a_trans=True)
                s = pl.matmul(a, y, out_dtype={narrow!r}, b_trans=True, c_matrix_nz=True)
                q[:] = s
                r[:] = pl.matmul_acc(pl.matmul(a, b), x, y, a_trans=True, b_trans=True)
    """
    types = {
        "a": ((17, 24), dtype), "b": ((24, 9), dtype),
        "x": ((24, 17), dtype), "y": ((9, 24), dtype),
        "p": ((17, 9), acc), "q": ((17, 9), narrow), "r": ((17, 9), acc),
    }  # fmt: skip
    a, b = made(17, 24, dtype=dtype), made(24, 9, dtype=dtype, seed=2)
    x, y = made(24, 17, dtype=dtype, seed=3), made(9, 24, dtype=dtype, seed=4)
    outs = [torch.zeros(17, 9, dtype=getattr(torch, d.torch_name)) for d in (acc, narrow, acc)]
    compiled = compile_text(text, types, backend_type=TARGETS[target])
    compiled(a, b, x, y, *outs)
    a, b, x, y = (v.double() for v in (a, b, x, y))
    close(outs[0], x.t() @ b)
    torch.testing.assert_close(outs[1].double(), a @ y.t(), rtol=1e-2, atol=1e-2)
    close(outs[2], a @ b + x.t() @ y.t())
    texts = "".join(p.read_text() for p in compiled.output_dir.glob("ptoas/*.pto"))
    assert texts.count("pto.tstore ins") == 3


BATCHES = {
    "alike": ((3, 5, 7), (3, 7, 4)),
    "shared": ((3, 5, 7), (7, 4)),
    "crossed": ((2, 1, 5, 7), (3, 7, 4)),
    "single": ((1, 5, 7), (1, 7, 4)),
}


@pytest.mark.conforms("language.143")
@pytest.mark.parametrize("shapes", BATCHES.values(), ids=BATCHES)
def test_batches(compile_text: Any, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (made(*shape, seed=i) for i, shape in enumerate(shapes))
    expected = a @ b
    text = f"""
        def batches_{len(shapes[0])}(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor],
                                     h: pl.Out[pl.Tensor], e: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                o[:] = pl.matmul(a, b)
                h[:] = pl.matmul(a, b, out_dtype=pl.BF16)
                e[:] = pl.exp(pl.matmul_acc(pl.matmul(a, b), a, b))
    """
    shape = tuple(expected.shape)
    types = {"a": (shapes[0], FP32), "b": (shapes[1], FP32), "o": (shape, FP32),
             "h": (shape, BF16), "e": (shape, FP32)}  # fmt: skip
    o, h, e = torch.zeros(shape), torch.zeros(shape, dtype=torch.bfloat16), torch.zeros(shape)
    compile_text(text, types)(a, b, o, h, e)
    torch.testing.assert_close(o, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(h, expected.bfloat16(), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(e, torch.exp(expected * 2), rtol=1e-4, atol=1e-4)


@pytest.mark.conforms("language.143")
def test_flags_of_batches(compile_text: Any) -> None:
    text = """
        def batch_flags(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                o[:] = pl.matmul(a, b, a_trans=True, b_trans=True)
    """
    a, b, o = made(2, 7, 5), made(2, 4, 7, seed=2), torch.zeros(2, 5, 4)
    types = {"a": ((2, 7, 5), FP32), "b": ((2, 4, 7), FP32), "o": ((2, 5, 4), FP32)}
    compile_text(text, types)(a, b, o)
    torch.testing.assert_close(o, a.mT @ b.mT, rtol=1e-5, atol=1e-5)


AXES = [((6, 9), 0, 1), ((3, 4, 5), 1, 2), ((3, 4, 5), 0, 1), ((3, 4, 5), 0, -1),
        ((2, 3, 4, 5), 1, 3), ((2, 3, 4, 5), 0, 2), ((2, 3, 4, 5), 0, 3)]  # fmt: skip


@pytest.mark.conforms("language.147")
@pytest.mark.parametrize("dtype", [FP32, INT8, BOOL], ids=str)
def test_transposition(compile_text: Any, dtype: DataType) -> None:
    types: dict[str, object] = {}
    lines, params, expected = [], [], []
    ins: list[Tensor] = []
    for i, (shape, first, second) in enumerate(AXES):
        x = (torch.arange(torch.Size(shape).numel()) * 7 % 101 - 50).reshape(shape)
        x = x.to(getattr(torch, dtype.torch_name)) if dtype != BOOL else x > 0
        ins.append(x)
        expected.append(x.transpose(first, second))
        types |= {f"x{i}": (shape, dtype), f"o{i}": (tuple(expected[-1].shape), dtype)}
        params += [f"x{i}: pl.Tensor", f"o{i}: pl.Out[pl.Tensor]"]
        lines.append(f"        o{i}[:] = pl.transpose(x{i}, {first}, {second})")
    text = "\n".join([
        f"def transposes_{dtype.name}({', '.join(params)}):",
        "    with pl.at(level=pl.Level.CORE_GROUP):",
        *lines,
    ])  # fmt: skip
    outs = [torch.zeros(e.shape, dtype=e.dtype) for e in expected]
    compiled = compile_text(text, types)
    compiled(*(t for pair in zip(ins, outs, strict=True) for t in pair))
    for out, wanted in zip(outs, expected, strict=True):
        assert torch.equal(out, wanted)
