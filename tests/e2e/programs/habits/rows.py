"""Parts that kernels of other modules are made of."""

from __future__ import annotations

import pypto.language as pl

SCALE = 0.5
CHUNK = 16


@pl.jit.inline
def scaled_rows(x: pl.Tensor, row: pl.Scalar[pl.INDEX], out: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="scaled"):
        tile = pl.load(x, [row, 0], [CHUNK, 32])
        out = pl.store(pl.mul(tile, SCALE), [row, 0], out)
    return out


@pl.jit.inline
def all_rows(x: pl.Tensor, out: pl.Tensor):
    for row in pl.parallel(0, x.shape[0], CHUNK):
        out = scaled_rows(x, row, out)
    return out


@pl.jit.incore
def extremes(x: pl.Tensor, lowest: pl.Out[pl.Tensor], highest: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], [32, 32])
    scratch = pl.create_tile([32, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
    lowest = pl.store(pl.row_min(tile, scratch), [0, 0], lowest)
    highest = pl.store(pl.row_max(tile, scratch), [0, 0], highest)
    return lowest, highest


@pl.jit.incore
def affine(
    x: pl.Tensor,
    out: pl.Out[pl.Tensor],
    factor: pl.Scalar[pl.FP32] = 2.0,
    summand: pl.Scalar[pl.FP32] = 1.0,
):
    tile = pl.load(x, [0, 0], [16, 16])
    return pl.store(pl.add(pl.mul(tile, factor), summand), [0, 0], out)
