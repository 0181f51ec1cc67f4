"""What subscripts select of tensors and tiles on a core, read and written."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.ir.dtypes import FP32, INT32
from pypto.runtime import KernelFault

Tensor = torch.Tensor

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.conforms("language.104")
@PLATFORMS
def test_parts_of_tiles(platform: str, compile_text: Any) -> None:
    """Slices keep their axis, numbers drop it, what is left of one axis is a row."""
    compiled = compile_text(
        """
        def parts(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [16, 16])
                out[0:8, :] = t[0:8, :]
                out[8:16, 0:8] = t[8:, n : n + 8]
                out[8:16, 8:16] = t[n : n + 8, :8]
                out[16:17, :] = t[n]
                out[17:18, :] = t[:, n]
                out[18, :] = t[n + 1, :]
                out[19:20, 0:4] = t[2 * n + 1, n * 2 : (n + 2) * 2]
            return out
        """,
        {"x": ((16, 16), FP32), "n": INT32, "out": ((20, 16), FP32)},
        platform=platform,
    )
    x = randn(16, 16)
    for n in (0, 3):
        out = torch.zeros(20, 16)
        compiled(x, n, out)
        expected = torch.zeros(20, 16)
        expected[0:8] = x[0:8]
        expected[8:16, 0:8] = x[8:, n : n + 8]
        expected[8:16, 8:16] = x[n : n + 8, :8]
        expected[16], expected[17], expected[18] = x[n], x[:, n], x[n + 1]
        expected[19, 0:4] = x[2 * n + 1, n * 2 : (n + 2) * 2]
        assert torch.equal(out, expected)


@pytest.mark.conforms("language.105")
@PLATFORMS
def test_parts_of_tiles_are_written(platform: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def assemble(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor],
                     before: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [16, 16])
                first = t
                t[0:8, :] = t[8:16, :]
                t[8:, n : n + 8] = pl.neg(t[8:, n : n + 8])
                t[n] = pl.full([1, 16], dtype=pl.FP32, value=3.0)
                t[:, n + 1] = t[n + 2]
                t[0:2, 0:2] += 1.0
                u = pl.create_tile([16, 16], dtype=pl.FP32)
                u[:] = t
                out[:] = u
                before[:] = first
            return out, before
        """,
        {"x": ((16, 16), FP32), "n": INT32, "out": ((16, 16), FP32), "before": ((16, 16), FP32)},
        platform=platform,
    )
    x = randn(16, 16)
    for n in (0, 3):
        out, before = compiled(x, n)
        expected = x.clone()
        expected[0:8] = x[8:16]
        expected[8:, n : n + 8] *= -1
        expected[n] = 3.0
        expected[:, n + 1] = expected[n + 2].clone()
        expected[0:2, 0:2] += 1.0
        assert torch.equal(out, expected)
        assert torch.equal(before, x)


@pytest.mark.conforms("language.101")
@PLATFORMS
def test_parts_of_tensors_on_a_core(platform: str, compile_text: Any) -> None:
    """Extents fold where the starts do not; missing axes are whole."""
    compiled = compile_text(
        """
        def parts(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
            C = 4
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(2):
                    out[i * C : (i + 1) * C, :] = x[i, n + 1 : C + n + 1]
                out[8:12] = x[1, 2:6] + x[0, n : n + C, :]
                out[12, :] = x[n, n]
                out[n + 13] = x[0, 7, :]
            return out
        """,
        {"x": ((2, 8, 16), FP32), "n": INT32, "out": ((16, 16), FP32)},
        platform=platform,
    )
    x = randn(2, 8, 16)
    for n in (0, 1):
        out = torch.zeros(16, 16)
        compiled(x, n, out)
        expected = torch.zeros(16, 16)
        for i in range(2):
            expected[i * 4 : i * 4 + 4] = x[i, n + 1 : n + 5]
        expected[8:12] = x[1, 2:6] + x[0, n : n + 4]
        expected[12], expected[n + 13] = x[n, n], x[0, 7]
        assert torch.equal(out, expected)


@pytest.mark.conforms("language.110")
@PLATFORMS
def test_a_part_of_a_tile_past_its_end_is_a_fault(platform: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def past(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [16, 16])
                out[:] = t[n : n + 8, :]
            return out
        """,
        {"x": ((16, 16), FP32), "n": INT32, "out": ((8, 16), FP32)},
        platform=platform,
    )
    x = randn(16, 16)
    assert torch.equal(compiled(x, 8), x[8:])
    with pytest.raises(KernelFault) as caught:
        compiled(x, 9)
    assert (caught.value.unit, caught.value.line) == ("tests:past", 4)
