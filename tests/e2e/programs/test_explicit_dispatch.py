"""A worker that keeps a chip: programs are registered once and called on memory of the chip."""

from __future__ import annotations

import pypto.language as pl
import pytest
import torch
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import ChipWorker, RunConfig

ROWS, COLS = 32, 64


@pl.jit
def scaled_sum(
    a: pl.Tensor[[ROWS, COLS], pl.FP32],
    b: pl.Tensor[[ROWS, COLS], pl.FP32],
    scale: pl.Scalar[pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="scaled_sum"):
        left = pl.load(a, [0, 0], [ROWS, COLS])
        right = pl.load(b, [0, 0], [ROWS, COLS])
        out = pl.store(pl.add(left, pl.mul(right, scale)), [0, 0], out)
    return out


@pl.jit
def row_totals(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, 1], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="row_totals"):
        band = pl.load(x, [0, 0], [ROWS, COLS])
        scratch = pl.create_tile([ROWS, COLS], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        out = pl.store(pl.row_sum(band, scratch), [0, 0], out)
    return out


@pytest.mark.parametrize("arch", BackendType)
def test_registered_programs_work_on_memory_of_the_chip(arch, normal):
    config = RunConfig(arch=arch, execution_mode=ExecutionMode.SIM)
    a, b = normal(ROWS, COLS), normal(ROWS, COLS)
    totals = torch.empty(ROWS, 1)
    with ChipWorker(config=config) as worker:
        add = worker.register(scaled_sum.compile(config=config))
        reduce = worker.register(row_totals.compile(config=config))
        assert worker.aicpu_dlopen_count == 2
        on_chip = worker.alloc_tensor((ROWS, COLS), torch.float32, init=a)
        result = worker.alloc_tensor((ROWS, COLS), torch.float32)
        for _ in range(3):
            add(on_chip, b, 0.5, result)
            add(result, b, 0.25, on_chip)
        reduce(on_chip, totals)
        back = torch.empty(ROWS, COLS)
        worker.copy_from(back.data_ptr(), result.data_ptr, result.nbytes)
        worker.free_tensor(on_chip)
        worker.free_tensor(result)
        assert worker.aicpu_dlopen_count == 2
    torch.testing.assert_close(back, a + 2 * 0.75 * b + 0.5 * b)
    torch.testing.assert_close(
        totals, (a + 3 * 0.75 * b).sum(dim=1, keepdim=True), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("arch", BackendType)
def test_a_compiled_program_returns_its_outputs(arch, normal):
    config = RunConfig(arch=arch, execution_mode=ExecutionMode.SIM)
    a, b = normal(ROWS, COLS), normal(ROWS, COLS)
    compiled = scaled_sum.compile(config=config)
    torch.testing.assert_close(compiled(a, b, 2.0), a + 2.0 * b)
    out = torch.empty(ROWS, COLS)
    assert compiled(a, b, 2.0, out) is None
    torch.testing.assert_close(out, a + 2.0 * b)
