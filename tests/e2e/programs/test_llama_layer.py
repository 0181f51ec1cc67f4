"""One layer of LLaMA over a whole prompt: norms, rotated heads, causal attention, SwiGLU."""

from __future__ import annotations

import pypto.language as pl
import torch
import torch.nn.functional as F

TOKENS, HIDDEN, HEADS, HEAD, INTER = 32, 128, 2, 64, 256
HALF, BAND, BLOCK = HEAD // 2, 16, 64
SCALE, EPS = HEAD**-0.5, 1e-5


@pl.jit.incore
def rms_norm(
    x: pl.Tensor[[TOKENS, HIDDEN], pl.FP32],
    gamma: pl.Tensor[[1, HIDDEN], pl.FP32],
    out: pl.Out[pl.Tensor[[TOKENS, HIDDEN], pl.BF16]],
    row: pl.Scalar[pl.INDEX],
):
    band = pl.load(x, [row, 0], [BAND, HIDDEN])
    scratch = pl.create_tile([BAND, HIDDEN], dtype=pl.FP32, target_memory=pl.Mem.Vec)
    mean = pl.mul(pl.row_sum(pl.mul(band, band), scratch), 1.0 / HIDDEN)
    scaled = pl.row_expand_mul(band, pl.rsqrt(pl.add(mean, EPS)))
    weighted = pl.col_expand_mul(scaled, pl.load(gamma, [0, 0], [1, HIDDEN]))
    return pl.store(pl.cast(weighted, target_type=pl.BF16), [row, 0], out)


@pl.jit.inline
def normed(x: pl.Tensor, gamma: pl.Tensor, out: pl.Tensor):
    for row in pl.parallel(0, TOKENS, BAND):
        out = rms_norm(x, gamma, out, row)
    return out


@pl.jit.inline
def product(x: pl.Tensor, weight: pl.Tensor, out: pl.Tensor):
    """x @ weight, both in bf16, a block of columns at a time."""
    for col in pl.parallel(0, weight.shape[1], BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="product"):
            out[:, col : col + BLOCK] = pl.matmul(
                x, weight[:, col : col + BLOCK], out_dtype=pl.FP32
            )
    return out


@pl.jit.inline
def rotated(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, out: pl.Tensor):
    for h in pl.parallel(HEADS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rotate"):
            low = pl.load(x, [0, h * HEAD], [TOKENS, HALF])
            high = pl.load(x, [0, h * HEAD + HALF], [TOKENS, HALF])
            c, s = pl.load(cos, [0, 0], [TOKENS, HALF]), pl.load(sin, [0, 0], [TOKENS, HALF])
            first = pl.sub(pl.mul(low, c), pl.mul(high, s))
            second = pl.add(pl.mul(high, c), pl.mul(low, s))
            both = pl.cast(pl.concat(first, second), target_type=pl.BF16)
            out = pl.store(both, [0, h * HEAD], out)
    return out


@pl.jit.inline
def attended(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, mask: pl.Tensor, out: pl.Tensor):
    for h in pl.parallel(HEADS):
        col = h * HEAD
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="attend"):
            scores = pl.matmul(
                q[:, col : col + HEAD], k[:, col : col + HEAD], b_trans=True, out_dtype=pl.FP32
            )
            seen = pl.add(pl.mul(scores, SCALE), mask)
            weights = pl.exp(pl.row_expand_sub(seen, pl.row_max(seen)))
            shares = pl.cast(pl.row_expand_div(weights, pl.row_sum(weights)), target_type=pl.BF16)
            values = pl.cast(v[:, col : col + HEAD], target_type=pl.BF16)
            result = pl.matmul(shares, values, out_dtype=pl.FP32)
            out[:, col : col + HEAD] = pl.cast(result, target_type=pl.BF16)
    return out


@pl.jit.inline
def product_and_residual(x: pl.Tensor, weight: pl.Tensor, residual: pl.Tensor, out: pl.Tensor):
    for col in pl.parallel(0, HIDDEN, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="product_and_residual"):
            block = pl.matmul(x, weight[:, col : col + BLOCK], out_dtype=pl.FP32)
            out[:, col : col + BLOCK] = pl.add(block, residual[:, col : col + BLOCK])
    return out


@pl.jit.inline
def gated(x: pl.Tensor, gate_weight: pl.Tensor, up_weight: pl.Tensor, out: pl.Tensor):
    for col in pl.parallel(0, INTER, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="swiglu"):
            gate = pl.matmul(x, gate_weight[:, col : col + BLOCK], out_dtype=pl.FP32)
            up = pl.matmul(x, up_weight[:, col : col + BLOCK], out_dtype=pl.FP32)
            activated = pl.mul(pl.div(gate, pl.add(pl.exp(pl.neg(gate)), 1.0)), up)
            out[:, col : col + BLOCK] = pl.cast(activated, target_type=pl.BF16)
    return out


