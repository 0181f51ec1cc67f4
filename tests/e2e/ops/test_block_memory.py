"""Memory that a block works with and no other task sees: blocks beside it leave it alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import RuntimeKind
from pypto.ir.dtypes import FP32, INT64

SETTINGS = [(platform, runtime) for platform in ("a2a3sim", "a5sim") for runtime in RuntimeKind]
settings = pytest.mark.parametrize(("platform", "runtime"), SETTINGS, ids=str)

BLOCKS, ROWS, INNER, COLS, ROUNDS = 8, 16, 32, 16, 3000

# What a vector operation computed comes to a product through global memory, in every round, and a
# round that read what another block wrote is in the sum.
ROUND = """
sums = pl.full([16, 16], dtype=pl.FP32, value=0)
for k in pl.range(3000):
    raised = pl.add(x[i * 16 : i * 16 + 16, :], 1)
    sums = pl.add(sums, pl.matmul(raised, w, out_dtype=pl.FP32))
out[i * 16 : i * 16 + 16, :] = sums
"""


def indented(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)


KERNEL = f"""
def blocks(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    i = pl.tile.get_block_idx()
    {indented(ROUND, 4)}
    return out
"""

FORMS = {
    "call": """
        def entry(x: pl.Tensor, w: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
            with pl.spmd(8):
                out = blocks(x, w, out)
            return out
        """,
    "submitted": """
        def entry(x: pl.Tensor, w: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
            out, task = pl.spmd_submit(blocks, x, w, out, core_num=n)
            return out
        """,
    "loop": f"""
        def entry(x: pl.Tensor, w: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
            for i in pl.spmd(n):
                {indented(ROUND, 16)}
            return out
        """,
    "own scratch": """
        def entry(x: pl.Tensor, w: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
            scratch = pl.create_tensor([16, 32], dtype=pl.FP32)
            for i in pl.spmd(8):
                sums = pl.full([16, 16], dtype=pl.FP32, value=0)
                for k in pl.range(3000):
                    scratch[:] = pl.add(x[i * 16 : i * 16 + 16, :], 1)
                    sums = pl.add(sums, pl.matmul(scratch, w, out_dtype=pl.FP32))
                out[i * 16 : i * 16 + 16, :] = sums
            return out
        """,
}


@pytest.mark.parametrize(
    ("form", "platform", "runtime"),
    [(form, *setting) for form in ("call", "loop") for setting in SETTINGS]
    + [(form, *setting) for form in ("submitted", "own scratch") for setting in SETTINGS[::3]],
    ids=str,
)
def test_products_of_blocks_do_not_meet(
    compile_text: Any, form: str, platform: str, runtime: RuntimeKind
) -> None:
    compiled = compile_text(
        FORMS[form],
        {
            "x": ((BLOCKS * ROWS, INNER), FP32),
            "w": ((INNER, COLS), FP32),
            "n": INT64,
            "out": ((BLOCKS * ROWS, COLS), FP32),
        },
        (KERNEL,),
        platform=platform,
        runtime=runtime,
    )
    x = torch.arange(BLOCKS).repeat_interleave(ROWS)[:, None] + torch.zeros(INNER)
    w, out = torch.randint(-4, 4, (INNER, COLS)).float(), torch.zeros(BLOCKS * ROWS, COLS)
    compiled(x, w, BLOCKS, out)
    assert torch.equal(out, ROUNDS * ((x + 1) @ w))


@settings
def test_values_too_large_for_a_core_do_not_meet(
    compile_text: Any, platform: str, runtime: RuntimeKind
) -> None:
    """They are computed part by part, and each of the sums goes through global memory."""
    compiled = compile_text(
        """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            for i in pl.spmd(4):
                raised = pl.add(x[i * 256 : i * 256 + 256, :], 1)
                for k in pl.range(60):
                    raised = pl.add(raised, x[i * 256 : i * 256 + 256, :])
                out[i * 256 : i * 256 + 256, :] = raised
            return out
        """,
        {"x": ((1024, 512), FP32), "out": ((1024, 512), FP32)},
        platform=platform,
        runtime=runtime,
    )
    x = torch.arange(4).repeat_interleave(256)[:, None] + torch.zeros(512)
    out = torch.zeros_like(x)
    compiled(x, out)
    assert torch.equal(out, 61 * x + 1)


@settings
def test_a_value_that_is_read_after_the_blocks_is_each_ones_own_inside(
    compile_text: Any, platform: str, runtime: RuntimeKind
) -> None:
    """After them it is what one of the blocks made of it, row by row."""
    compiled = compile_text(
        """
        def entry(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor], last: pl.Out[pl.Tensor]):
            for i in pl.spmd(8):
                raised = pl.add(x[i * 16 : i * 16 + 16, :], 1)
                sums = pl.full([16, 16], dtype=pl.FP32, value=0)
                for k in pl.range(3000):
                    sums = pl.add(sums, pl.matmul(raised, w, out_dtype=pl.FP32))
                out[i * 16 : i * 16 + 16, :] = sums
            with pl.at(level=pl.Level.CORE_GROUP):
                last[:] = raised
            return out, last
        """,
        {
            "x": ((BLOCKS * ROWS, INNER), FP32),
            "w": ((INNER, COLS), FP32),
            "out": ((BLOCKS * ROWS, COLS), FP32),
            "last": ((ROWS, INNER), FP32),
        },
        platform=platform,
        runtime=runtime,
    )
    x = torch.arange(BLOCKS).repeat_interleave(ROWS)[:, None] + torch.zeros(INNER)
    w, out = torch.randint(-4, 4, (INNER, COLS)).float(), torch.zeros(BLOCKS * ROWS, COLS)
    last = torch.zeros(ROWS, INNER)
    compiled(x, w, out, last)
    assert torch.equal(out, ROUNDS * ((x + 1) @ w))
    assert torch.isin(last, torch.arange(1.0, BLOCKS + 1)).all()
