"""The feed-forward part: SwiGLU between two products."""

from __future__ import annotations

import pypto.language as pl

from decoder.projection import project_and_add
from decoder.sizes import BATCH, BLOCK, INTER


@pl.jit.inline
def feed_forward(
    x: pl.Tensor,
    gate_weight: pl.Tensor,
    up_weight: pl.Tensor,
    down_weight: pl.Tensor,
    residual: pl.Tensor,
    out: pl.Tensor,
):
    """residual + (silu(x @ gate) * (x @ up)) @ down"""
    hidden = pl.create_tensor([BATCH, INTER], dtype=pl.BF16)
    for col in pl.parallel(0, INTER, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate_and_up"):
            gate = pl.matmul(x, gate_weight[:, col : col + BLOCK], out_dtype=pl.FP32)
            up = pl.matmul(x, up_weight[:, col : col + BLOCK], out_dtype=pl.FP32)
            sigmoid = pl.recip(pl.add(pl.exp(pl.neg(gate)), 1.0))
            activated = pl.mul(pl.mul(gate, sigmoid), up)
            hidden[:, col : col + BLOCK] = pl.cast(activated, target_type=pl.BF16)
    return project_and_add(hidden, down_weight, residual, out)
