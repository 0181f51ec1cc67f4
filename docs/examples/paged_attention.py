"""Decoding with a paged cache of keys and values, for any number of sequences of any length.

The cache is a pool of pages of `PAGE` tokens. A sequence does not lie in one piece: a row of the
block table lists the pages it has, in order, and `lengths` how many tokens of them count. Both are
read while the program runs, so one compiled program serves every batch.
"""

from __future__ import annotations

import argparse

import pypto.language as pl
import torch
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import RunConfig

HEADS, HEAD, PAGE = 16, 64, 64
SCALE = HEAD**-0.5

BATCH = pl.dynamic("BATCH")
ROWS = pl.dynamic("ROWS")
POOL = pl.dynamic("POOL")
TABLE = pl.dynamic("TABLE")


@pl.jit.incore
def score_page(
    query: pl.Tensor[[HEADS, HEAD], pl.BF16],
    keys: pl.Tensor[[PAGE, HEAD], pl.BF16],
    scores: pl.Out[pl.Tensor[[HEADS, PAGE], pl.FP32]],
):
    """query @ keys.T"""
    scores[:] = pl.matmul(query, keys, b_trans=True, out_dtype=pl.FP32)
    return scores


@pl.jit.incore
def weigh_page(
    scores: pl.Tensor[[HEADS, PAGE], pl.FP32],
    count: pl.Scalar[pl.INDEX],
    weights: pl.Out[pl.Tensor[[HEADS, PAGE], pl.BF16]],
    largest: pl.Out[pl.Tensor[[HEADS, 1], pl.FP32]],
    total: pl.Out[pl.Tensor[[HEADS, 1], pl.FP32]],
):
    """Weights of one page, as if its largest score were the largest of all."""
    tile = pl.load(scores, [0, 0], [HEADS, PAGE], valid_shape=[HEADS, count])
    # Tokens beyond the end of the sequence get no weight.
    padded = pl.tile.fillpad(tile, pad_value=pl.PadValue.min)
    scaled = pl.mul(padded, SCALE)
    scratch = pl.create_tile([HEADS, PAGE], dtype=pl.FP32, target_memory=pl.Mem.Vec)
    peak = pl.row_max(scaled, scratch)
    exact = pl.exp(pl.row_expand_sub(scaled, peak))
    rounded = pl.cast(exact, target_type=pl.BF16)
    sums = pl.row_sum(pl.cast(rounded, target_type=pl.FP32), scratch)
    weights = pl.store(rounded, [0, 0], weights)
    largest = pl.store(peak, [0, 0], largest)
    total = pl.store(sums, [0, 0], total)
    return weights, largest, total


@pl.jit.incore
def sum_page(
    weights: pl.Tensor[[HEADS, PAGE], pl.BF16],
    values: pl.Tensor[[PAGE, HEAD], pl.BF16],
    out: pl.Out[pl.Tensor[[HEADS, HEAD], pl.FP32]],
):
    """weights @ values"""
    left = pl.load(weights, [0, 0], [HEADS, PAGE], target_memory=pl.Mem.Mat)
    right = pl.load(values, [0, 0], [PAGE, HEAD], target_memory=pl.Mem.Mat)
    return pl.store(pl.matmul(left, right), [0, 0], out)


@pl.jit.incore
def merge_page(
    page_largest: pl.Tensor[[HEADS, 1], pl.FP32],
    page_total: pl.Tensor[[HEADS, 1], pl.FP32],
    page_sum: pl.Tensor[[HEADS, HEAD], pl.FP32],
    largest: pl.InOut[pl.Tensor[[HEADS, 1], pl.FP32]],
    total: pl.InOut[pl.Tensor[[HEADS, 1], pl.FP32]],
    sums: pl.InOut[pl.Tensor[[HEADS, HEAD], pl.FP32]],
    out: pl.Out[pl.Tensor[[HEADS, HEAD], pl.FP32]],
    is_first: pl.Scalar[pl.BOOL],
    is_last: pl.Scalar[pl.BOOL],
):
    """What all pages so far come to; the last one makes it the result."""
    peak = pl.load(page_largest, [0, 0], [HEADS, 1])
    weight = pl.load(page_total, [0, 0], [HEADS, 1])
    values = pl.load(page_sum, [0, 0], [HEADS, HEAD])
    if is_first:
        largest = pl.store(peak, [0, 0], largest)
        total = pl.store(weight, [0, 0], total)
        sums = pl.store(values, [0, 0], sums)
        if is_last:
            out = pl.store(pl.row_expand_div(values, weight), [0, 0], out)
    else:
        before = pl.load(largest, [0, 0], [HEADS, 1])
        now = pl.maximum(before, peak)
        old, new = pl.exp(pl.sub(before, now)), pl.exp(pl.sub(peak, now))
        weights = pl.add(pl.mul(pl.load(total, [0, 0], [HEADS, 1]), old), pl.mul(weight, new))
        summed = pl.add(
            pl.row_expand_mul(pl.load(sums, [0, 0], [HEADS, HEAD]), old),
            pl.row_expand_mul(values, new),
        )
        largest = pl.store(now, [0, 0], largest)
        total = pl.store(weights, [0, 0], total)
        sums = pl.store(summed, [0, 0], sums)
        if is_last:
            out = pl.store(pl.row_expand_div(summed, weights), [0, 0], out)
    return largest, total, sums, out


