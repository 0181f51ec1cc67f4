"""Kernels that the benchmarks compile."""

from __future__ import annotations

import pypto.language as pl


@pl.jit
def add(
    a: pl.Tensor[[64, 64], pl.FP32],
    b: pl.Tensor[[64, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    """One vector kernel."""
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(
            pl.add(pl.load(a, [0, 0], [64, 64]), pl.load(b, [0, 0], [64, 64])), [0, 0], out
        )
    return out


@pl.jit
def scale(
    a: pl.Tensor[[64, 64], pl.FP32],
    factor: pl.Scalar[pl.FP32],
    out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    """A second kernel, for the next hit in one process."""
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.mul(pl.load(a, [0, 0], [64, 64]), factor), [0, 0], out)
    return out


@pl.jit
def softmax(
    x: pl.Tensor[[64, 128], pl.FP32],
    out: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
):
    """A kernel with reductions and a loop of tasks."""
    for row in pl.range(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            band = pl.load(x, [row, 0], [16, 128])
            scratch = pl.create_tile([16, 128], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            weights = pl.exp(pl.row_expand_sub(band, pl.row_max(band, scratch)))
            total = pl.row_sum(weights, scratch)
            out = pl.store(pl.row_expand_div(weights, total), [row, 0], out)
    return out
