"""Tasks that the kernel submits and orders itself, on both targets and runtimes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import RuntimeKind
from pypto.ir.dtypes import FP32, INT32, INT64
from pypto.runtime import KernelFault

Tensor = torch.Tensor

settings = pytest.mark.parametrize(
    ("platform", "runtime"),
    [
        ("a2a3sim", RuntimeKind.HOST_BUILD_GRAPH),
        ("a2a3sim", RuntimeKind.TENSORMAP_AND_RINGBUFFER),
        ("a5sim", RuntimeKind.TENSORMAP_AND_RINGBUFFER),
    ],
)

# Slow enough that an order which is not kept shows: a later task would overtake it.
SLOW = """
def slow(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], [16, 64])
    for i in pl.range(2000):
        tile = pl.add(tile, 1)
    y = pl.store(tile, [0, 0], y)
    return y
"""
FAST = """
def fast(y: pl.Tensor, z: pl.Out[pl.Tensor]):
    z = pl.store(pl.mul(pl.load(y, [0, 0], [16, 64]), 2), [0, 0], z)
    return z
"""
NO_RESULT = """
def quiet(y: pl.Tensor, z: pl.Out[pl.Tensor]):
    z = pl.store(pl.mul(pl.load(y, [0, 0], [16, 64]), 2), [0, 0], z)