@pl.jit
def llama_layer(
    x: pl.Tensor[[TOKENS, HIDDEN], pl.FP32],
    attention_gamma: pl.Tensor[[1, HIDDEN], pl.FP32],
    wq: pl.Tensor[[HIDDEN, HIDDEN], pl.BF16],
    wk: pl.Tensor[[HIDDEN, HIDDEN], pl.BF16],
    wv: pl.Tensor[[HIDDEN, HIDDEN], pl.BF16],
    wo: pl.Tensor[[HIDDEN, HIDDEN], pl.BF16],
    ffn_gamma: pl.Tensor[[1, HIDDEN], pl.FP32],
    w_gate: pl.Tensor[[HIDDEN, INTER], pl.BF16],
    w_up: pl.Tensor[[HIDDEN, INTER], pl.BF16],
    w_down: pl.Tensor[[INTER, HIDDEN], pl.BF16],
    cos: pl.Tensor[[TOKENS, HALF], pl.FP32],
    sin: pl.Tensor[[TOKENS, HALF], pl.FP32],
    mask: pl.Tensor[[TOKENS, TOKENS], pl.FP32],
    out: pl.Out[pl.Tensor[[TOKENS, HIDDEN], pl.FP32]],
):
    h = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.BF16)
    h = normed(x, attention_gamma, h)
    q = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.FP32)
    k = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.FP32)
    v = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.FP32)
    q, k, v = product(h, wq, q), product(h, wk, k), product(h, wv, v)
    q_turned = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.BF16)
    k_turned = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.BF16)
    q_turned, k_turned = rotated(q, cos, sin, q_turned), rotated(k, cos, sin, k_turned)
    heads = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.BF16)
    heads = attended(q_turned, k_turned, v, mask, heads)
    between = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.FP32)
    between = product_and_residual(heads, wo, x, between)
    h_again = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.BF16)
    h_again = normed(between, ffn_gamma, h_again)
    hidden = pl.create_tensor([TOKENS, INTER], dtype=pl.BF16)
    hidden = gated(h_again, w_gate, w_up, hidden)
    out = product_and_residual(hidden, w_down, between, out)
    return out


def expected(x, gamma, wq, wk, wv, wo, ffn_gamma, w_gate, w_up, w_down, cos, sin, mask):
    """The layer in fp32, rounded to bf16 where the kernel rounds."""

    def rounded(tensor):
        return tensor.bfloat16().float()

    def norm(tensor, weight):
        return rounded(tensor * torch.rsqrt((tensor**2).mean(1, keepdim=True) + EPS) * weight)

    def turned(tensor):
        low, high = tensor.reshape(TOKENS, HEADS, 2, HALF).unbind(2)
        c, s = cos[:, None], sin[:, None]
        return rounded(torch.cat((low * c - high * s, high * c + low * s), -1)).transpose(0, 1)

    wq, wk, wv, wo, w_gate, w_up, w_down = (
        w.float() for w in (wq, wk, wv, wo, w_gate, w_up, w_down)
    )
    h = norm(x, gamma)
    q, k = turned(h @ wq), turned(h @ wk)
    v = rounded(h @ wv).reshape(TOKENS, HEADS, HEAD).transpose(0, 1)
    shares = rounded(torch.softmax(q @ k.transpose(1, 2) * SCALE + mask, dim=-1))
    heads = rounded((shares @ v).transpose(0, 1).reshape(TOKENS, HIDDEN))
    between = x + heads @ wo
    h = norm(between, ffn_gamma)
    return between + rounded(F.silu(h @ w_gate) * (h @ w_up)) @ w_down


def test_a_layer_over_a_prompt(launch, normal):
    def weight(*shape):
        return normal(*shape, dtype=torch.bfloat16, scale=shape[0] ** -0.5)

    angles = torch.arange(TOKENS)[:, None] * 10000.0 ** (-torch.arange(HALF) / HALF)
    mask = torch.full((TOKENS, TOKENS), -1e9).triu(1)
    arguments = (
        normal(TOKENS, HIDDEN),
        1 + normal(1, HIDDEN, scale=0.1),
        *(weight(HIDDEN, HIDDEN) for _ in "qkvo"),
        1 + normal(1, HIDDEN, scale=0.1),
        weight(HIDDEN, INTER),
        weight(HIDDEN, INTER),
        weight(INTER, HIDDEN),
        angles.cos(),
        angles.sin(),
        mask,
    )
    out = torch.empty(TOKENS, HIDDEN)
    launch(llama_layer, *arguments, out)
    torch.testing.assert_close(out, expected(*arguments), rtol=3e-2, atol=3e-2)
