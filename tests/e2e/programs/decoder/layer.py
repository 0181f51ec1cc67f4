"""One layer: what the parts are put together to."""

from __future__ import annotations

import pypto.language as pl

from decoder.attention import attend
from decoder.cache import append
from decoder.ffn import feed_forward
from decoder.norm import rms_norm
from decoder.projection import project, project_and_add
from decoder.rope import rotate
from decoder.sizes import BATCH, HEAD, HEADS, HIDDEN, INTER, KV_HIDDEN, MAX_TOKENS


@pl.jit.inline
def layer(
    x: pl.Tensor,
    attention_gamma: pl.Tensor,
    q_weight: pl.Tensor,
    k_weight: pl.Tensor,
    v_weight: pl.Tensor,
    o_weight: pl.Tensor,
    ffn_gamma: pl.Tensor,
    gate_weight: pl.Tensor,
    up_weight: pl.Tensor,
    down_weight: pl.Tensor,
    cos: pl.Tensor,
    sin: pl.Tensor,
    positions: pl.Tensor,
    k_cache: pl.Tensor,
    v_cache: pl.Tensor,
    out: pl.Tensor,
):
    """Attention and feed-forward, each after a norm and added to what came in."""
    normed = pl.create_tensor([BATCH, HIDDEN], dtype=pl.BF16)
    normed = rms_norm(x, attention_gamma, normed)
    q = pl.create_tensor([BATCH, HIDDEN], dtype=pl.FP32)
    k = pl.create_tensor([BATCH, KV_HIDDEN], dtype=pl.FP32)
    v = pl.create_tensor([BATCH, KV_HIDDEN], dtype=pl.FP32)
    q = project(normed, q_weight, q)
    k = project(normed, k_weight, k)
    v = project(normed, v_weight, v)
    turned_q = pl.create_tensor([BATCH, HIDDEN], dtype=pl.FP32)
    turned_k = pl.create_tensor([BATCH, KV_HIDDEN], dtype=pl.FP32)
    turned_q = rotate(q, cos, sin, turned_q)
    turned_k = rotate(k, cos, sin, turned_k)
    k_cache = append(turned_k, positions, k_cache)
    v_cache = append(v, positions, v_cache)
    attended = pl.create_tensor([BATCH * HEADS, HEAD], dtype=pl.BF16)
    attended = attend(
        pl.reshape(turned_q, [BATCH * HEADS, HEAD]), k_cache, v_cache, positions, attended
    )
    between = pl.create_tensor([BATCH, HIDDEN], dtype=pl.FP32)
    between = project_and_add(pl.reshape(attended, [BATCH, HIDDEN]), o_weight, x, between)
    normed_again = pl.create_tensor([BATCH, HIDDEN], dtype=pl.BF16)
    normed_again = rms_norm(between, ffn_gamma, normed_again)
    return feed_forward(normed_again, gate_weight, up_weight, down_weight, between, out)


@pl.jit
def decode_layer(
    x: pl.Tensor[[BATCH, HIDDEN], pl.FP32],
    attention_gamma: pl.Tensor[[1, HIDDEN], pl.FP32],
    q_weight: pl.Tensor[[HIDDEN, HIDDEN], pl.BF16],
    k_weight: pl.Tensor[[HIDDEN, KV_HIDDEN], pl.BF16],
    v_weight: pl.Tensor[[HIDDEN, KV_HIDDEN], pl.BF16],
    o_weight: pl.Tensor[[HIDDEN, HIDDEN], pl.BF16],
    ffn_gamma: pl.Tensor[[1, HIDDEN], pl.FP32],
    gate_weight: pl.Tensor[[HIDDEN, INTER], pl.BF16],
    up_weight: pl.Tensor[[HIDDEN, INTER], pl.BF16],
    down_weight: pl.Tensor[[INTER, HIDDEN], pl.BF16],
    cos: pl.Tensor[[BATCH, HEAD // 2], pl.FP32],
    sin: pl.Tensor[[BATCH, HEAD // 2], pl.FP32],
    positions: pl.Tensor[[BATCH], pl.INT32],
    k_cache: pl.Tensor[[BATCH * MAX_TOKENS, KV_HIDDEN], pl.BF16],
    v_cache: pl.Tensor[[BATCH * MAX_TOKENS, KV_HIDDEN], pl.BF16],
    out: pl.Out[pl.Tensor[[BATCH, HIDDEN], pl.FP32]],
):
    """The caches are given as inputs and written all the same."""
    out = layer(
        x, attention_gamma, q_weight, k_weight, v_weight, o_weight, ffn_gamma, gate_weight,
        up_weight, down_weight, cos, sin, positions, k_cache, v_cache, out,
    )  # fmt: skip
    return out
