"""Attention over a paged cache: pages by sequence, for all sequences at once, one block a sequence.

The program for any number of sequences is an example of the documentation; here are the others.
"""

from __future__ import annotations

import pypto.language as pl
import torch
from examples import paged_attention as example
from examples.paged_attention import (
    HEAD,
    HEADS,
    PAGE,
    SCALE,
    attention,
    inputs,
    merge_page,
    score_page,
    sum_page,
    weigh_page,
)

BATCH, WIDTH = 4, 3
LENGTHS = [3 * PAGE, 100, 1, PAGE]
ROWS, POOL, TABLE = BATCH * HEADS, BATCH * WIDTH * PAGE, BATCH * WIDTH


@pl.jit
def static_paged_attention(
    query: pl.Tensor[[ROWS, HEAD], pl.BF16],
    keys: pl.Tensor[[POOL, HEAD], pl.BF16],
    values: pl.Tensor[[POOL, HEAD], pl.BF16],
    block_table: pl.Tensor[[TABLE], pl.INT32],
    lengths: pl.Tensor[[BATCH], pl.INT32],
    out: pl.Out[pl.Tensor[[ROWS, HEAD], pl.FP32]],
):
    """Every extent is known; how long a sequence is, is not."""
    for b in pl.range(BATCH):
        length = pl.tensor.read(lengths, [b])
        pages = (length + PAGE - 1) // PAGE
        queries: pl.Tensor[[HEADS, HEAD], pl.BF16] = pl.slice(query, [HEADS, HEAD], [b * HEADS, 0])
        results: pl.Tensor[[HEADS, HEAD], pl.FP32] = pl.slice(out, [HEADS, HEAD], [b * HEADS, 0])
        largest = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
        total = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
        sums = pl.create_tensor([HEADS, HEAD], dtype=pl.FP32)
        for p, (largest_i, total_i, sums_i, results_i) in pl.range(
            pages, init_values=(largest, total, sums, results)
        ):
            page = pl.tensor.read(block_table, [b * WIDTH + p])
            count = pl.min(length - p * PAGE, PAGE)
            page_keys = pl.slice(keys, [PAGE, HEAD], [page * PAGE, 0])
            page_values = pl.slice(values, [PAGE, HEAD], [page * PAGE, 0])
            scores = pl.create_tensor([HEADS, PAGE], dtype=pl.FP32)
            scores = score_page(queries, page_keys, scores)
            weights = pl.create_tensor([HEADS, PAGE], dtype=pl.BF16)
            peak = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
            weight = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
            weights, peak, weight = weigh_page(scores, count, weights, peak, weight)
            page_sum = pl.create_tensor([HEADS, HEAD], dtype=pl.FP32)
            page_sum = sum_page(weights, page_values, page_sum)
            if p == 0:
                is_first = pl.yield_(True)
            else:
                is_first = pl.yield_(False)
            if p == pages - 1:
                is_last = pl.yield_(True)
            else:
                is_last = pl.yield_(False)
            merged = merge_page(
                peak, weight, page_sum, largest_i, total_i, sums_i, results_i, is_first, is_last
            )
            now_largest, now_total, now_sums, now_results = merged
            largest, total, sums, results = pl.yield_(now_largest, now_total, now_sums, now_results)
    return out


@pl.jit.incore
def attend_batch(
    query: pl.Tensor[[ROWS, HEAD], pl.BF16],
    keys: pl.Tensor[[POOL, HEAD], pl.BF16],
    block_table: pl.Tensor[[TABLE], pl.INT32],
    page: pl.Scalar[pl.INDEX],
    scores: pl.Out[pl.Tensor[[ROWS, PAGE], pl.FP32]],
):
    """The scores of one page of every sequence, in one task."""
    for b in pl.range(BATCH):
        place = pl.read(block_table, [b * WIDTH + page])
        left = pl.load(query, [b * HEADS, 0], [HEADS, HEAD], target_memory=pl.Mem.Mat)
        right = pl.load(keys, [place * PAGE, 0], [PAGE, HEAD], target_memory=pl.Mem.Mat)
        product = pl.matmul(left, pl.tile.transpose_view(right))
        scores = pl.store(product, [b * HEADS, 0], scores)
    return scores


