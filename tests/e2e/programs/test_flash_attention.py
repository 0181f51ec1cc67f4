"""Attention over blocks of keys: every step a task, all of it in one kernel, values that escape."""

from __future__ import annotations

import pypto.language as pl
import torch
from examples.flash_attention import (
    HEAD,
    KEYS,
    KV_BLOCK,
    Q_BLOCK,
    QUERIES,
    SCALE,
    attention,
    flash_attention,
    inputs,
)


@pl.jit
def fused_attention(
    q: pl.Tensor[[QUERIES, HEAD], pl.BF16],
    k: pl.Tensor[[KEYS, HEAD], pl.BF16],
    v: pl.Tensor[[KEYS, HEAD], pl.BF16],
    out: pl.Out[pl.Tensor[[QUERIES, HEAD], pl.FP32]],
):
    """The loop over the keys is inside of the kernel, which carries three values through it."""
    for q0 in pl.parallel(0, QUERIES, Q_BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="attend"):
            queries = q[q0 : q0 + Q_BLOCK, :]
            total = pl.full([Q_BLOCK, HEAD], dtype=pl.FP32, value=0.0)
            weight = pl.full([Q_BLOCK, 1], dtype=pl.FP32, value=0.0)
            largest = pl.full([Q_BLOCK, 1], dtype=pl.FP32, value=-1e30)
            for k0 in pl.range(0, KEYS, KV_BLOCK):
                keys, values = k[k0 : k0 + KV_BLOCK, :], v[k0 : k0 + KV_BLOCK, :]
                scores = pl.matmul(queries, keys, b_trans=True, out_dtype=pl.FP32)
                scaled = pl.mul(scores, SCALE)
                now_largest = pl.maximum(largest, pl.row_max(scaled))
                weights = pl.exp(pl.row_expand_sub(scaled, now_largest))
                before = pl.exp(pl.sub(largest, now_largest))
                weight = pl.add(pl.mul(weight, before), pl.row_sum(weights))
                rounded = pl.cast(weights, target_type=pl.BF16)
                part = pl.matmul(rounded, values, out_dtype=pl.FP32)
                total = pl.add(pl.row_expand_mul(total, before), part)
                largest = now_largest
            out[q0 : q0 + Q_BLOCK, :] = pl.row_expand_div(total, weight)
    return out


@pl.jit
def escaping_attention(
    q: pl.Tensor[[QUERIES, HEAD], pl.BF16],
    k: pl.Tensor[[KEYS, HEAD], pl.BF16],
    v: pl.Tensor[[KEYS, HEAD], pl.BF16],
    out: pl.Out[pl.Tensor[[QUERIES, HEAD], pl.FP32]],
):
    """Nothing is created by hand: what a scope computes is there after it, and loops carry it."""
    for q0 in pl.parallel(0, QUERIES, Q_BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="begin"):
            total = pl.full([Q_BLOCK, HEAD], dtype=pl.FP32, value=0.0)
            weight = pl.full([Q_BLOCK, 1], dtype=pl.FP32, value=0.0)
            largest = pl.full([Q_BLOCK, 1], dtype=pl.FP32, value=-1e30)
        for k0 in pl.range(0, KEYS, KV_BLOCK):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="weights"):
                keys = k[k0 : k0 + KV_BLOCK, :]
                scores = pl.matmul(q[q0 : q0 + Q_BLOCK, :], keys, b_trans=True, out_dtype=pl.FP32)
                scaled = pl.mul(scores, SCALE)
                now_largest = pl.maximum(largest, pl.row_max(scaled))
                before = pl.exp(pl.sub(largest, now_largest))
                weights = pl.exp(pl.row_expand_sub(scaled, now_largest))
                weight = pl.add(pl.mul(weight, before), pl.row_sum(weights))
                rounded = pl.cast(weights, target_type=pl.BF16)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="values"):
                part = pl.matmul(rounded, v[k0 : k0 + KV_BLOCK, :], out_dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="merge"):
                total = pl.add(pl.row_expand_mul(total, before), part)
            largest = now_largest
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="finish"):
            out[q0 : q0 + Q_BLOCK, :] = pl.row_expand_div(total, weight)
    return out


def test_attention_in_tasks(launch):
    arguments, out = inputs(), torch.empty(QUERIES, HEAD)
    launch(flash_attention, *arguments, out)
    torch.testing.assert_close(out, attention(*arguments), rtol=1e-2, atol=5e-3)


def test_attention_in_one_kernel(launch):
    arguments, out = inputs(), torch.empty(QUERIES, HEAD)
    launch(fused_attention, *arguments, out)
    torch.testing.assert_close(out, attention(*arguments), rtol=1e-2, atol=5e-3)


def test_attention_of_values_that_escape(launch):
    arguments, out = inputs(), torch.empty(QUERIES, HEAD)
    launch(escaping_attention, *arguments, out)
    torch.testing.assert_close(out, attention(*arguments), rtol=1e-2, atol=5e-3)
