"""The kernels of the example: a normalisation, a projection and a gate."""

from __future__ import annotations

import pypto.language as pl

ROWS, WIDTH, BAND = 64, 128, 16
SLICE = 64


@pl.jit
def normalise(
    x: pl.Tensor[[ROWS, WIDTH], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, WIDTH], pl.FP32]],
):
    """Row-wise softmax, a band of rows at a time."""
    for row in pl.range(0, ROWS, BAND):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="normalise_band"):
            band = pl.load(x, [row, 0], [BAND, WIDTH])
            scratch = pl.create_tile([BAND, WIDTH], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            weights = pl.exp(pl.row_expand_sub(band, pl.row_max(band, scratch)))
            total = pl.row_sum(weights, scratch)
            out = pl.store(pl.row_expand_div(weights, total), [row, 0], out)
    return out


@pl.jit
def project(
    x: pl.Tensor[[ROWS, WIDTH], pl.FP32],
    weights: pl.Tensor[[WIDTH, WIDTH], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, WIDTH], pl.FP32]],
):
    """A matrix product, accumulated over slices of the inner dimension."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="project_block"):
        left = pl.load(x, [0, 0], [ROWS, SLICE], target_memory=pl.Mem.Mat)
        right = pl.load(weights, [0, 0], [SLICE, WIDTH], target_memory=pl.Mem.Mat)
        total = pl.matmul(left, right)
        left = pl.load(x, [0, SLICE], [ROWS, SLICE], target_memory=pl.Mem.Mat)
        right = pl.load(weights, [SLICE, 0], [SLICE, WIDTH], target_memory=pl.Mem.Mat)
        out = pl.store(pl.matmul_acc(total, left, right), [0, 0], out)
    return out


@pl.jit
def gate(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    """A product of two tensors of any shape that the configuration names."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate"):
        left = pl.load(x, [0, 0], [ROWS, WIDTH])
        right = pl.load(y, [0, 0], [ROWS, WIDTH])
        out = pl.store(pl.mul(left, right), [0, 0], out)
    return out
