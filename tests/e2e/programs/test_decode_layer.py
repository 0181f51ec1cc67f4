"""A decode layer out of inline functions of several modules, on caches of different lengths."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from decoder.layer import decode_layer
from decoder.sizes import (
    BATCH,
    EPS,
    GROUP,
    HEAD,
    HEADS,
    HIDDEN,
    INTER,
    KV_HEADS,
    KV_HIDDEN,
    MAX_TOKENS,
)


def angles(positions):
    rates = 10000.0 ** (-torch.arange(HEAD // 2) / (HEAD // 2))
    turned = positions.float()[:, None] * rates[None, :]
    return turned.cos(), turned.sin()


def rotated(x, cos, sin):
    low, high = x.reshape(BATCH, -1, 2, HEAD // 2).unbind(2)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.stack((low * cos - high * sin, high * cos + low * sin), 2).reshape(BATCH, -1)


def normed(x, gamma):
    return (x * torch.rsqrt((x * x).mean(1, keepdim=True) + EPS) * gamma).bfloat16().float()


def expected(x, weights, positions, k_cache, v_cache):
    """The layer in fp32, rounded to bf16 where the kernel rounds; writes the caches."""
    gamma, q_w, k_w, v_w, o_w, ffn_gamma, gate_w, up_w, down_w = (w.float() for w in weights)
    cos, sin = angles(positions)
    h = normed(x, gamma)
    q, k = rotated(h @ q_w, cos, sin), rotated(h @ k_w, cos, sin)
    rows = torch.arange(BATCH) * MAX_TOKENS + positions
    k_cache[rows] = k.bfloat16()
    v_cache[rows] = (h @ v_w).bfloat16()
    heads = []
    for b in range(BATCH):
        tokens = slice(b * MAX_TOKENS, b * MAX_TOKENS + int(positions[b]) + 1)
        for head in range(HEADS):
            kv = slice(head // GROUP * HEAD, head // GROUP * HEAD + HEAD)
            one = q[b, head * HEAD : (head + 1) * HEAD].bfloat16().float()
            shares = torch.softmax(k_cache[tokens, kv].float() @ one * HEAD**-0.5, dim=0)
            heads.append(shares.bfloat16().float() @ v_cache[tokens, kv].float())
    attended = torch.stack(heads).bfloat16().float().reshape(BATCH, HIDDEN)
    between = x + attended @ o_w
    h = normed(between, ffn_gamma)
    hidden = (F.silu(h @ gate_w) * (h @ up_w)).bfloat16().float()
    return between + hidden @ down_w


def layer_weights(normal):
    def weight(*shape):
        return normal(*shape, dtype=torch.bfloat16, scale=shape[0] ** -0.5)

    return (
        1 + normal(1, HIDDEN, scale=0.1),
        weight(HIDDEN, HIDDEN),
        weight(HIDDEN, KV_HIDDEN),
        weight(HIDDEN, KV_HIDDEN),
        weight(HIDDEN, HIDDEN),
        1 + normal(1, HIDDEN, scale=0.1),
        weight(HIDDEN, INTER),
        weight(HIDDEN, INTER),
        weight(INTER, HIDDEN),
    )


def test_a_decode_layer(launch, normal):
    assert KV_HEADS * GROUP == HEADS
    x, weights = normal(BATCH, HIDDEN), layer_weights(normal)
    positions = (torch.arange(BATCH) * 7 % MAX_TOKENS).to(torch.int32)
    caches = [normal(BATCH * MAX_TOKENS, KV_HIDDEN, dtype=torch.bfloat16) for _ in "kv"]
    ours = [cache.clone() for cache in caches]
    out = torch.empty(BATCH, HIDDEN)
    launch(decode_layer, x, *weights, *angles(positions), positions, *ours, out)
    wanted = expected(x, weights, positions, *caches)
    torch.testing.assert_close(out, wanted, rtol=3e-2, atol=3e-2)
    for cache, written in zip(caches, ours, strict=True):
        torch.testing.assert_close(written, cache, rtol=2e-2, atol=2e-2)
