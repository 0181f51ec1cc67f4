"""Parts and shapes of tensors, conversions, products."""

from __future__ import annotations

import math

import pypto.language as pl

WEIGHTS = [0.25, 0.5, 0.25]


@pl.jit
def columns_and_rows(
    x: pl.Tensor[[16, 64], pl.FP32],
    row: pl.Out[pl.Tensor[[1, 16], pl.FP32]],
    column: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64])
        scratch = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.MemorySpace.Vec)
        sums = pl.reshape(pl.row_sum(tile, scratch), [1, 16])
        sums = pl.mul(pl.add(sums, 1.0), sums)
        row = pl.store(sums, [0, 0], row)
        column = pl.store(pl.tile.reshape(sums, [16, 1]), [0, 0], column)
    return row, column


@pl.jit
def names_of_outputs(x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
    y = pl.create_tensor([32, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.assemble(y, pl.mul(x, 2.0), [0, 0])
    o = out
    with pl.at(level=pl.Level.CORE_GROUP):
        z = pl.add(y, x)
    with pl.at(level=pl.Level.CORE_GROUP):
        o = pl.assemble(o, z[0:16, :], [16, 0])
        o[0:16] = z[16:32]
    return o


@pl.jit
def subscripts(
    x: pl.Tensor[[4, 16, 32], pl.FP32],
    table: pl.Tensor[[4], pl.INT32],
    out: pl.Out[pl.Tensor[[4, 16, 32], pl.FP32]],
):
    for b in pl.range(x.shape[0]):
        page = x[table[b]]
        with pl.at(level=pl.Level.CORE_GROUP):
            row = pl.add(page[0:8, 0:16], page[8:16, 16:32])
            out[b, 0:8, table[0] * 16 : table[0] * 16 + 16] = row
            out[b, 8:16, :] = pl.mul(page[8:16], x[b, 8:16])
    return out


@pl.jit
def product_in_blocks(
    a: pl.Tensor[[64, 128], pl.BF16],
    b: pl.Tensor[[128, 64], pl.BF16],
    c: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    for i in pl.parallel(0, 64, 32):
        for j in pl.parallel(0, 64, 32):
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
                left = pl.slice(a, [32, 32], [i, 0])
                right = pl.slice(b, [32, 32], [0, j])
                acc = pl.matmul(left, right, out_dtype=pl.FP32)
                for k in pl.pipeline(32, 128, 32, stage=2):
                    acc = pl.matmul_acc(acc, a[i : i + 32, k : k + 32], b[k : k + 32, j : j + 32])
                c = pl.assemble(c, acc, [i, j])
    return c


@pl.jit
def unrolled_taps(x: pl.Tensor[[18, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.full([16, 64], dtype=pl.FP32, value=0.0)
        for i in pl.unroll(len(WEIGHTS)):
            acc = pl.add(acc, pl.mul(x[i : i + 16, :], WEIGHTS[i]))
        out[:] = acc
    return out


@pl.jit
def quantized(
    x: pl.Tensor[[16, 64], pl.FP32],
    q: pl.Out[pl.Tensor[[16, 64], pl.INT8]],
    scales: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
    half: pl.Out[pl.Tensor[[16, 64], pl.FP16]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        scale = pl.mul(pl.maximum(pl.row_max(pl.abs(x)), 1e-4), 1.0 / 127.0)
        y = pl.row_expand_div(x, scale)
        q[:] = pl.cast(pl.cast(pl.cast(y, pl.INT32, mode="rint"), pl.FP16), pl.INT8)
        scales[:] = scale
        half[:] = pl.cast(x, target_type=pl.FP16)
    return q, scales, half


@pl.jit
def larger_of_two(
    x: pl.Tensor[[16, 64], pl.FP32],
    y: pl.Tensor[[16, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [16, 64])
        b = pl.load(y, [0, 0], [16, 64])
        out = pl.store(pl.sel(pl.cmp(a, b, cmp_type=4), a, b), [0, 0], out)
    return out


@pl.jit
def cached_rows(
    k: pl.Tensor[[4, 32], pl.FP32],
    pos: pl.Scalar[pl.INT32],
    cache: pl.Tensor[[64, 32], pl.FP32],
    out: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        cache = pl.assemble(cache, k, [pos, 0])
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = cache[pos - 4 : pos]
    return out


@pl.jit
def attention(
    q: pl.Tensor[[16, 32], pl.FP32],
    k: pl.Tensor[[64, 32], pl.FP32],
    v: pl.Tensor[[64, 32], pl.FP32],
    out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        scores = pl.mul(pl.matmul(q, k, b_trans=True), 1.0 / math.sqrt(32))
        p = pl.exp(pl.sub(scores, pl.row_max(scores)))
        out[:] = pl.matmul(pl.div(p, pl.row_sum(p)), v)
    return out
