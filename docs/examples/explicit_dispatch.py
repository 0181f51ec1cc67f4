"""Keep a chip, register programs with it, and leave tensors in its memory between calls.

A kernel that is called like a function gets a chip for the call, and its tensors are copied there
and back. Whoever calls often keeps a worker: programs are loaded once, and what stays on the chip
is not copied at all.
"""

from __future__ import annotations

import argparse

import pypto.language as pl
import torch
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import ChipWorker, RunConfig

ROWS, COLS = 32, 64
STEPS = 8
RATE = 0.125


@pl.jit
def step(
    state: pl.Tensor[[ROWS, COLS], pl.FP32],
    drive: pl.Tensor[[ROWS, COLS], pl.FP32],
    rate: pl.Scalar[pl.FP32],
    after: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    """state + rate * (drive - state)"""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="step"):
        now = pl.load(state, [0, 0], [ROWS, COLS])
        wanted = pl.load(drive, [0, 0], [ROWS, COLS])
        after = pl.store(pl.add(now, pl.mul(pl.sub(wanted, now), rate)), [0, 0], after)
    return after


@pl.jit
def row_totals(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, 1], pl.FP32]],
):
    """The sum of each row."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="row_totals"):
        band = pl.load(x, [0, 0], [ROWS, COLS])
        scratch = pl.create_tile([ROWS, COLS], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        out = pl.store(pl.row_sum(band, scratch), [0, 0], out)
    return out


def relax(
    config: RunConfig, start: torch.Tensor, drive: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """STEPS steps on one chip: the last state, its row totals, how many programs were loaded."""
    last, totals = torch.empty(ROWS, COLS), torch.empty(ROWS, 1)
    with ChipWorker(config=config) as worker:
        advance = worker.register(step.compile(config=config))
        reduce = worker.register(row_totals.compile(config=config))
        now = worker.alloc_tensor((ROWS, COLS), torch.float32, init=start)
        after = worker.alloc_tensor((ROWS, COLS), torch.float32)
        for _ in range(STEPS):
            advance(now, drive, RATE, after)
            now, after = after, now
        reduce(now, totals)
        worker.copy_from(last.data_ptr(), now.data_ptr, now.nbytes)
        worker.free_tensor(now)
        worker.free_tensor(after)
        loaded = worker.aicpu_dlopen_count
    return last, totals, loaded


def main() -> None:
    """Run the steps on a simulated chip and compare them with torch."""
    parser = argparse.ArgumentParser(description="Explicit dispatch, compared with torch.")
    parser.add_argument("--arch", choices=BackendType.__members__, default="Ascend910B")
    arch = BackendType[parser.parse_args().arch]
    generator = torch.Generator().manual_seed(7)
    start, drive = (torch.randn(ROWS, COLS, generator=generator) for _ in range(2))
    config = RunConfig(arch=arch, execution_mode=ExecutionMode.SIM)
    last, totals, loaded = relax(config, start, drive)
    expected = start
    for _ in range(STEPS):
        expected = expected + RATE * (drive - expected)
    torch.testing.assert_close(last, expected)
    torch.testing.assert_close(totals, expected.sum(dim=1, keepdim=True), rtol=1e-4, atol=1e-4)
    print(f"{STEPS + 1} calls of {loaded} programs on {arch.name} agree with torch")


if __name__ == "__main__":
    main()