@pl.jit.incore
def weigh_batch(
    scores: pl.Tensor[[ROWS, PAGE], pl.FP32],
    lengths: pl.Tensor[[BATCH], pl.INT32],
    page: pl.Scalar[pl.INDEX],
    weights: pl.Out[pl.Tensor[[ROWS, PAGE], pl.BF16]],
    largest: pl.InOut[pl.Tensor[[ROWS, 1], pl.FP32]],
    total: pl.InOut[pl.Tensor[[ROWS, 1], pl.FP32]],
    before: pl.Out[pl.Tensor[[ROWS, 1], pl.FP32]],
):
    """Weights against the largest score so far, and what that does to those of earlier pages."""
    for b in pl.range(BATCH):
        count = pl.max(pl.min(pl.read(lengths, [b]) - page * PAGE, PAGE), 0)
        row = b * HEADS
        tile = pl.load(scores, [row, 0], [HEADS, PAGE], valid_shape=[HEADS, count])
        scaled = pl.mul(pl.tile.fillpad(tile, pad_value=pl.PadValue.min), SCALE)
        scratch = pl.create_tile([HEADS, PAGE], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        known = pl.load(largest, [row, 0], [HEADS, 1])
        peak = pl.maximum(known, pl.row_max(scaled, scratch))
        shrink = pl.exp(pl.sub(known, peak))
        rounded = pl.cast(pl.exp(pl.row_expand_sub(scaled, peak)), target_type=pl.BF16)
        sums = pl.row_sum(pl.cast(rounded, target_type=pl.FP32), scratch)
        added = pl.add(pl.mul(pl.load(total, [row, 0], [HEADS, 1]), shrink), sums)
        weights = pl.store(rounded, [row, 0], weights)
        largest = pl.store(peak, [row, 0], largest)
        total = pl.store(added, [row, 0], total)
        before = pl.store(shrink, [row, 0], before)
    return weights, largest, total, before


@pl.jit.incore
def sum_batch(
    weights: pl.Tensor[[ROWS, PAGE], pl.BF16],
    values: pl.Tensor[[POOL, HEAD], pl.BF16],
    block_table: pl.Tensor[[TABLE], pl.INT32],
    page: pl.Scalar[pl.INDEX],
    page_sums: pl.Out[pl.Tensor[[ROWS, HEAD], pl.FP32]],
):
    for b in pl.range(BATCH):
        place = pl.read(block_table, [b * WIDTH + page])
        left = pl.load(weights, [b * HEADS, 0], [HEADS, PAGE], target_memory=pl.Mem.Mat)
        right = pl.load(values, [place * PAGE, 0], [PAGE, HEAD], target_memory=pl.Mem.Mat)
        page_sums = pl.store(pl.matmul(left, right), [b * HEADS, 0], page_sums)
    return page_sums


@pl.jit
def batched_paged_attention(
    query: pl.Tensor[[ROWS, HEAD], pl.BF16],
    keys: pl.Tensor[[POOL, HEAD], pl.BF16],
    values: pl.Tensor[[POOL, HEAD], pl.BF16],
    block_table: pl.Tensor[[TABLE], pl.INT32],
    lengths: pl.Tensor[[BATCH], pl.INT32],
    out: pl.Out[pl.Tensor[[ROWS, HEAD], pl.FP32]],
):
    """Each task does one page of every sequence, so there are few of them."""
    largest = pl.create_tensor([ROWS, 1], dtype=pl.FP32)
    total = pl.create_tensor([ROWS, 1], dtype=pl.FP32)
    sums = pl.create_tensor([ROWS, HEAD], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="begin"):
        largest[:] = pl.full([ROWS, 1], dtype=pl.FP32, value=-1e30)
        total[:] = pl.full([ROWS, 1], dtype=pl.FP32, value=0.0)
        sums[:] = pl.full([ROWS, HEAD], dtype=pl.FP32, value=0.0)
    for page in pl.range(WIDTH):
        scores = pl.create_tensor([ROWS, PAGE], dtype=pl.FP32)
        scores = attend_batch(query, keys, block_table, page, scores)
        weights = pl.create_tensor([ROWS, PAGE], dtype=pl.BF16)
        before = pl.create_tensor([ROWS, 1], dtype=pl.FP32)
        weights, largest, total, before = weigh_batch(
            scores, lengths, page, weights, largest, total, before
        )
        page_sums = pl.create_tensor([ROWS, HEAD], dtype=pl.FP32)
        page_sums = sum_batch(weights, values, block_table, page, page_sums)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="merge"):
            sums[:] = pl.add(pl.row_expand_mul(sums, before), page_sums)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="finish"):
        out[:] = pl.row_expand_div(sums, total)
    return out


