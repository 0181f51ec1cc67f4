"""Attention over a paged cache: a block for each sequence, pages by a table, online softmax."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from pypto.backend import RuntimeKind
from pypto.ir.dtypes import FP32, INT32

SEQUENCES, HEADS, DEPTH, PAGE, PAGES, MOST = 6, 16, 64, 16, 40, 6

KERNEL = """
def entry(query: pl.Tensor, keys: pl.Tensor, values: pl.Tensor, table: pl.Tensor,
          lengths: pl.Tensor, out: pl.Out[pl.Tensor]):
    weights = pl.create_tensor([96, 16], pl.FP32)
    for i in pl.spmd(6):
        q = pl.move(pl.load(query, [i * 16, 0], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
        tmp = pl.create_tile([16, 16])
        best = pl.tile.full([16, 1], pl.FP32, -1e30)
        total = pl.tile.full([16, 1], pl.FP32, 0)
        result = pl.tile.full([16, 64], pl.FP32, 0)
        for b in pl.range(pl.read(lengths, [i])):
            page = pl.read(table, [i, b])
            k = pl.load(keys, [page * 64, 0], [64, 16], target_memory=pl.Mem.Mat)
            scores = pl.move(pl.matmul(q, pl.move(k, pl.Mem.Right)), pl.Mem.Vec)
            scores = pl.mul(scores, 0.125)
            above = pl.maximum(best, pl.row_max(scores, tmp))
            p = pl.exp(pl.row_expand_sub(scores, above))
            fade = pl.exp(pl.sub(best, above))
            total = pl.add(pl.mul(total, fade), pl.row_sum(p, tmp))
            best = above
            weights = pl.store(p, [i * 16, 0], weights)
            left = pl.load(weights, [i * 16, 0], [16, 16], target_memory=pl.Mem.Mat)
            v = pl.load(values, [page * 16, 0], [16, 64], target_memory=pl.Mem.Mat)
            product = pl.matmul(pl.move(left, pl.Mem.Left), pl.move(v, pl.Mem.Right))
            result = pl.add(pl.row_expand_mul(result, fade), pl.move(product, pl.Mem.Vec))
        out = pl.store(pl.row_expand_div(result, total), [i * 16, 0], out)
    return out
"""


@pytest.mark.parametrize(
    ("platform", "runtime"),
    [
        ("a2a3sim", RuntimeKind.TENSORMAP_AND_RINGBUFFER),
        ("a5sim", RuntimeKind.HOST_BUILD_GRAPH),
    ],
)
def test_each_sequence_attends_to_its_own_pages(
    compile_text: Any, platform: str, runtime: RuntimeKind
) -> None:
    compiled = compile_text(
        KERNEL,
        {
            "query": ((SEQUENCES * HEADS, DEPTH), FP32),
            "keys": ((PAGES * DEPTH, PAGE), FP32),
            "values": ((PAGES * PAGE, DEPTH), FP32),
            "table": ((SEQUENCES, MOST), INT32),
            "lengths": ((SEQUENCES,), INT32),
            "out": ((SEQUENCES * HEADS, DEPTH), FP32),
        },
        platform=platform,
        runtime=runtime,
    )
    generator = torch.Generator().manual_seed(3)
    query = torch.randn(SEQUENCES, HEADS, DEPTH, generator=generator)
    keys = torch.randn(PAGES, DEPTH, PAGE, generator=generator)
    values = torch.randn(PAGES, PAGE, DEPTH, generator=generator)
    table = torch.randperm(PAGES, generator=generator)[: SEQUENCES * MOST].reshape(SEQUENCES, MOST)
    lengths = torch.tensor([1, 6, 3, 2, 5, 4])
    out = torch.zeros(SEQUENCES * HEADS, DEPTH)
    compiled(
        query.reshape(-1, DEPTH),
        keys.reshape(-1, PAGE),
        values.reshape(-1, DEPTH),
        table.to(torch.int32),
        lengths.to(torch.int32),
        out,
    )
    for i, got in enumerate(out.reshape(SEQUENCES, HEADS, DEPTH)):
        pages = table[i, : lengths[i]]
        k = torch.cat(list(keys[pages]), dim=1)
        v = torch.cat(list(values[pages]), dim=0)
        want = torch.softmax(query[i] @ k / math.sqrt(DEPTH), dim=-1) @ v
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
