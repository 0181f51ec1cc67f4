"""Tiles in the bias table: moved there from Mat, stored from there; and stores from every space."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import LIMITS, BackendType
from pypto.ir.dtypes import BF16, FP32, INT32
from pypto.ir.passes.capacity import CapacityError

TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("space", ["Mat", "Left", "Right", "Bias"])
@pytest.mark.parametrize("dtype", [FP32, BF16, INT32])
def test_a_tile_comes_back_from_every_space(
    space: str, dtype: Any, target: str, compile_text: Any
) -> None:
    """The valid region of one row of numbers goes there and back."""
    text = f"""
        def through(x: pl.Tensor, n: pl.INT32, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                mat = pl.load(x, [0, 0], [1, 64], valid_shape=[1, n], target_memory=pl.Mem.Mat)
                there = pl.move(mat, pl.Mem.{space})
                again = pl.move(there, pl.Mem.{space})
                out = pl.store(again, [0, 0], out)
    """
    types = {"x": ((1, 64), dtype), "n": INT32, "out": ((1, 64), dtype)}
    compiled = compile_text(text, types, backend_type=TARGETS[target])
    kind = getattr(torch, dtype.torch_name)
    x = torch.randint(-99, 99, (1, 64), generator=torch.Generator().manual_seed(1)).to(kind)
    out = torch.full((1, 64), 7, dtype=kind)
    compiled(x, 50, out)
    assert torch.equal(out[:, :50], x[:, :50])
    assert (out[:, 50:] == 7).all()


@pytest.mark.parametrize("target", TARGETS)
def test_the_bias_table_has_its_own_size(target: str, compile_text: Any) -> None:
    backend = TARGETS[target]
    most = LIMITS[backend].bias_bytes // 4
    text = """
        def through(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                mat = pl.load(x, [0, 0], [1, {count}], target_memory=pl.Mem.Mat)
                out = pl.store(pl.move(mat, pl.Mem.Bias), [0, 0], out)
    """
    x, out = torch.rand(1, most), torch.zeros(1, most)
    types = {"x": ((1, most), FP32), "out": ((1, most), FP32)}
    compile_text(text.format(count=most), types, backend_type=backend)(x, out)
    assert torch.equal(out, x)
    larger = {"x": ((1, most + 8), FP32), "out": ((1, most + 8), FP32)}
    with pytest.raises(CapacityError, match=r"kernel.py:4:\d+: .*Bias"):
        compile_text(text.format(count=most + 8), larger, backend_type=backend)
