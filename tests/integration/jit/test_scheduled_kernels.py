"""Kernels that schedule themselves, built by one process and run by others from the store."""

from __future__ import annotations

from typing import Any

import pytest

KERNELS = """
import pypto.language as pl

BLOCKS = 4


@pl.jit.incore
def doubled(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    i = pl.tile.get_block_idx()
    y = pl.store(pl.mul(pl.load(x, [i * 16, 0], [16, 64]), 2.0), [i * 16, 0], y)
    return y


@pl.jit
def kernel(
    x: pl.Tensor[[64, 64], pl.FP32],
    n: pl.Scalar[pl.INT32],
    total: pl.InOut[pl.Tensor[[16, 64], pl.FP32]],
):
    y = pl.create_tensor([64, 64], pl.FP32)
    ids: pl.Array[2, pl.TASK_ID] = pl.array.create(2, pl.TASK_ID)
    with pl.manual_scope():
        y, first = pl.spmd_submit(doubled, x, y, core_num=BLOCKS)
        ids[n % 2] = first
        with pl.spmd(n, deps=[ids]):
            part = pl.load(y, [pl.tile.get_block_idx() * 16, 0], [16, 64])
            total = pl.store(part, [0, 0], total, atomic=pl.AtomicType.Add)
    return total
"""

RUN = """
import torch
from pypto.runtime import RunConfig
x = torch.arange(4096, dtype=torch.float32).reshape(64, 64) % 64
total = torch.ones(16, 64)
kernels.kernel(x, 3, total, config=RunConfig(platform=PLATFORM))
want = 1 + 2 * x.reshape(4, 16, 64)[:3].sum(0)
report["correct"] = torch.equal(total, want)
"""


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_another_process_runs_them_without_building(house: Any, platform: str) -> None:
    house.write(KERNELS)
    step = RUN.replace("PLATFORM", repr(platform))
    first = house.run(step)
    assert first["correct"]
    assert first["stats"]["binary_builds"] == 1
    again = house.run(step)
    assert again["correct"]
    assert not again["started"]
    assert again["stats"]["ready_hits"] == 1
    assert again["stats"]["generation_builds"] == again["stats"]["binary_builds"] == 0


def test_another_number_of_blocks_is_another_kernel(house: Any) -> None:
    house.write(KERNELS)
    step = RUN.replace("PLATFORM", "'a2a3sim'")
    house.run(step)
    house.write(KERNELS.replace("BLOCKS = 4", "BLOCKS = 3"))
    other = house.run(step)
    assert other["correct"]  # three blocks are read, and three were written
    assert other["stats"]["ready_hits"] == 0
    assert other["stats"]["misses"] == 1
