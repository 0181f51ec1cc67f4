"""One kernel of each kind that the compiler makes: what the tests of reproducibility compile."""

from __future__ import annotations

import pypto.language as pl

M = pl.dynamic("M")
BIAS = 0.25


@pl.jit.incore
def scaled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """A kernel of its own, with a constant of the module."""
    out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), BIAS), [0, 0], out)
    return out


@pl.jit
def vector(
    x: pl.Tensor[[16, 64], pl.FP32],
    factor: pl.Scalar[pl.FP32],
    out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
):
    """A vector kernel, and a helper behind it."""
    between = pl.create_tensor([16, 64])
    with pl.at(level=pl.Level.CORE_GROUP):
        between = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), factor), [0, 0], between)
    out = scaled(between, out)
    return out


@pl.jit
def softmax(
    x: pl.Tensor[[64, 128], pl.FP32],
    out: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
):
    """Reductions and transcendental functions, in a loop of tasks."""
    for row in pl.range(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            band = pl.load(x, [row, 0], [16, 128])
            scratch = pl.create_tile([16, 128], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            weights = pl.exp(pl.row_expand_sub(band, pl.row_max(band, scratch)))
            total = pl.row_sum(weights, scratch)
            out = pl.store(pl.row_expand_div(weights, total), [row, 0], out)
    return out


@pl.jit
def matmul(
    a: pl.Tensor[[64, 128], pl.FP32],
    b: pl.Tensor[[128, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    """A kernel of a matrix core, with a loop inside."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="matmul_block"):
        left = pl.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        right = pl.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        total = pl.matmul(left, right)
        for k in pl.range(64, 128, 64):
            left = pl.load(a, [0, k], [64, 64], target_memory=pl.Mem.Mat)
            right = pl.load(b, [k, 0], [64, 64], target_memory=pl.Mem.Mat)
            total = pl.matmul_acc(total, left, right)
        out = pl.store(total, [0, 0], out)
    return out


@pl.jit.extern(core_type="aiv", source="extern/double.cpp", include_dirs=["extern/shared"])
def double(x: pl.InOut[pl.Tensor[[M, 4], pl.INT32]]):
    """Twice as much, in C++ with headers beside it and elsewhere."""
    ...


@pl.jit
def from_cpp(x: pl.InOut[pl.Tensor[[64, 4], pl.INT32]]):
    """A kernel written in C++."""
    x = double(x)
    return x


@pl.jit.extern(core_type="mixed", aic_source="extern/both.cpp", aiv_source="extern/both.cpp")
def both(x: pl.InOut[pl.Tensor]):
    """A task on a matrix core and a vector core at the same time."""
    ...


@pl.jit
def mixed(x: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]):
    """A mixed kernel written in C++."""
    x = both(x)
    return x


ALL = (vector, softmax, matmul, from_cpp, mixed)
