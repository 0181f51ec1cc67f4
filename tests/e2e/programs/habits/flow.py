"""Loops, branches, run-time extents and tasks."""

from __future__ import annotations

import pypto.language as pl

M = pl.dynamic("M")
N = pl.dynamic("N")


@pl.jit
def square_root(
    x: pl.Tensor[[16, 16], pl.FP32], n: pl.INT32, out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [16, 16])
        for y, left in pl.while_(init_values=(a, n)):
            pl.cond(left > 0)
            better = pl.mul(pl.add(y, pl.div(a, y)), 0.5)
            root, rest = pl.yield_(better, left - 1)
        out[:] = root
    return out


@pl.jit
def rows_of_lengths(
    x: pl.Tensor[[M, 32], pl.FP32],
    lengths: pl.Tensor[[4], pl.INT32],
    out: pl.Out[pl.Tensor[[M, 32], pl.FP32]],
):
    for b in pl.range(4):
        n = pl.tensor.read(lengths, [b])
        start = b * 16
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="ragged"):
            tile = pl.load(x, [start, 0], [16, 32], valid_shape=[n, 32])
            highest = pl.col_max(pl.tile.fillpad(tile, pad_value=pl.PadValue.min))
            out = pl.store(pl.col_expand_sub(tile, highest), [start, 0], out)
    return out


@pl.jit
def any_number_of_rows(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    x.bind_dynamic(0, N)
    out.bind_dynamic(0, N)
    n, width = x.shape
    blocks = (n + 15) // 16
    for i in pl.range(blocks):
        valid = min(16, n - i * 16)
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [i * 16, 0], [16, width], valid_shape=[valid, width])
            out = pl.store(pl.abs(tile), [i * 16, 0], out)
    return out


@pl.jit
def branch_with_yields(
    x: pl.Tensor[[16, 16], pl.FP32],
    n: pl.Scalar[pl.INT32],
    out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 16])
        if n % 2 == 0 and n > 2:
            chosen = pl.yield_(pl.add(tile, 1.0))
        else:
            chosen = pl.yield_(pl.sub(tile, 1.0))
        out = pl.store(chosen, [0, 0], out)
    return out


@pl.jit
def branches_outside(
    x: pl.Tensor[[32, 16], pl.FP32],
    control: pl.Tensor[[2], pl.INT64],
    out: pl.Out[pl.Tensor[[32, 16], pl.FP32]],
):
    mode = control[0]
    offset = control[1]
    for i in pl.range(2):
        if mode == i:
            with pl.at(level=pl.Level.CORE_GROUP):
                out[i * 16 : i * 16 + 16] = pl.exp(x[offset : offset + 16])
        else:
            with pl.at(level=pl.Level.CORE_GROUP):
                out[i * 16 : i * 16 + 16, :] = pl.full([16, 16], dtype=pl.FP32, value=7.0)
    return out


@pl.jit
def log_sum_exp(x: pl.Tensor[[16, 256], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        highest = pl.tile.full([16, 1], dtype=pl.FP32, value=-3.0e38)
        total = pl.tile.full([16, 1], dtype=pl.FP32, value=0.0)
        scratch = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        for j, (m, s) in pl.range(0, 256, 64, init_values=(highest, total)):
            tile = pl.load(x, [0, j], [16, 64])
            now = pl.maximum(m, pl.row_max(tile, scratch))
            p = pl.exp(pl.row_expand_sub(tile, now))
            sums = pl.add(pl.mul(s, pl.exp(pl.sub(m, now))), pl.row_sum(p, scratch))
            last, all_of_it = pl.yield_(now, sums)
        out[:] = pl.add(last, pl.log(all_of_it))
    return out


@pl.jit
def python_words(
    x: pl.Tensor[[16, 16], pl.FP32],
    n: pl.Scalar[pl.INT32],
    out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        a: pl.Tile[[16, 16], pl.FP32] = pl.load(x, [0, 0], [16, 16])
        b = pl.tile.full([16, 16], dtype=pl.FP32, value=1.0)
        k: pl.Scalar[pl.INT32] = 0
        for i in pl.range(n):
            a, b = pl.add(a, b), a
            if 0 < i < 3:
                k += 2
            else:
                k -= 1
        out[:] = pl.add(a, pl.cast(k, pl.FP32))
    return out


@pl.jit
def scalars_of_a_block(
    x: pl.Tensor[[64, 16], pl.FP32],
    i: pl.Scalar[pl.INT32],
    out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        offset = i * 8 + 4
        out = pl.store(pl.load(x, [offset, 0], [16, 16]), [0, 0], out)
    with pl.at(level=pl.Level.CORE_GROUP):
        after = pl.load(x, [offset + 16, 0], [16, 16])
        out = pl.store(pl.add(after, pl.load(out, [0, 0], [16, 16])), [0, 0], out)
    return out


@pl.jit
def loop_of_blocks(x: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    for i in pl.spmd(4, name_hint="rows"):
        tile = pl.load(x, [i * 16, 0], [16, 32])
        out = pl.store(pl.neg(tile), [i * 16, 0], out)
    return out


@pl.jit.incore
def bump(x: pl.InOut[pl.Tensor[[16, 16], pl.FP32]], k: pl.Scalar[pl.FP32]):
    x = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), k), [0, 0], x)
    return x


@pl.jit
def declared_order(
    x: pl.InOut[pl.Tensor[[16, 16], pl.FP32]], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
):
    ids = pl.array.create(3, pl.TASK_ID)
    with pl.manual_scope():
        x, first = pl.submit(bump, x, 1.0)
        ids[0] = first
        with pl.at(level=pl.Level.CORE_GROUP, deps=[ids[0], None], no_dep_args=[]) as second:
            x = pl.store(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), [0, 0], x)
        ids[1] = second
        with pl.at(level=pl.Level.CORE_GROUP, deps=[ids]):
            out = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)
    return x, out
