"""Tasks of several blocks: the three ways to write them, on both targets and runtimes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import RuntimeKind
from pypto.ir.dtypes import FP32, INT32, INT64
from pypto.runtime import KernelFault

Tensor = torch.Tensor

ROWS, COLS, BLOCK = 48, 32, 8
TYPES = {"x": ((ROWS, COLS), FP32), "out": ((ROWS, COLS), FP32)}

settings = pytest.mark.parametrize(
    ("platform", "runtime"),
    [(platform, runtime) for platform in ("a2a3sim", "a5sim") for runtime in RuntimeKind],
    ids=str,
)

KERNEL = """
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    i = pl.tile.get_block_idx()
    n = pl.tile.get_block_num()
    tile = pl.load(x, [i * 8, 0], [8, 32])
    out = pl.store(pl.add(tile, pl.mul(tile, pl.cast(n, pl.FP32))), [i * 8, 0], out)
    return out
"""

FORMS = {
    "call": """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.spmd(6):
                out = doubled(x, out)
            return out
        """,
    "call without a result": """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.spmd(core_num=6, sync_start=True, name_hint="blocks"):
                doubled(x, out)
        """,
    "block": """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.spmd(6, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
                i = pl.tile.get_block_idx()
                tile = pl.load(x, [i * 8, 0], [8, 32])
                scaled = pl.mul(tile, pl.cast(pl.tile.get_block_num(), pl.FP32))
                out = pl.store(pl.add(tile, scaled), [i * 8, 0], out)
            return out
        """,
    "loop": """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            for i in pl.spmd(6):
                tile = pl.load(x, [i * 8, 0], [8, 32])
                out = pl.store(pl.mul(tile, 7.0), [i * 8, 0], out)
            return out
        """,
    "loop around a core function": """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            for i in pl.spmd(6):
                out = doubled(x, out)
            return out
        """,
    "block around a cluster": """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.spmd(6):
                with pl.cluster():
                    doubled(x, out)
            return out
        """,
    "cluster around a call": """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.cluster(name_hint="group"):
                with pl.spmd(6):
                    out = doubled(x, out)
            return out
        """,
    "block around pl.at": """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            for i in pl.spmd(6):
                with pl.at(level=pl.Level.CORE_GROUP):
                    tile = pl.load(x, [i * 8, 0], [8, 32])
                    out = pl.store(pl.mul(tile, 7.0), [i * 8, 0], out)
            return out
        """,
    "submitted": """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            out, tid = pl.spmd_submit(doubled, x, out, core_num=6)
            return out
        """,
}


@pytest.mark.conforms("language.66", "language.69", "language.71", "language.72", "language.74")
@pytest.mark.parametrize(
    ("form", "platform", "runtime"),
    [(form, "a2a3sim", RuntimeKind.HOST_BUILD_GRAPH) for form in FORMS]
    + [
        (form, platform, RuntimeKind.TENSORMAP_AND_RINGBUFFER)
        for form in ("call", "loop")
        for platform in ("a2a3sim", "a5sim")
    ],
)
def test_every_form_runs_each_block_once(
    compile_text: Any, form: str, platform: str, runtime: RuntimeKind
) -> None:
    compiled = compile_text(FORMS[form], TYPES, (KERNEL,), platform=platform, runtime=runtime)
    x, out = torch.randn(ROWS, COLS), torch.zeros(ROWS, COLS)
    compiled(x, out)
    torch.testing.assert_close(out, x + x * 6, rtol=1e-6, atol=1e-6)


@pytest.mark.conforms("language.70")
@settings
@pytest.mark.parametrize("blocks", [0, 1, 3, 6])
def test_the_number_of_blocks_may_be_known_at_run_time_only(
    run_time_blocks: Any, blocks: int, platform: str, runtime: RuntimeKind
) -> None:
    x, out = torch.randn(ROWS, COLS), torch.full((ROWS, COLS), 5.0)
    run_time_blocks(platform, runtime)(x, blocks, out)
    want = torch.full((ROWS, COLS), 5.0)
    want[: blocks * BLOCK] = x[: blocks * BLOCK] * blocks
    torch.testing.assert_close(out, want, rtol=0, atol=0)


@pytest.fixture(scope="module")
def run_time_blocks(compile_text: Any) -> Any:
    made: dict[object, Any] = {}

    def of(platform: str, runtime: RuntimeKind) -> Any:
        key = platform, runtime
        if key not in made:
            made[key] = compile_text(
                """
                def entry(x: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.InOut[pl.Tensor]):
                    with pl.spmd(n):
                        i = pl.tile.get_block_idx()
                        count = pl.cast(pl.tile.get_block_num(), pl.FP32)
                        out = pl.store(pl.mul(pl.load(x, [i * 8, 0], [8, 32]), count),
                                       [i * 8, 0], out)
                """,
                {"x": TYPES["x"], "n": INT64, "out": TYPES["out"]},
                platform=platform,
                runtime=runtime,
            )
        return made[key]

    return of


@pytest.mark.conforms("language.70")
@pytest.mark.parametrize("blocks", [-1, 2**31])
def test_an_impossible_number_of_blocks_ends_the_run_at_its_line(
    run_time_blocks: Any, blocks: int
) -> None:
    compiled = run_time_blocks("a2a3sim", RuntimeKind.TENSORMAP_AND_RINGBUFFER)
    message = f"a task cannot run in {blocks} blocks; it takes 0 to 2147483647"
    with pytest.raises(KernelFault, match=message) as caught:
        compiled(torch.zeros(ROWS, COLS), blocks, torch.zeros(ROWS, COLS))
    assert (caught.value.unit, caught.value.line) == ("tests:entry", 2)


@settings
def test_a_fault_in_one_of_many_blocks_ends_the_run_at_its_line(
    compile_text: Any, platform: str, runtime: RuntimeKind
) -> None:
    compiled = compile_text(
        """
        def entry(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
            for i in pl.spmd(1000000000):
                row = i // 100
                out = pl.store(pl.load(x, [row, 0], [1, 32]), [row, 0], out)
            return out
        """,
        TYPES,
        platform=platform,
        runtime=runtime,
    )
    with pytest.raises(KernelFault) as caught:
        compiled(torch.zeros(ROWS, COLS), torch.zeros(ROWS, COLS))
    assert (caught.value.unit, caught.value.line) == ("tests:entry", 4)


@pytest.mark.parametrize("runtime", RuntimeKind, ids=str)
def test_ten_thousand_blocks_each_do_their_part(compile_text: Any, runtime: RuntimeKind) -> None:
    compiled = compile_text(
        """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            for i in pl.spmd(10000):
                out = pl.store(pl.add(pl.load(x, [i, 0], [1, 8]), 1), [i, 0], out)
            for i in pl.spmd(10000):
                out = pl.store(pl.mul(pl.load(out, [9999 - i, 0], [1, 8]), 3), [9999 - i, 0], out)
            return out
        """,
        {"x": ((10000, 8), INT32), "out": ((10000, 8), INT32)},
        runtime=runtime,
    )
    x = torch.randint(-1000, 1000, (10000, 8), dtype=torch.int32)
    out = torch.zeros_like(x)
    compiled(x, out)
    assert torch.equal(out, (x + 1) * 3)


@pytest.mark.conforms("language.66")
@settings
def test_matrix_work_runs_in_blocks_too(
    compile_text: Any, platform: str, runtime: RuntimeKind
) -> None:
    """Matrix and vector work in one block, which is one for a whole core group."""
    compiled = compile_text(
        """
        def entry(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.spmd(4, optimizations=[pl.split(pl.SplitMode.NONE),
                                           pl.cross_core_slot(slot_num=2)]):
                i = pl.tile.get_block_idx()
                left = pl.load(a, [i * 16, 0], [16, 32], target_memory=pl.Mem.Mat)
                right = pl.load(b, [0, 0], [32, 16], target_memory=pl.Mem.Mat)
                product = pl.matmul(pl.move(left, pl.Mem.Left), pl.move(right, pl.Mem.Right))
                out = pl.store(pl.relu(pl.move(product, pl.Mem.Vec)), [i * 16, 0], out)
            return out
        """,
        {"a": ((64, 32), FP32), "b": ((32, 16), FP32), "out": ((64, 16), FP32)},
        platform=platform,
        runtime=runtime,
    )
    a, b, out = torch.randn(64, 32), torch.randn(32, 16), torch.zeros(64, 16)
    compiled(a, b, out)
    torch.testing.assert_close(out, torch.relu(a @ b), rtol=1e-4, atol=1e-4)


@pytest.mark.conforms("language.71")
def test_outside_blocks_there_is_one(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def entry(out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                at = pl.tile.get_block_idx() * 10 + pl.tile.get_block_num()
                out = pl.store(pl.add(pl.full([1, 8], pl.FP32, 0), pl.cast(at, pl.FP32)),
                               [0, 0], out)
            return out
        """,
        {"out": ((1, 8), FP32)},
    )
    out = torch.zeros(1, 8)
    compiled(out)
    assert torch.equal(out, torch.ones(1, 8))
