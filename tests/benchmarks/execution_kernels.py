"""Kernels whose execution is timed, each one task on one core."""

from __future__ import annotations

import pypto.language as pl

ROWS, COLS = 256, 1024  # one MiB of fp32
SIDE = 256


@pl.jit
def softmax(x: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
    """Softmax of each row, eight rows at a time."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.range(0, ROWS, 8):
            band = pl.load(x, [row, 0], [8, COLS])
            scratch = pl.create_tile([8, COLS], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            weights = pl.exp(pl.row_expand_sub(band, pl.row_max(band, scratch)))
            total = pl.row_sum(weights, scratch)
            out = pl.store(pl.row_expand_div(weights, total), [row, 0], out)
    return out


@pl.jit
def matmul(
    a: pl.Tensor[[SIDE, SIDE], pl.FP32],
    b: pl.Tensor[[SIDE, SIDE], pl.FP32],
    out: pl.Out[pl.Tensor[[SIDE, SIDE], pl.FP32]],
):
    """A matrix product in blocks of 128 by 128 by 64."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.range(0, SIDE, 128):
            for col in pl.range(0, SIDE, 128):
                left = pl.move(
                    pl.load(a, [row, 0], [128, 64], target_memory=pl.Mem.Mat), pl.Mem.Left
                )
                right = pl.move(
                    pl.load(b, [0, col], [64, 128], target_memory=pl.Mem.Mat), pl.Mem.Right
                )
                total = pl.matmul(left, right)
                for k in pl.range(64, SIDE, 64):
                    left = pl.move(
                        pl.load(a, [row, k], [128, 64], target_memory=pl.Mem.Mat), pl.Mem.Left
                    )
                    right = pl.move(
                        pl.load(b, [k, col], [64, 128], target_memory=pl.Mem.Mat), pl.Mem.Right
                    )
                    total = pl.matmul_acc(total, left, right)
                out = pl.store(total, [row, col], out)
    return out


@pl.jit
def fused(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    gate: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    """``x * sigmoid(x) * gate``, the activation of a gated FFN, eight rows at a time."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.range(0, ROWS, 8):
            band = pl.load(x, [row, 0], [8, COLS])
            weights = pl.recip(pl.add(pl.exp(pl.neg(band)), 1.0))
            silu = pl.mul(band, weights)
            out = pl.store(pl.mul(silu, pl.load(gate, [row, 0], [8, COLS])), [row, 0], out)
    return out
