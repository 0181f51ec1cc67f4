"""Activations, element by element: each a kernel of one scope, and one that takes two tensors."""

from __future__ import annotations

import pypto.language as pl
import torch
import torch.nn.functional as F

ROWS, COLS = 32, 128


@pl.jit
def silu(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="silu"):
        tile = pl.load(x, [0, 0], [ROWS, COLS])
        gate = pl.recip(pl.add(pl.exp(pl.neg(tile)), 1.0))
        out = pl.store(pl.mul(tile, gate), [0, 0], out)
    return out


@pl.jit
def gelu(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    """The approximation by a hyperbolic tangent, which is made of exponentials."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gelu"):
        tile = pl.load(x, [0, 0], [ROWS, COLS])
        cube = pl.mul(pl.mul(tile, tile), tile)
        inner = pl.mul(pl.add(tile, pl.mul(cube, 0.044715)), 2.0 * 0.7978845608028654)
        # tanh(z) = 1 - 2 / (exp(2 z) + 1)
        tanh = pl.add(pl.mul(pl.recip(pl.add(pl.exp(inner), 1.0)), -2.0), 1.0)
        out = pl.store(pl.mul(pl.mul(tile, 0.5), pl.add(tanh, 1.0)), [0, 0], out)
    return out


@pl.jit
def leaky_relu(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Whole tensors inside a scope: nothing is loaded or stored by hand."""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.maximum(x, pl.mul(x, 0.125))
    return out


@pl.jit
def swiglu(
    gate: pl.Tensor[[ROWS, 2 * COLS], pl.FP32],
    up: pl.Tensor[[ROWS, 2 * COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, 2 * COLS], pl.FP32]],
):
    """Two blocks of columns, whose order does not matter."""
    for col in pl.parallel(0, 2 * COLS, COLS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="swiglu_block"):
            g = pl.load(gate, [0, col], [ROWS, COLS])
            u = pl.load(up, [0, col], [ROWS, COLS])
            one = pl.full([ROWS, COLS], dtype=pl.FP32, value=1.0)
            sigmoid = pl.div(one, pl.add(one, pl.exp(pl.neg(g))))
            out = pl.store(pl.mul(pl.mul(g, sigmoid), u), [0, col], out)
    return out


def test_silu(launch, normal):
    x, out = normal(ROWS, COLS), torch.empty(ROWS, COLS)
    launch(silu, x, out)
    torch.testing.assert_close(out, F.silu(x))


def test_gelu(launch, normal):
    x, out = normal(ROWS, COLS), torch.empty(ROWS, COLS)
    launch(gelu, x, out)
    torch.testing.assert_close(out, F.gelu(x, approximate="tanh"), rtol=1e-5, atol=1e-6)


def test_leaky_relu(launch, normal):
    x, out = normal(ROWS, COLS), torch.empty(ROWS, COLS)
    launch(leaky_relu, x, out)
    torch.testing.assert_close(out, F.leaky_relu(x, 0.125))


def test_swiglu(launch, normal):
    gate, up = normal(ROWS, 2 * COLS), normal(ROWS, 2 * COLS)
    out = torch.empty(ROWS, 2 * COLS)
    launch(swiglu, gate, up, out)
    torch.testing.assert_close(out, F.silu(gate) * up)