@pl.jit
def paged_attention(
    query: pl.Tensor[[ROWS, HEAD], pl.BF16],
    keys: pl.Tensor[[POOL, HEAD], pl.BF16],
    values: pl.Tensor[[POOL, HEAD], pl.BF16],
    block_table: pl.Tensor[[TABLE], pl.INT32],
    lengths: pl.Tensor[[BATCH], pl.INT32],
    out: pl.Out[pl.Tensor[[ROWS, HEAD], pl.FP32]],
):
    """A row of `query` and `out` for each head of each sequence."""
    batch = pl.tensor.dim(lengths, 0)
    width = pl.tensor.dim(block_table, 0) // batch
    for b in pl.parallel(batch):
        length = pl.tensor.read(lengths, [b])
        pages = (length + PAGE - 1) // PAGE
        queries = pl.slice(query, [HEADS, HEAD], [b * HEADS, 0])
        results = pl.slice(out, [HEADS, HEAD], [b * HEADS, 0])
        largest = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
        total = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
        sums = pl.create_tensor([HEADS, HEAD], dtype=pl.FP32)
        for p in pl.range(pages):
            page = pl.tensor.read(block_table, [b * width + p])
            count = pl.min(length - p * PAGE, PAGE)
            scores = pl.create_tensor([HEADS, PAGE], dtype=pl.FP32)
            scores = score_page(queries, pl.slice(keys, [PAGE, HEAD], [page * PAGE, 0]), scores)
            weights = pl.create_tensor([HEADS, PAGE], dtype=pl.BF16)
            page_largest = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
            page_total = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
            weights, page_largest, page_total = weigh_page(
                scores, count, weights, page_largest, page_total
            )
            page_sum = pl.create_tensor([HEADS, HEAD], dtype=pl.FP32)
            page_sum = sum_page(weights, pl.slice(values, [PAGE, HEAD], [page * PAGE, 0]), page_sum)
            largest, total, sums, results = merge_page(
                page_largest, page_total, page_sum, largest, total, sums, results,
                p == 0, p == pages - 1,
            )  # fmt: skip
    return out


def attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
) -> torch.Tensor:
    """What the program is to give, in fp32."""
    results = []
    table = block_table.reshape(len(lengths), -1)
    for b, length in enumerate(lengths.tolist()):
        pages = table[b, : -(-length // PAGE)].tolist()
        tokens = torch.cat([torch.arange(p * PAGE, (p + 1) * PAGE) for p in pages])[:length]
        q = query[b * HEADS : (b + 1) * HEADS].float()
        weights = torch.softmax(q @ keys[tokens].float().T * SCALE, dim=1)
        results.append(weights @ values[tokens].float())
    return torch.cat(results)


def inputs(lengths: list[int], seed: int = 7) -> tuple[torch.Tensor, ...]:
    """Queries, the pool of keys and of values, a table of pages in disorder, and the lengths."""
    generator = torch.Generator().manual_seed(seed)
    width = -(-max(lengths) // PAGE)
    pages = len(lengths) * width
    query = torch.randn(len(lengths) * HEADS, HEAD, generator=generator).bfloat16()
    keys, values = (torch.randn(pages * PAGE, HEAD, generator=generator).bfloat16() for _ in "kv")
    table = torch.randperm(pages, generator=generator).to(torch.int32)
    return query, keys, values, table, torch.tensor(lengths, dtype=torch.int32)


def main() -> None:
    """Run two batches with one program on a simulated chip and compare them with torch."""
    parser = argparse.ArgumentParser(description="Paged attention, compared with torch.")
    parser.add_argument("--arch", choices=BackendType.__members__, default="Ascend910B")
    arch = BackendType[parser.parse_args().arch]
    config = RunConfig(arch=arch, execution_mode=ExecutionMode.SIM)
    for lengths in ([200, 64, 1], [130, 90]):
        arguments = inputs(lengths)
        out = torch.empty(len(lengths) * HEADS, HEAD)
        paged_attention(*arguments, out, config=config)
        expected = attention(*arguments)
        torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-2)
        worst = (out - expected).abs().max().item()
        print(f"sequences of {lengths} tokens on {arch.name}: at most {worst:.1e} from torch")


if __name__ == "__main__":
    main()
