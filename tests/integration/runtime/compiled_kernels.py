"""Kernels of users, for tests of what becomes of their output directories."""

from __future__ import annotations

import pypto.language as pl


@pl.jit.incore
def twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], [16, 64])
    out = pl.store(pl.mul(tile, 2.0), [0, 0], out)
    return out


@pl.jit
def doubled(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    out = twice(x, out)
    return out


N = pl.dynamic("N")


@pl.jit.incore
def halve(x: pl.Tensor, out: pl.Out[pl.Tensor], count: pl.Scalar[pl.INT32]):
    tile = pl.load(x, [0, 0], [16, 64])
    out = pl.store(pl.mul(tile, 0.5), [0, 0], out)
    return out


@pl.jit
def halved(
    x: pl.Tensor[[N, 64], pl.FP32],
    count: pl.Scalar[pl.INT32],
    out: pl.Out[pl.Tensor[[N, 64], pl.FP32]],
):
    out = halve(x, out, count)
    return out


@pl.program
class Arithmetic:
    """Two programs that share a kernel."""

    @pl.function(type=pl.FunctionType.InCore)
    def add_tile(
        self,
        a: pl.Tensor[[16, 64], pl.FP32],
        b: pl.Tensor[[16, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        left = pl.load(a, [0, 0], [16, 64])
        right = pl.load(b, [0, 0], [16, 64])
        out = pl.store(pl.add(left, right), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def add(
        self,
        a: pl.Tensor[[16, 64], pl.FP32],
        b: pl.Tensor[[16, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        out = self.add_tile(a, b, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def twice_of(
        self,
        a: pl.Tensor[[16, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        out = self.add_tile(a, a, out)
        return out


@pl.jit
def tagged(
    x: pl.Tensor[[16, 64], pl.FP32],
    middle: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
):
    middle, _ = pl.submit(twice, x, middle)
    out, _ = pl.submit(twice, middle, out, dumps=[out])
    return out