"""
TYPES = dict.fromkeys(("x", "y", "z"), ((16, 64), INT32))


def run(compiled: Any) -> tuple[Tensor, Tensor, Tensor]:
    x = torch.randint(-1000, 1000, (16, 64), dtype=torch.int32)
    y, z = torch.zeros_like(x), torch.zeros_like(x)
    compiled(x, y, z)
    return x, y, z


ORDERED = {
    "pl.no_dep hides the tensor from the runtime": """
        def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
            y, first = pl.submit(slow, x, pl.no_dep(y))
            z, second = pl.submit(fast, pl.no_dep(y), z, deps=[first])
            return y, z
        """,
    "no_dep_args of pl.submit": """
        def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
            y, first = pl.submit(slow, x, y, no_dep_args=[y])
            second = pl.submit(quiet, y, z, no_dep_args=[y], deps=[None, first])
            return y, z
        """,
    "what pl.submit gives stands for its task": """
        def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
            first = pl.submit(slow, x, y, no_dep_args=[y])
            pl.submit(fast, y, z, no_dep_args=[y], deps=[first])
            return y, z
        """,
    "pl.at with as and deps": """
        def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[y], name_hint="slow_part") as first:
                tile = pl.load(x, [0, 0], [16, 64])
                for i in pl.range(2000):
                    tile = pl.add(tile, 1)
                y = pl.store(tile, [0, 0], y)
            with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[y], deps=[first],
                       allow_early_resolve=True, windowize=True):
                z = pl.store(pl.mul(pl.load(y, [0, 0], [16, 64]), 2), [0, 0], z)
            return y, z
        """,
    "a manual scope": """
        def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
            with pl.manual_scope():
                y, first = pl.submit(slow, x, y)
                z, _ = pl.submit(fast, y, z, deps=[first])
            return y, z
        """,
    "tasks around a manual scope are ordered by their tensors": """
        def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
            with pl.manual_scope():
                y = slow(x, y)
            z = fast(y, z)
            return y, z
        """,
    "blocks of pl.spmd": """
        def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
            with pl.manual_scope():
                with pl.spmd(4) as first:
                    i = pl.tile.get_block_idx() * 4
                    tile = pl.load(x, [i, 0], [4, 64])
                    for k in pl.range(2000):
                        tile = pl.add(tile, 1)
                    y = pl.store(tile, [i, 0], y)
                for i in pl.spmd(2, deps=[first]):
                    z = pl.store(pl.mul(pl.load(y, [8 - i * 8, 0], [8, 64]), 2), [8 - i * 8, 0], z)
            return y, z
        """,
}


@pytest.mark.conforms("language.65", "language.73", "language.75", "language.78")
@settings
@pytest.mark.parametrize("form", ORDERED)
def test_a_declared_order_holds_where_no_tensor_shows_it(
    compile_text: Any, form: str, platform: str, runtime: RuntimeKind
) -> None:
    compiled = compile_text(
        ORDERED[form], TYPES, (SLOW, FAST, NO_RESULT), platform=platform, runtime=runtime
    )
    for _ in range(5):
        x, y, z = run(compiled)
        assert torch.equal(y, x + 2000)
        assert torch.equal(z, y * 2)


@pytest.mark.conforms("language.76", "language.77")
@settings
def test_ids_are_kept_in_arrays_and_carried_by_loops(
    compile_text: Any, platform: str, runtime: RuntimeKind
) -> None:
    """A wave of tasks a step, each behind all of the wave before it, and nothing else ordered."""
    compiled = compile_text(
        """
        def entry(x: pl.Tensor, n: pl.Scalar[pl.INT64], y: pl.InOut[pl.Tensor]):
            ids: pl.Array[4, pl.TASK_ID] = pl.array.create(4, pl.TASK_ID)
            barrier: pl.TaskId = None
            with pl.manual_scope():
                for step in pl.range(n):
                    for i in pl.range(4):
                        with pl.at(level=pl.Level.CORE_GROUP, deps=[barrier]) as tid:
                            row = pl.load(y, [i, 0], [1, 64])
                            y = pl.store(pl.add(row, pl.load(x, [i, 0], [1, 64])), [i, 0], y)
                        ids[i] = tid
                    with pl.at(level=pl.Level.CORE_GROUP, deps=[ids, barrier]) as barrier:
                        y = pl.store(pl.mul(pl.load(y, [0, 0], [4, 64]), 3), [0, 0], y)
            return y
        """,
        {"x": ((4, 64), INT32), "n": INT64, "y": ((4, 64), INT32)},
        platform=platform,
        runtime=runtime,
    )
    x = torch.randint(-3, 3, (4, 64), dtype=torch.int32)
    y = torch.ones_like(x)
    compiled(x, 8, y)
    want = torch.ones_like(x)
    for _ in range(8):
        want = (want + x) * 3
    assert torch.equal(y, want)


@pytest.mark.conforms("language.75", "language.76")
@settings
def test_a_chain_through_an_array_keeps_its_order(
    compile_text: Any, platform: str, runtime: RuntimeKind
) -> None:
    compiled = compile_text(
        """
        def entry(x: pl.Tensor, n: pl.Scalar[pl.INT64], y: pl.InOut[pl.Tensor]):
            ids = pl.array.create(3, pl.TASK_ID)
            sizes = pl.array.create(3, pl.INT64)
            with pl.manual_scope():
                for step in pl.range(n):
                    pl.array.write(sizes, step % 3, step)
                    before = pl.array.read(ids, (step + 2) % 3)
                    with pl.at(level=pl.Level.CORE_GROUP, deps=[before]) as tid:
                        tile = pl.mul(pl.load(y, [0, 0], [4, 64]), 3)
                        tile = pl.add(tile, pl.load(x, [0, 0], [4, 64]))
                        y = pl.store(tile, [0, 0], y)
                    ids[step % 3] = tid
                total = sizes[0] + sizes[1] + sizes[2]
                with pl.at(level=pl.Level.CORE_GROUP, deps=[ids]):
                    y = pl.store(pl.add(pl.load(y, [0, 0], [4, 64]), pl.cast(total, pl.INT32)),
                                 [0, 0], y)
            return y
        """,
        {"x": ((4, 64), INT32), "n": INT64, "y": ((4, 64), INT32)},
        platform=platform,
        runtime=runtime,
    )
    x = torch.randint(-3, 3, (4, 64), dtype=torch.int32)
    y = torch.ones_like(x)
    compiled(x, 9, y)
    want = torch.ones_like(x)
    for _ in range(9):
        want = want * 3 + x
    assert torch.equal(y, want + 6 + 7 + 8)


@pytest.mark.conforms("language.76")
def test_an_index_past_an_array_ends_the_run_at_its_line(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def entry(n: pl.Scalar[pl.INT64], y: pl.InOut[pl.Tensor]):
            sizes = pl.array.create(4, pl.INT64)
            sizes[n] = 3
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.add(pl.load(y, [0, 0], [4, 64]), 1), [0, 0], y)
            return y
        """,
        {"n": INT64, "y": ((4, 64), FP32)},
    )
    y = torch.zeros(4, 64)
    for index in (4, -1):
        with pytest.raises(KernelFault, match=f"index {index} is outside the array of 4") as caught:
            compiled(index, y)
        assert (caught.value.unit, caught.value.line) == ("tests:entry", 3)
    compiled(3, y)
    assert torch.equal(y, torch.ones(4, 64))
