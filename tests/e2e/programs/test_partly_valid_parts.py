"""Parts of tensors that are valid in part: in blocks, in functions called, in parts of them.

``pl.slice(..., valid_shape=)`` outside a core names memory, and what is computed of it has its
valid region: reductions count it alone, stores write it alone, padding fills the rest.
"""

from __future__ import annotations

from typing import Any

import pypto.language as pl
import pytest
import torch

ROWS, COLS, BAND = 64, 64, 16
M = pl.dynamic("M")
UNTOUCHED = 9.0


@pl.jit.incore
def sums_of_tiles(x: pl.Tensor[[BAND, 32], pl.FP32], out: pl.Out[pl.Tensor[[BAND, 1], pl.FP32]]):
    tile = pl.load(x, [0, 0], [BAND, 32])
    scratch = pl.create_tile([BAND, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
    out = pl.store(pl.row_sum(tile, scratch), [0, 0], out)
    return out


@pl.jit.incore
def sums_of_tensors(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    pl.static_assert(x.shape[0] == BAND)
    out[:] = pl.row_sum(pl.mul(x, 2.0))
    return out


@pl.jit
def parts(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    valid: pl.Tensor[[4, 2], pl.INT32],
    sums: pl.Out[pl.Tensor[[ROWS, 1], pl.FP32]],
    doubled: pl.Out[pl.Tensor[[ROWS, 1], pl.FP32]],
    computed: pl.Out[pl.Tensor[[ROWS, 32], pl.FP32]],
    padded: pl.Out[pl.Tensor[[ROWS, 32], pl.FP32]],
    copied: pl.Out[pl.Tensor[[ROWS, 32], pl.FP32]],
    inner: pl.Out[pl.Tensor[[ROWS, 32], pl.FP32]],
    nested: pl.Out[pl.Tensor[[ROWS, 32], pl.FP32]],
):
    for b in pl.range(4):
        row = b * BAND
        part = pl.slice(x, [BAND, 32], [row, 16], valid_shape=[valid[b, 0], valid[b, 1]])
        pl.static_assert(part.shape == (BAND, 32))
        sums_of_tiles(part, sums[row : row + BAND])
        sums_of_tensors(part, doubled[row : row + BAND])
        with pl.at(level=pl.Level.CORE_GROUP):
            computed = pl.assemble(computed, pl.exp(part), [row, 0])
            tile = pl.load(part, [0, 0], [BAND, 32])
            padded = pl.store(pl.fillpad(tile, pl.PadValue.min), [row, 0], padded)
            inner[row : row + 8] = part[4:12] * 3.0
        copied[row : row + BAND] = part
        below = part[4:12, 8:16]
        with pl.at(level=pl.Level.CORE_GROUP):
            nested = pl.assemble(nested, -below, [row, 0])
    return sums, doubled, computed, padded, copied, inner, nested


def test_what_is_valid_of_a_part_is_handed_on(launch: Any, normal: Any) -> None:
    x = normal(ROWS, COLS)
    valid = torch.tensor([[3, 32], [16, 5], [0, 7], [7, 9]], dtype=torch.int32)
    widths = (1, 1, 32, 32, 32, 32, 32)
    outputs = [torch.full((ROWS, width), UNTOUCHED) for width in widths]
    expected = [output.clone() for output in outputs]
    for b, (rows, cols) in enumerate(valid.tolist()):
        first = b * BAND
        part, there = x[first : first + rows, 16 : 16 + cols], slice(first, first + rows)
        expected[0][there, 0] = part.sum(1)
        expected[1][there, 0] = 2 * part.sum(1)
        expected[2][there, :cols] = part.exp()
        expected[3][first : first + BAND] = torch.finfo(torch.float32).min
        expected[3][there, :cols] = part
        expected[4][there, :cols] = part
        middle = part[4:12] * 3
        expected[5][first : first + len(middle), :cols] = middle
        corner = -part[4:12, 8:16]
        expected[6][first : first + corner.shape[0], : corner.shape[1]] = corner
    launch(parts, x, valid, *outputs)
    for output, value in zip(outputs, expected, strict=True):
        torch.testing.assert_close(output, value, rtol=1e-5, atol=1e-5)


@pl.jit
def blocks(x: pl.Tensor[[M, 32], pl.FP32], out: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    for row in pl.range(0, x.shape[0], BAND):
        part = pl.slice(x, [BAND, 32], [row, 0], clamp=True)
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.assemble(out, pl.mul(part, 2.0), [row, 0])
    return out


@pytest.mark.parametrize("rows", [5, 16, 37])
def test_the_last_part_may_be_cut(rows: int, launch: Any, normal: Any) -> None:
    x, out = normal(rows, 32), torch.zeros(rows, 32)
    launch(blocks, x, out)
    assert torch.equal(out, x * 2)


@pl.jit
def known_region(x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    part = pl.slice(x, [16, 16], [20, 20], valid_shape=[9, 16], clamp=True)
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.fillpad(part, 0)
    return out


def test_a_region_that_is_known_while_compiling(launch: Any, normal: Any) -> None:
    x, out, expected = normal(32, 32), torch.ones(16, 16), torch.zeros(16, 16)
    expected[:9, :12] = x[20:29, 20:]
    launch(known_region, x, out)
    assert torch.equal(out, expected)
