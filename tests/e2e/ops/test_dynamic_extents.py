"""Run-time extents: one compiled kernel for every size, by what its helpers declare."""

from __future__ import annotations

import pypto.language as pl
import pytest
import torch
from pypto.backend import BackendType
from pypto.runtime import KernelFault, RunConfig

M = pl.dynamic("M")


@pl.jit.incore
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    x.bind_dynamic(0, M)
    out.bind_dynamic(0, M)
    for r in pl.range(0, x.shape[0], 16):
        rows = pl.min(16, x.shape[0] - r)
        tile = pl.load(x, [r, 0], [16, 32], valid_shape=[rows, 32])
        out = pl.store(pl.mul(tile, 2.0), [r, 0], out)
    return out


@pl.jit.inline
def quadrupled(x: pl.Tensor, out: pl.Tensor):
    rows, cols = x.shape
    half = pl.create_tensor([rows, cols], dtype=x.dtype)
    half = doubled(x, half)
    return doubled(half, out)


@pl.jit
def bare(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = quadrupled(a, out)
    for i in pl.range(b.shape[0]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[i : i + 1] = pl.add(out[i : i + 1], b[i : i + 1])
    return out


@pytest.mark.conforms("language.29")
@pytest.mark.parametrize("arch", list(BackendType))
def test_an_entry_is_dynamic_where_its_helpers_are(arch: BackendType) -> None:
    config = RunConfig(arch=arch)
    compiled = set()
    for rows in (16, 40, 7):
        generator = torch.Generator().manual_seed(rows)
        a = torch.randn(rows, 32, generator=generator)
        b = torch.randn(4, 32, generator=generator)
        out = torch.zeros(rows, 32)
        bare(a, b, out, config=config)
        expected = a * 4
        expected[:4] += b
        assert torch.equal(out, expected)
        compiled.add(id(bare.compile(a, b, out, config=config)))
    assert len(compiled) == 1
    # b's rows are a constant, because no helper says otherwise.
    other = bare.compile(a, torch.zeros(3, 32), out, config=config)
    assert id(other) not in compiled


ROWS, OTHER_ROWS = pl.dynamic("ROWS"), pl.dynamic("OTHER_ROWS")


@pl.jit
def names_differ(
    a: pl.Tensor[[ROWS, 32], pl.FP32], out: pl.Out[pl.Tensor[[OTHER_ROWS, 32], pl.FP32]]
):
    out = doubled(a, out)
    return out


def test_extents_that_a_kernel_knows_as_one_are_compared_when_it_runs() -> None:
    a = torch.randn(20, 32, generator=torch.Generator().manual_seed(0))
    out = torch.zeros(20, 32)
    names_differ(a, out)
    assert torch.equal(out, a * 2)
    with pytest.raises(KernelFault, match="another extent than the kernel that it is") as caught:
        names_differ(a, torch.zeros(24, 32))
    line = names_differ.__wrapped__.__code__.co_firstlineno + 4
    assert str(caught.value).startswith(f"{__file__}:{line}:11: ")
    assert "out = doubled(a, out)" in str(caught.value)
