"""Feed-forward networks: cube and vector work in tasks of their own, and in one kernel."""

from __future__ import annotations

import pypto.language as pl
import torch
import torch.nn.functional as F

TOKENS, MODEL, HIDDEN = 32, 128, 256
BLOCK = 64


@pl.jit
def ffn_silu(
    x: pl.Tensor[[TOKENS, MODEL], pl.BF16],
    gate_weight: pl.Tensor[[MODEL, HIDDEN], pl.BF16],
    up_weight: pl.Tensor[[MODEL, HIDDEN], pl.BF16],
    down_weight: pl.Tensor[[HIDDEN, MODEL], pl.BF16],
    out: pl.Out[pl.Tensor[[TOKENS, MODEL], pl.FP32]],
):
    """Blocks of the hidden columns are independent; the last product adds them up."""
    gate = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.FP32)
    up = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.FP32)
    hidden = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.BF16)
    for col in pl.parallel(0, HIDDEN, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate_proj"):
            left = pl.load(x, [0, 0], [TOKENS, MODEL], target_memory=pl.Mem.Mat)
            right = pl.load(gate_weight, [0, col], [MODEL, BLOCK], target_memory=pl.Mem.Mat)
            gate = pl.store(pl.matmul(left, right), [0, col], gate)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="up_proj"):
            left = pl.load(x, [0, 0], [TOKENS, MODEL], target_memory=pl.Mem.Mat)
            right = pl.load(up_weight, [0, col], [MODEL, BLOCK], target_memory=pl.Mem.Mat)
            up = pl.store(pl.matmul(left, right), [0, col], up)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="silu_mul"):
            g = pl.load(gate, [0, col], [TOKENS, BLOCK])
            u = pl.load(up, [0, col], [TOKENS, BLOCK])
            activated = pl.mul(pl.mul(g, pl.recip(pl.add(pl.exp(pl.neg(g)), 1.0))), u)
            hidden = pl.store(pl.cast(activated, target_type=pl.BF16), [0, col], hidden)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="down_proj"):
        left = pl.load(hidden, [0, 0], [TOKENS, BLOCK], target_memory=pl.Mem.Mat)
        right = pl.load(down_weight, [0, 0], [BLOCK, MODEL], target_memory=pl.Mem.Mat)
        acc = pl.matmul(left, right)
        for k in pl.range(BLOCK, HIDDEN, BLOCK):
            left = pl.load(hidden, [0, k], [TOKENS, BLOCK], target_memory=pl.Mem.Mat)
            right = pl.load(down_weight, [k, 0], [BLOCK, MODEL], target_memory=pl.Mem.Mat)
            acc = pl.matmul_acc(acc, left, right)
        out = pl.store(acc, [0, 0], out)
    return out


@pl.jit
def ffn_tensors(
    x: pl.Tensor[[TOKENS, MODEL], pl.BF16],
    up_weight: pl.Tensor[[MODEL, HIDDEN], pl.BF16],
    down_weight: pl.Tensor[[HIDDEN, MODEL], pl.BF16],
    out: pl.Out[pl.Tensor[[TOKENS, MODEL], pl.BF16]],
):
    """On tensors alone, cube and vector work mixed in one scope; what a core holds is tiled."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="ffn_relu"):
        hidden = pl.cast(pl.relu(pl.matmul(x, up_weight, out_dtype=pl.FP32)), target_type=pl.BF16)
        out[:] = pl.matmul(hidden, down_weight, out_dtype=pl.BF16)
    return out


@pl.jit
def mixed(
    a: pl.Tensor[[TOKENS, MODEL], pl.BF16],
    b: pl.Tensor[[MODEL, BLOCK], pl.BF16],
    bias: pl.Tensor[[1, BLOCK], pl.FP32],
    out: pl.Out[pl.Tensor[[TOKENS, BLOCK], pl.FP32]],
):
    """A product that goes from the matrix core to both vector cores without leaving the chip."""
    with pl.at(
        level=pl.Level.CORE_GROUP,
        optimizations=[pl.split(pl.SplitMode.UP_DOWN)],
        name_hint="mixed_product",
    ):
        left = pl.load(a, [0, 0], [TOKENS, MODEL], target_memory=pl.Mem.Mat)
        right = pl.load(b, [0, 0], [MODEL, BLOCK], target_memory=pl.Mem.Mat)
        product = pl.move(pl.matmul(left, right), target_memory=pl.Mem.Vec)
        biased = pl.col_expand_add(product, pl.load(bias, [0, 0], [1, BLOCK]))
        out = pl.store(pl.exp(pl.mul(biased, 0.125)), [0, 0], out)
    return out


def test_ffn_of_blocks(launch, normal):
    x = normal(TOKENS, MODEL, dtype=torch.bfloat16)
    gate, up = (normal(MODEL, HIDDEN, dtype=torch.bfloat16, scale=MODEL**-0.5) for _ in "gu")
    down = normal(HIDDEN, MODEL, dtype=torch.bfloat16, scale=HIDDEN**-0.5)
    out = torch.empty(TOKENS, MODEL)
    launch(ffn_silu, x, gate, up, down, out)
    hidden = F.silu(x.float() @ gate.float()) * (x.float() @ up.float())
    expected = hidden.bfloat16().float() @ down.float()
    torch.testing.assert_close(out, expected, rtol=1e-2, atol=1e-2)


def test_ffn_of_tensors(launch, normal):
    x = normal(TOKENS, MODEL, dtype=torch.bfloat16)
    up = normal(MODEL, HIDDEN, dtype=torch.bfloat16, scale=MODEL**-0.5)
    down = normal(HIDDEN, MODEL, dtype=torch.bfloat16, scale=HIDDEN**-0.5)
    out = torch.empty(TOKENS, MODEL, dtype=torch.bfloat16)
    launch(ffn_tensors, x, up, down, out)
    hidden = torch.relu(x.float() @ up.float()).bfloat16()
    expected = (hidden.float() @ down.float()).bfloat16()
    torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-2)


def test_a_kernel_of_both_kinds_of_core(launch, normal):
    a = normal(TOKENS, MODEL, dtype=torch.bfloat16)
    b = normal(MODEL, BLOCK, dtype=torch.bfloat16, scale=MODEL**-0.5)
    bias, out = normal(1, BLOCK), torch.empty(TOKENS, BLOCK)
    launch(mixed, a, b, bias, out)
    expected = torch.exp((a.float() @ b.float() + bias) * 0.125)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)