@pl.jit.incore
def score_sequence(
    query: pl.Tensor[[ROWS, HEAD], pl.BF16],
    keys: pl.Tensor[[POOL, HEAD], pl.BF16],
    block_table: pl.Tensor[[TABLE], pl.INT32],
    lengths: pl.Tensor[[BATCH], pl.INT32],
    scores: pl.Out[pl.Tensor[[ROWS, WIDTH * PAGE], pl.FP32]],
):
    """All pages of the sequence that the block is for."""
    b = pl.tile.get_block_idx()
    pages = (pl.read(lengths, [b]) + PAGE - 1) // PAGE
    row = b * HEADS
    for p in pl.range(pages):
        first = pl.read(block_table, [b * WIDTH + p]) * PAGE
        scores[row : row + HEADS, p * PAGE : p * PAGE + PAGE] = pl.matmul(
            query[row : row + HEADS, :],
            keys[first : first + PAGE, :],
            b_trans=True,
            out_dtype=pl.FP32,
        )
    return scores


@pl.jit
def spmd_paged_attention(
    query: pl.Tensor[[ROWS, HEAD], pl.BF16],
    keys: pl.Tensor[[POOL, HEAD], pl.BF16],
    values: pl.Tensor[[POOL, HEAD], pl.BF16],
    block_table: pl.Tensor[[TABLE], pl.INT32],
    lengths: pl.Tensor[[BATCH], pl.INT32],
    out: pl.Out[pl.Tensor[[ROWS, HEAD], pl.FP32]],
):
    """One kernel on many cores, a block for each sequence, in each of the three forms."""
    scores = pl.create_tensor([ROWS, WIDTH * PAGE], dtype=pl.FP32)
    weights = pl.create_tensor([ROWS, WIDTH * PAGE], dtype=pl.BF16)
    with pl.spmd(BATCH, name_hint="scores"):
        scores = score_sequence(query, keys, block_table, lengths, scores)
    with pl.spmd(BATCH, name_hint="weights"):
        b = pl.tile.get_block_idx()
        length = pl.read(lengths, [b])
        tile = pl.load(scores, [b * HEADS, 0], [HEADS, WIDTH * PAGE], valid_shape=[HEADS, length])
        scaled = pl.mul(pl.tile.fillpad(tile, pad_value=pl.PadValue.min), SCALE)
        scratch = pl.create_tile([HEADS, WIDTH * PAGE], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        exact = pl.exp(pl.row_expand_sub(scaled, pl.row_max(scaled, scratch)))
        shares = pl.row_expand_div(exact, pl.row_sum(exact, scratch))
        rounded = pl.cast(shares, target_type=pl.BF16)
        weights = pl.store(rounded, [b * HEADS, 0], weights)
    for b in pl.spmd(BATCH, name_hint="values"):
        pages = (pl.read(lengths, [b]) + PAGE - 1) // PAGE
        first = pl.read(block_table, [b * WIDTH])
        left = pl.load(weights, [b * HEADS, 0], [HEADS, PAGE], target_memory=pl.Mem.Mat)
        right = pl.load(values, [first * PAGE, 0], [PAGE, HEAD], target_memory=pl.Mem.Mat)
        acc = pl.matmul(left, right)
        for p in pl.range(1, pages):
            place = pl.read(block_table, [b * WIDTH + p])
            left = pl.load(weights, [b * HEADS, p * PAGE], [HEADS, PAGE], target_memory=pl.Mem.Mat)
            right = pl.load(values, [place * PAGE, 0], [PAGE, HEAD], target_memory=pl.Mem.Mat)
            acc = pl.matmul_acc(acc, left, right)
        out = pl.store(acc, [b * HEADS, 0], out)
    return out


def check(launch, kernel, lengths):
    arguments = inputs(lengths)
    out = torch.empty(len(lengths) * HEADS, HEAD)
    launch(kernel, *arguments, out)
    torch.testing.assert_close(out, attention(*arguments), rtol=1e-2, atol=1e-2)


def test_with_extents_that_are_known(launch):
    check(launch, static_paged_attention, LENGTHS)


def test_of_any_batch(launch):
    check(launch, example.paged_attention, [200, 64, 1])


def test_all_sequences_in_each_task(launch):
    check(launch, batched_paged_attention, LENGTHS)


def test_a_block_for_each_sequence(launch):
    check(launch, spmd_paged_attention, LENGTHS)
