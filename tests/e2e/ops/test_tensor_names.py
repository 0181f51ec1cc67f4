"""Names in orchestration that stand for another tensor in the next iteration, or on another way."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from pypto.ir.dtypes import BOOL, FP32, INT32

Tensor = torch.Tensor

SETTINGS = pytest.mark.parametrize(
    ("platform", "runtime"),
    [
        ("a2a3sim", "tensormap_and_ringbuffer"),
        ("a2a3sim", "host_build_graph"),
        ("a5sim", "tensormap_and_ringbuffer"),
    ],
)


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.conforms("language.63")
@SETTINGS
def test_values_of_blocks_are_carried(platform: str, runtime: str, compile_text: Any) -> None:
    """The running largest and the sum of rows, as values that escape their block each time."""
    compiled = compile_text(
        """
        def online(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                first = pl.add(x[0:8, :], 0.0)
                largest = pl.row_max(first)
                total = pl.row_sum(first)
            for i in pl.range(1, n):
                with pl.at(level=pl.Level.CORE_GROUP):
                    part = pl.add(x[i * 8 : i * 8 + 8, :], 0.0)
                    largest = pl.maximum(largest, pl.row_max(part))
                    total = pl.add(total, pl.row_sum(part))
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:, 0:1] = largest
                out[:, 1:2] = total
            return out
        """,
        {"x": ((32, 16), FP32), "n": INT32, "out": ((8, 2), FP32)},
        platform=platform,
        runtime=runtime,
    )
    x = randn(32, 16)
    for n in (1, 2, 4):
        blocks = x.reshape(4, 8, 16)[:n]
        expected = torch.stack([blocks.amax((0, 2)), blocks.sum((0, 2))], dim=1)
        torch.testing.assert_close(compiled(x, n), expected)


@pytest.mark.conforms("language.85")
@SETTINGS
def test_two_tensors_change_places(platform: str, runtime: str, compile_text: Any) -> None:
    """Ping and pong, one of them an input that is written therefore."""
    compiled = compile_text(
        """
        def pingpong(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
            a = x
            b = pl.create_tensor([4, 16], dtype=pl.FP32)
            for i in pl.range(n):
                with pl.at(level=pl.Level.CORE_GROUP):
                    b = pl.store(pl.add(pl.load(a, [0, 0], [4, 16]), 1.0), [0, 0], b)
                a, b = b, a
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(a, [0, 0], [4, 16]), [0, 0], out)
            return out
        """,
        {"x": ((4, 16), FP32), "n": INT32, "out": ((4, 16), FP32)},
        platform=platform,
        runtime=runtime,
    )
    for n in (0, 1, 2, 5):
        x = randn(4, 16)
        expected = x.clone()
        for _ in range(n):
            expected = expected + 1.0
        assert torch.equal(compiled(x, n), expected)


@pytest.mark.conforms("language.92")
@SETTINGS
def test_a_branch_chooses_a_tensor(platform: str, runtime: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def choose(flag: pl.Scalar[pl.BOOL], x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
            if flag:
                source = x
            else:
                with pl.at(level=pl.Level.CORE_GROUP):
                    source = pl.mul(y, 2.0)
            for (k, t) in pl.while_(init_values=(0, source)):
                pl.cond(k < 2)
                with pl.at(level=pl.Level.CORE_GROUP):
                    grown = pl.add(t, 1.0)
                k_after, t_after = pl.yield_(k + 1, grown)
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.add(t_after, source)
            return out
        """,
        {
            "flag": BOOL,
            "x": ((4, 16), FP32),
            "y": ((4, 16), FP32),
            "out": ((4, 16), FP32),
        },
        platform=platform,
        runtime=runtime,
    )
    x, y = randn(4, 16), randn(4, 16, seed=1)
    for flag in (True, False):
        source = x if flag else y * 2
        torch.testing.assert_close(compiled(flag, x, y), source + 2 + source)


def test_created_tensors_live_as_long_as_a_name_has_them(compile_text: Any) -> None:
    """The loop inside frees nothing that the loop around, or what follows, still reads."""
    compiled = compile_text(
        """
        def nested(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                total = pl.add(x, 0.0)
            for i in pl.range(3):
                with pl.at(level=pl.Level.CORE_GROUP):
                    inner = pl.mul(x, 1.0)
                for j in pl.range(4):
                    noise = pl.create_tensor([4, 16], dtype=pl.FP32)
                    with pl.at(level=pl.Level.CORE_GROUP):
                        noise[:] = pl.mul(x, 100.0)
                    with pl.at(level=pl.Level.CORE_GROUP):
                        inner = pl.add(inner, x)
                with pl.at(level=pl.Level.CORE_GROUP):
                    total = pl.add(total, inner)
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = total
            return out
        """,
        {"x": ((4, 16), FP32), "out": ((4, 16), FP32)},
    )
    x = randn(4, 16)
    torch.testing.assert_close(compiled(x), x * 16)


@pytest.mark.conforms("language.20")
def test_an_input_that_may_be_written_under_another_name_is_an_output(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def fill(x: pl.Tensor, y: pl.Tensor, flag: pl.Scalar[pl.BOOL], z: pl.Out[pl.Tensor]):
            if flag:
                target = x
            else:
                target = y
            with pl.at(level=pl.Level.CORE_GROUP):
                target = pl.store(pl.full([4, 16], dtype=pl.FP32, value=1.0), [0, 0], target)
            with pl.at(level=pl.Level.CORE_GROUP):
                z = pl.store(pl.load(x, [0, 0], [4, 16]), [0, 0], z)
            return z
        """,
        {"x": ((4, 16), FP32), "y": ((4, 16), FP32), "flag": BOOL, "z": ((4, 16), FP32)},
    )
    sidecar = json.loads((compiled.output_dir / "compiled_meta.json").read_text())
    directions = {param["name"]: param["direction"] for param in sidecar["params"]}
    assert directions == {"x": "InOut", "y": "InOut", "flag": "In", "z": "Out"}
    x, y = torch.zeros(4, 16), torch.zeros(4, 16)
    assert torch.equal(compiled(x, y, True), torch.ones(4, 16))
    assert torch.equal(x, torch.ones(4, 16))
    assert torch.equal(compiled(torch.zeros(4, 16), y, False), torch.zeros(4, 16))
    assert torch.equal(y, torch.ones(4, 16))
