"""Signatures, calls and results: keywords, defaults, tuples, closures, tensors of one axis."""

from __future__ import annotations

import pypto.language as T
import pypto.language as pl
from pypto.language import FP32, Out, Tensor

from habits.rows import affine, all_rows, extremes


@pl.jit
def inline_over_modules(x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
    between = pl.create_tensor([32, 32], dtype=pl.FP32)
    between = all_rows(x, between)
    out = all_rows(x=between, out=out)
    return out


@pl.jit
def two_results(
    x: pl.Tensor, lowest: pl.Out[pl.Tensor], highest: pl.Out[pl.Tensor], out: pl.Out[pl.Tensor]
):
    lowest, highest = extremes(x, highest=highest, lowest=lowest)
    with pl.at(level=pl.Level.CORE_GROUP):
        span = pl.sub(highest, lowest)
        out[:] = pl.row_expand_div(pl.row_expand_sub(x, lowest), span)
    return lowest, highest, out


@pl.jit
def default_arguments(x: pl.Tensor, out: pl.Out[pl.Tensor], other: pl.Out[pl.Tensor]):
    out = affine(x, out)
    other = affine(x, other, summand=5.0)
    return out, other


@pl.jit
def returned_call(x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    return affine(x, out, 3.0)


@T.jit
def under_another_name(x: Tensor[[16, 16], FP32], out: Out[Tensor[[16, 16], FP32]]):
    with T.at(level=T.Level.CORE_GROUP):
        out[:] = T.add(x, x)
    return out


def activation(width, kind, scale):
    @pl.jit
    def kernel(x: pl.Tensor[[16, width], pl.FP32], out: pl.Out[pl.Tensor[[16, width], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [0, 0], [16, width])
            if kind == "relu":
                tile = pl.relu(tile)
            elif kind == "square":
                tile = pl.mul(tile, tile)
            out[:] = pl.mul(tile, scale)
        return out

    return kernel


@pl.jit
def scalars_between_tensors(
    n: pl.Scalar[pl.INT32],
    x: pl.Tensor[[16, 16], pl.FP32],
    factor: pl.FP32,
    multiply: pl.Scalar[pl.BOOL],
    out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    summand: pl.Scalar[pl.FP32] = 1.5,
):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 16])
        for _ in pl.range(n):
            if multiply:
                tile = pl.mul(tile, factor)
            else:
                tile = pl.add(tile, summand)
        out[:] = tile
    return out


@pl.jit
def one_axis(
    x: pl.Tensor[[256], pl.FP32],
    weight: pl.Tensor[[256], pl.FP32],
    out: pl.Out[pl.Tensor[[256], pl.FP32]],
):
    for i in pl.parallel(0, 256, 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [i], [64])
            b = pl.load(weight, [i], [64])
            out = pl.store(pl.add(pl.mul(a, b), a), [i], out)
    return out


@pl.jit
def one_axis_as_a_whole(x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.exp(x)
        y = pl.mul(y, 2.0)
        out[:] = pl.add(y, x)
    return out


@pl.jit
def constants(x: pl.Tensor, out: pl.Out[pl.Tensor], ROWS: pl.constexpr, MODE: pl.constexpr = "add"):
    pl.static_assert(ROWS % 16 == 0, "rows come in sixteens")
    for r in pl.range(0, ROWS, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            part = x[r : r + 16]
            if MODE == "add":
                out[r : r + 16] = pl.add(part, part)
            else:
                out[r : r + 16] = pl.mul(part, part)
    return out


@pl.program
class Gated:
    @pl.function(type=pl.FunctionType.InCore)
    def gate(
        self,
        a: pl.Tensor[[16, 32], pl.FP32],
        b: pl.Tensor[[16, 32], pl.FP32],
        out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        left: pl.Tile[[16, 32], pl.FP32] = pl.load(a, [0, 0], [16, 32])
        right = pl.load(b, [0, 0], [16, 32])
        share = pl.recip(pl.add(pl.exp(pl.neg(left)), 1.0))
        gated = pl.mul(pl.mul(left, share), right)
        done: pl.Tensor[[16, 32], pl.FP32] = pl.store(gated, [0, 0], out)
        return done

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[16, 32], pl.FP32],
        b: pl.Tensor[[16, 32], pl.FP32],
        out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        between: pl.Tensor[[16, 32], pl.FP32] = pl.create_tensor([16, 32], dtype=pl.FP32)
        between = self.gate(a, b, between)
        out = self.gate(between, b, out)
        return out
