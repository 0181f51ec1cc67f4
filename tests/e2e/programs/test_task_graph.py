"""Five tasks with scalars: (a + b + 1) * (a + b + 2) + (a + b)."""

from __future__ import annotations

import pypto.language as pl
import torch

SIZE = 128


@pl.jit.incore
def add(
    a: pl.Tensor[[SIZE, SIZE], pl.FP32],
    b: pl.Tensor[[SIZE, SIZE], pl.FP32],
    out: pl.Out[pl.Tensor[[SIZE, SIZE], pl.FP32]],
):
    left = pl.load(a, [0, 0], [SIZE, SIZE])
    right = pl.load(b, [0, 0], [SIZE, SIZE])
    return pl.store(pl.add(left, right), [0, 0], out)


@pl.jit.incore
def add_scalar(
    a: pl.Tensor[[SIZE, SIZE], pl.FP32],
    scalar: pl.Scalar[pl.FP32],
    out: pl.Out[pl.Tensor[[SIZE, SIZE], pl.FP32]],
):
    return pl.store(pl.add(pl.load(a, [0, 0], [SIZE, SIZE]), scalar), [0, 0], out)


@pl.jit.incore
def mul(
    a: pl.Tensor[[SIZE, SIZE], pl.FP32],
    b: pl.Tensor[[SIZE, SIZE], pl.FP32],
    out: pl.Out[pl.Tensor[[SIZE, SIZE], pl.FP32]],
):
    left = pl.load(a, [0, 0], [SIZE, SIZE])
    right = pl.load(b, [0, 0], [SIZE, SIZE])
    return pl.store(pl.mul(left, right), [0, 0], out)


@pl.jit
def vector_dag(
    a: pl.Tensor[[SIZE, SIZE], pl.FP32],
    b: pl.Tensor[[SIZE, SIZE], pl.FP32],
    out: pl.Out[pl.Tensor[[SIZE, SIZE], pl.FP32]],
):
    c = pl.create_tensor([SIZE, SIZE], dtype=pl.FP32)
    c = add(a, b, c)
    d = pl.create_tensor([SIZE, SIZE], dtype=pl.FP32)
    d = add_scalar(c, 1.0, d)
    e = pl.create_tensor([SIZE, SIZE], dtype=pl.FP32)
    e = add_scalar(a=c, scalar=2.0, out=e)
    g = pl.create_tensor([SIZE, SIZE], dtype=pl.FP32)
    g = mul(d, e, g)
    out = add(g, c, out)
    return out


@pl.program
class VectorDag:
    """The same as a program: methods of a class, results that need no tensor to be named."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel_add(
        self,
        a: pl.Tensor[[SIZE, SIZE], pl.FP32],
        b: pl.Tensor[[SIZE, SIZE], pl.FP32],
        out: pl.Out[pl.Tensor[[SIZE, SIZE], pl.FP32]],
    ) -> pl.Tensor[[SIZE, SIZE], pl.FP32]:
        a_tile = pl.load(a, [0, 0], [SIZE, SIZE])
        b_tile = pl.load(b, [0, 0], [SIZE, SIZE])
        out = pl.store(pl.add(a_tile, b_tile), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def kernel_add_scalar(
        self,
        a: pl.Tensor[[SIZE, SIZE], pl.FP32],
        scalar: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[SIZE, SIZE], pl.FP32]],
    ) -> pl.Tensor[[SIZE, SIZE], pl.FP32]:
        x = pl.load(a, [0, 0], [SIZE, SIZE])
        out = pl.store(pl.add(x, scalar), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def kernel_mul(
        self,
        a: pl.Tensor[[SIZE, SIZE], pl.FP32],
        b: pl.Tensor[[SIZE, SIZE], pl.FP32],
        out: pl.Out[pl.Tensor[[SIZE, SIZE], pl.FP32]],
    ) -> pl.Tensor[[SIZE, SIZE], pl.FP32]:
        a_tile = pl.load(a, [0, 0], [SIZE, SIZE])
        b_tile = pl.load(b, [0, 0], [SIZE, SIZE])
        out = pl.store(pl.mul(a_tile, b_tile), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch(
        self,
        a: pl.Tensor[[SIZE, SIZE], pl.FP32],
        b: pl.Tensor[[SIZE, SIZE], pl.FP32],
        f: pl.Out[pl.Tensor[[SIZE, SIZE], pl.FP32]],
    ) -> pl.Tensor[[SIZE, SIZE], pl.FP32]:
        c: pl.Tensor[[SIZE, SIZE], pl.FP32] = pl.create_tensor([SIZE, SIZE], dtype=pl.FP32)
        c = self.kernel_add(a, b, c)
        d: pl.Tensor[[SIZE, SIZE], pl.FP32] = pl.create_tensor([SIZE, SIZE], dtype=pl.FP32)
        d = self.kernel_add_scalar(c, 1.0, d)
        e: pl.Tensor[[SIZE, SIZE], pl.FP32] = pl.create_tensor([SIZE, SIZE], dtype=pl.FP32)
        e = self.kernel_add_scalar(c, 2.0, e)
        g: pl.Tensor[[SIZE, SIZE], pl.FP32] = pl.create_tensor([SIZE, SIZE], dtype=pl.FP32)
        g = self.kernel_mul(d, e, g)
        f = self.kernel_add(g, c, f)
        return f


def expected(a, b):
    c = a + b
    return (c + 1) * (c + 2) + c


def test_a_graph_of_kernels(launch, normal):
    a, b, out = normal(SIZE, SIZE), normal(SIZE, SIZE), torch.empty(SIZE, SIZE)
    launch(vector_dag, a, b, out)
    torch.testing.assert_close(out, expected(a, b))


def test_a_graph_in_a_program(launch, normal):
    a, b, out = normal(SIZE, SIZE), normal(SIZE, SIZE), torch.empty(SIZE, SIZE)
    launch(VectorDag, a, b, out)
    torch.testing.assert_close(out, expected(a, b))
