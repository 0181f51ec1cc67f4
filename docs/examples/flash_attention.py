"""Attention without the matrix of scores: keys and values pass by in blocks.

For each block of queries three things are kept: the largest score so far, the sum of the weights
and the weighted values, both as if that largest score were the final one. When a block brings a
larger score, what was summed so far is scaled down. Every step is a task of the core that is good
at it: products on a matrix core, the rest on a vector core.
"""

from __future__ import annotations

import argparse

import pypto.language as pl
import torch
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import RunConfig

QUERIES, KEYS, HEAD = 64, 256, 64
Q_BLOCK, KV_BLOCK = 32, 64
SCALE = HEAD**-0.5


@pl.jit
def flash_attention(
    q: pl.Tensor[[QUERIES, HEAD], pl.BF16],
    k: pl.Tensor[[KEYS, HEAD], pl.BF16],
    v: pl.Tensor[[KEYS, HEAD], pl.BF16],
    out: pl.Out[pl.Tensor[[QUERIES, HEAD], pl.FP32]],
):
    """softmax(q @ k.T / sqrt(HEAD)) @ v."""
    for q0 in pl.parallel(0, QUERIES, Q_BLOCK):
        total = pl.create_tensor([Q_BLOCK, HEAD], dtype=pl.FP32)
        weight = pl.create_tensor([Q_BLOCK, 1], dtype=pl.FP32)
        largest = pl.create_tensor([Q_BLOCK, 1], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="begin"):
            total[:] = pl.full([Q_BLOCK, HEAD], dtype=pl.FP32, value=0.0)
            weight[:] = pl.full([Q_BLOCK, 1], dtype=pl.FP32, value=0.0)
            largest[:] = pl.full([Q_BLOCK, 1], dtype=pl.FP32, value=-1e30)
        for k0 in pl.range(0, KEYS, KV_BLOCK):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="scores"):
                keys = k[k0 : k0 + KV_BLOCK, :]
                scores = pl.matmul(q[q0 : q0 + Q_BLOCK, :], keys, b_trans=True, out_dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="weights"):
                scaled = pl.mul(scores, SCALE)
                block_largest = pl.row_max(scaled)
                weights = pl.exp(pl.row_expand_sub(scaled, block_largest))
                block_weight = pl.row_sum(weights)
                weights_bf16 = pl.cast(weights, target_type=pl.BF16)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="values"):
                values = v[k0 : k0 + KV_BLOCK, :]
                block_total = pl.matmul(weights_bf16, values, out_dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="merge"):
                now_largest = pl.maximum(largest, block_largest)
                before = pl.exp(pl.sub(largest, now_largest))
                here = pl.exp(pl.sub(block_largest, now_largest))
                weight[:] = pl.add(pl.mul(weight, before), pl.mul(block_weight, here))
                total[:] = pl.add(
                    pl.row_expand_mul(total, before), pl.row_expand_mul(block_total, here)
                )
                largest[:] = now_largest
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="finish"):
            out[q0 : q0 + Q_BLOCK, :] = pl.row_expand_div(total, weight)
    return out


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """What the kernel is to give, in fp32."""
    scores = q.float() @ k.float().T * SCALE
    return torch.softmax(scores, dim=1) @ v.float()


def inputs(seed: int = 7) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries, keys and values."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((QUERIES, HEAD), (KEYS, HEAD), (KEYS, HEAD))
    q, k, v = (torch.randn(*shape, generator=generator).bfloat16() for shape in shapes)
    return q, k, v


def main() -> None:
    """Run the kernel on a simulated chip and compare it with torch."""
    parser = argparse.ArgumentParser(description="Flash attention, compared with torch.")
    parser.add_argument("--arch", choices=BackendType.__members__, default="Ascend910B")
    arch = BackendType[parser.parse_args().arch]
    q, k, v = inputs()
    out = torch.empty(QUERIES, HEAD)
    config = RunConfig(arch=arch, execution_mode=ExecutionMode.SIM)
    flash_attention(q, k, v, out, config=config)
    expected = attention(q, k, v)
    torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-2)
    worst = (out - expected).abs().max().item()
    print(f"{QUERIES} queries over {KEYS} keys on {arch.name}: at most {worst:.1e} from torch")


if __name__ == "__main__":
    main()
