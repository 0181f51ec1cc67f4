"""Tensors whose elements are in layout NZ, against torch."""

from __future__ import annotations

import pypto.language as pl
import pytest
import torch
from pypto.backend import BackendType
from pypto.runtime import RunConfig


def packed(matrix: torch.Tensor) -> torch.Tensor:
    """The same matrix with its elements in layout NZ."""
    rows, cols = matrix.shape
    block = 32 // matrix.element_size()
    blocks = matrix.reshape(rows, cols // block, block).permute(1, 0, 2)
    return blocks.contiguous().reshape(rows, cols)


@pl.jit
def product(
    a: pl.Tensor,
    w: pl.Tensor[[64, 32], pl.FP16, pl.NZ],
    out: pl.Out[pl.Tensor],
    moved: pl.Out[pl.Tensor[[16, 32], pl.FP16, pl.NZ]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        left = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        right = pl.load(w, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        acc = pl.matmul(pl.move(left, pl.Mem.Left), pl.move(right, pl.Mem.Right))
        out = pl.store(acc, [0, 0], out)
    with pl.at(level=pl.Level.CORE_GROUP):
        part = pl.load(w, [8, 16], [16, 16])
        moved = pl.store(pl.add(part, part), [0, 0], moved)
        moved = pl.store(part, [0, 16], moved)
    return out, moved


@pytest.mark.parametrize("arch", list(BackendType))
def test_fractals_are_read_and_written(arch: BackendType) -> None:
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(16, 64, generator=generator).half()
    w = torch.randn(64, 32, generator=generator).half()
    out, moved = torch.zeros(16, 32), torch.zeros(16, 32, dtype=torch.float16)
    product(a, packed(w), out, moved, config=RunConfig(arch=arch))
    torch.testing.assert_close(out, a.float() @ w.float())
    part = w[8:24, 16:32]
    assert torch.equal(moved, packed(torch.cat([part + part, part], dim=1)))


def test_a_layout_is_part_of_the_key() -> None:
    nz = pl.Tensor[[32, 32], pl.FP16, pl.NZ]

    @pl.jit
    def plain(x: pl.Tensor[[32, 32], pl.FP16], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(x, [0, 0], [32, 32]), [0, 0], out)

    @pl.jit
    def fractal(x: nz, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(x, [0, 0], [32, 32]), [0, 0], out)

    x = torch.arange(1024).reshape(32, 32).half()
    first, second = torch.zeros_like(x), torch.zeros_like(x)
    plain(x, first)
    fractal(packed(x), second)
    assert torch.equal(first, x)
    assert torch.equal(second, x)
