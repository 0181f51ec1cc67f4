"""Single elements of tensors and tiles, on a core and in orchestration."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.ir.dtypes import BF16, BOOL, FP16, FP32, INT8, INT16, INT32, INT64, UINT8, DataType
from pypto.runtime import KernelFault

Tensor = torch.Tensor

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
TORCH = {
    FP32: torch.float32,
    FP16: torch.float16,
    BF16: torch.bfloat16,
    INT8: torch.int8,
    INT16: torch.int16,
    INT32: torch.int32,
    INT64: torch.int64,
    UINT8: torch.uint8,
}


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def numbers(dtype: DataType, count: int) -> Tensor:
    return (torch.arange(count) * 7 % 11 - (0 if dtype is UINT8 else 5)).to(TORCH[dtype])


@pytest.mark.conforms("language.23", "language.98")
@PLATFORMS
@pytest.mark.parametrize("dtype", TORCH, ids=str)
def test_tensor_elements_of_every_type(dtype: DataType, platform: str, compile_text: Any) -> None:
    """Copied one by one: first in orchestration, then on a core."""
    compiled = compile_text(
        """
        def copy(x: pl.Tensor, here: pl.Out[pl.Tensor], there: pl.Out[pl.Tensor]):
            for i in pl.range(4):
                for j in pl.range(3):
                    here[i, j] = x[i, j]
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(4):
                    for j in pl.range(3):
                        pl.tensor.write(there, [i, j], pl.tensor.read(x, [i, j]))
            return here, there
        """,
        {"x": ((4, 3), dtype), "here": ((4, 3), dtype), "there": ((4, 3), dtype)},
        platform=platform,
    )
    x = numbers(dtype, 12).reshape(4, 3)
    here, there = compiled(x)
    assert torch.equal(here, x)
    assert torch.equal(there, x)


@PLATFORMS
def test_truth_values_in_orchestration(platform: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def choose(flags: pl.Tensor, x: pl.Tensor, out: pl.Out[pl.Tensor], done: pl.Out[pl.Tensor]):
            for i in pl.range(3):
                done[i] = not flags[i]
                if flags[i]:
                    with pl.at(level=pl.Level.CORE_GROUP):
                        out[i : i + 1, :] = pl.load(x, [i, 0], [1, 16])
            return out, done
        """,
        {"flags": ((3,), BOOL), "x": ((3, 16), FP32), "out": ((3, 16), FP32), "done": ((3,), BOOL)},
        platform=platform,
    )
    x, flags = randn(3, 16), torch.tensor([True, False, True])
    out, done = torch.zeros(3, 16), torch.zeros(3, dtype=torch.bool)
    compiled(flags, x, out, done)
    assert torch.equal(out, x * flags[:, None])
    assert torch.equal(done, ~flags)


@pytest.mark.conforms("language.25")
@PLATFORMS
def test_ranks_from_one_to_five(platform: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def ranks(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[0] = a[5] + b[1, 2, 3] + c[1, 0, 1, 2, 3]
            out[1] = pl.read(a, [6]) + pl.read(b, [0, 1, 2]) + pl.read(c, [0, 0, 0, 1, 2])
            return out
        """,
        {
            "a": ((8,), FP32),
            "b": ((2, 3, 4), FP32),
            "c": ((2, 1, 2, 3, 4), FP32),
            "out": ((2,), FP32),
        },
        platform=platform,
    )
    a, b, c = randn(8), randn(2, 3, 4, seed=1), randn(2, 1, 2, 3, 4, seed=2)
    out = compiled(a, b, c)
    expected = [a[5] + b[1, 2, 3] + c[1, 0, 1, 2, 3], a[6] + b[0, 1, 2] + c[0, 0, 0, 1, 2]]
    torch.testing.assert_close(out, torch.stack(expected))


@pytest.mark.conforms("language.98", "language.99")
@PLATFORMS
@pytest.mark.parametrize("dtype", [FP32, FP16, BF16, INT32, INT16, INT8], ids=str)
def test_tile_elements(dtype: DataType, platform: str, compile_text: Any) -> None:
    """A transposition by elements; ``kept`` is another tile and keeps its values."""
    compiled = compile_text(
        """
        def transpose(x: pl.Tensor, out: pl.Out[pl.Tensor], same: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [8, 8])
                kept = t
                for i in pl.range(8):
                    for j in pl.range(i):
                        upper = t[i, j]
                        t[i, j] = t[j, i]
                        pl.write(t, [j, i], upper)
                out[:] = t
                same[:] = kept
            return out, same
        """,
        {"x": ((8, 8), dtype), "out": ((8, 8), dtype), "same": ((8, 8), dtype)},
        platform=platform,
    )
    x = numbers(dtype, 64).reshape(8, 8)
    out, same = compiled(x)
    assert torch.equal(out, x.T)
    assert torch.equal(same, x)


@PLATFORMS
def test_tiles_of_one_column_and_of_one_row(platform: str, compile_text: Any) -> None:
    """A column lies otherwise in memory, which no index shows."""
    compiled = compile_text(
        """
        def sums(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                rows = pl.row_sum(x)
                row = pl.reshape(rows, [1, 8])
                for i in pl.range(8):
                    out[0, i] = rows[i, 0]
                    out[1, i] = row[0, i] * 2.0
                t = pl.load(x, [0, 0], [8, 1])
                t[3, 0] = 5.0
                out[2, 0:8] = pl.reshape(t, [1, 8])
            return out
        """,
        {"x": ((8, 4), FP32), "out": ((3, 8), FP32)},
        platform=platform,
    )
    x = randn(8, 4)
    column = x[:, 0].clone()
    column[3] = 5.0
    out = compiled(x)
    torch.testing.assert_close(out, torch.stack([x.sum(1), x.sum(1) * 2, column]))


@pytest.mark.conforms("language.99")
@PLATFORMS
def test_a_written_tile_is_carried_and_chosen(platform: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def fill(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [4, 8])
                for i in pl.range(n):
                    pl.tile.write(t, [i, i], 9.0)
                    if i == 1:
                        t[i, 0] += 1.5
                for (k,) in pl.while_(init_values=(0,)):
                    pl.cond(t[3, k] < 0.5)
                    t[3, k] = 0.5
                    k_next = pl.yield_(k + 1)
                out[0:4, :] = t
                out[4, 0] = pl.cast(k_next, pl.FP32)
            return out
        """,
        {"x": ((4, 8), FP32), "n": INT32, "out": ((5, 8), FP32)},
        platform=platform,
    )
    x = randn(4, 8)
    x[3, :3], x[3, 3] = -1.0, 2.0
    for n in (0, 1, 2):
        expected = torch.zeros(5, 8)
        expected[:4] = x
        for i in range(n):
            expected[i, i] = 9.0
            if i == 1:
                expected[i, 0] += 1.5
        expected[3, :3], expected[4, 0] = 0.5, 3.0
        out = torch.zeros(5, 8)
        compiled(x, n, out)
        assert torch.equal(out, expected)


@pytest.mark.conforms("language.98")
@PLATFORMS
def test_orchestration_waits_for_what_tasks_write(platform: str, compile_text: Any) -> None:
    """Each step reads what the task before it wrote: a bound, a condition and an offset."""
    compiled = compile_text(
        """
        def steps(x: pl.Tensor, state: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
            for i in pl.range(6):
                row = state[0]
                if row < 4:
                    for k in pl.range(state[1]):
                        with pl.at(level=pl.Level.CORE_GROUP):
                            old = pl.load(out, [row, 0], [1, 16])
                            t = pl.add(old, pl.load(x, [row, 0], [1, 16]))
                            out = pl.store(t, [row, 0], out)
                    with pl.at(level=pl.Level.CORE_GROUP):
                        state[0] = state[0] + 1
                        state[1] = state[1] * 2
                else:
                    state[1] = 100 + i
            return out
        """,
        {"x": ((4, 16), FP32), "state": ((2,), INT32), "out": ((4, 16), FP32)},
        platform=platform,
    )
    x, state = randn(4, 16), torch.tensor([0, 1], dtype=torch.int32)
    out = torch.zeros(4, 16)
    compiled(x, state, out)
    expected = torch.stack([sum((x[r] for _ in range(2**r)), torch.zeros(16)) for r in range(4)])
    assert torch.equal(out, expected)
    assert state.tolist() == [4, 105]


@PLATFORMS
@pytest.mark.parametrize("runtime", ["tensormap_and_ringbuffer", "host_build_graph"])
@pytest.mark.parametrize("where", ["core", "orchestration"])
def test_blocks_by_a_table(where: str, runtime: str, platform: str, compile_text: Any) -> None:
    """Pages of a cache, named by a table that the caller fills: nothing has to be waited for."""
    core = """
        def gather(cache: pl.Tensor, table: pl.Tensor, lengths: pl.Tensor,
                   out: pl.Out[pl.Tensor]):
            for b in pl.parallel(3):
                with pl.at(level=pl.Level.CORE_GROUP):
                    total = pl.full([4, 16], dtype=pl.FP32, value=0.0)
                    for j in pl.range(lengths[b]):
                        page = pl.read(table, [b, j])
                        total = pl.add(total, pl.load(cache, [page * 4, 0], [4, 16]))
                    out = pl.store(total, [b * 4, 0], out)
            return out
        """
    orchestration = """
        def gather(cache: pl.Tensor, table: pl.Tensor, lengths: pl.Tensor,
                   out: pl.Out[pl.Tensor]):
            for b in pl.parallel(3):
                with pl.at(level=pl.Level.CORE_GROUP):
                    out[b * 4 : b * 4 + 4, :] = pl.full([4, 16], dtype=pl.FP32, value=0.0)
                for j in pl.range(lengths[b]):
                    page = table[b, j]
                    with pl.at(level=pl.Level.CORE_GROUP):
                        old = pl.load(out, [b * 4, 0], [4, 16])
                        block = pl.load(cache, [page * 4, 0], [4, 16])
                        out = pl.store(pl.add(old, block), [b * 4, 0], out)
            return out
        """
    compiled = compile_text(
        {"core": core, "orchestration": orchestration}[where],
        {
            "cache": ((32, 16), FP32),
            "table": ((3, 4), INT32),
            "lengths": ((3,), INT32),
            "out": ((12, 16), FP32),
        },
        platform=platform,
        runtime=runtime,
    )
    cache = randn(32, 16)
    table = torch.tensor([[3, 1, 7, 0], [5, 5, 0, 0], [2, 0, 0, 0]], dtype=torch.int32)
    lengths = torch.tensor([4, 2, 0], dtype=torch.int32)
    expected = torch.zeros(12, 16)
    for b in range(3):
        for j in range(int(lengths[b])):
            expected[b * 4 : b * 4 + 4] += cache[int(table[b, j]) * 4 :][:4]
    assert torch.equal(compiled(cache, table, lengths), expected)


def test_a_built_graph_cannot_read_what_its_tasks_write(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def late(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(x, [0, 0], [4, 16]), [0, 0], out)
            n = out[1, 2]
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.mul(pl.load(x, [0, 0], [4, 16]), n), [0, 0], out)
            return out
        """,
        {"x": ((4, 16), FP32), "out": ((4, 16), FP32)},
        runtime="host_build_graph",
    )
    with pytest.raises(KernelFault) as caught:
        compiled(randn(4, 16))
    fault = caught.value
    assert (fault.unit, fault.line, fault.op) == ("tests:late", 4, "read")
    assert fault.reason == (
        "a task writes this element, and host_build_graph starts no task before the whole graph "
        "is built; use the tensormap_and_ringbuffer runtime"
    )


FAULTS = {
    "tensor on a core": ("y[0, 0] = x[n, 0]", True, "GetValue", "index 8 is outside dimension -2"),
    "tensor written on a core": ("y[0, n] = 1.0", True, "SetValue", "index 8 is outside"),
    "tile": ("y[0, 0] = t[0, n]", True, "GetValue", "element [0, 8] of a tile of [8, 8]"),
    "tile written": ("t[n, 0] = 1.0", True, "SetValue", "element [8, 0] of a tile of [8, 8]"),
    "orchestration": ("y[0, 0] = x[0, n]", False, "read", "index 8 is outside dimension 1 of ext"),
    "written in orchestration": ("y[n - 9, 0] = 1.0", False, "write", "index -1 is outside dimen"),
}


@pytest.mark.conforms("language.100")
@PLATFORMS
@pytest.mark.parametrize("name", FAULTS)
def test_an_index_out_of_range_is_a_fault_at_the_users_line(
    name: str, platform: str, compile_text: Any
) -> None:
    statement, on_core, op, reason = FAULTS[name]
    lines = ["def f(x: pl.Tensor, n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor]):"]
    if on_core:
        lines += ["    with pl.at(level=pl.Level.CORE_GROUP):"]
        lines += ["        t = pl.load(x, [0, 0], [8, 8])", f"        {statement}"]
        lines += ["        y[:] = t"]
    else:
        lines += ["    m = n", "    k = m", f"    {statement}"]
    lines += ["    return y"]
    types = {"x": ((8, 8), FP32), "n": INT32, "y": ((8, 8), FP32)}
    compiled = compile_text("\n".join(lines), types, platform=platform)
    with pytest.raises(KernelFault) as caught:
        compiled(randn(8, 8), 8)
    fault = caught.value
    assert (fault.unit, fault.line, fault.op) == ("tests:f", 4, op)
    assert reason in fault.reason


VALID_REGIONS = {
    "t = pl.load(x, [0, 0], [8, 8], valid_shape=[n, 8])": "valid region [-7, 8] does not fit",
    "t = pl.set_validshape(pl.load(x, [0, 0], [8, 8]), 8, n + 16)": "valid region [8, 9] does not",
}


@pytest.mark.parametrize("statement", VALID_REGIONS)
def test_a_valid_region_that_does_not_fit_is_a_fault_at_the_users_line(
    statement: str, compile_text: Any
) -> None:
    text = f"""
    def f(x: pl.Tensor, n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            {statement}
            y = pl.store(t, [0, 0], y)
        return y
    """
    compiled = compile_text(text, {"x": ((8, 8), FP32), "n": INT32, "y": ((8, 8), FP32)})
    with pytest.raises(KernelFault) as caught:
        compiled(randn(8, 8), -7)
    fault = caught.value
    assert (fault.unit, fault.line, fault.op) == ("tests:f", 3, "SetValidShape")
    assert VALID_REGIONS[statement] in fault.reason


@pytest.mark.conforms("language.64")
@PLATFORMS
def test_scalars_outlive_the_block_that_computes_them(platform: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def halves(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                half = n // 2
                scale = pl.cast(half, pl.FP32) + 0.5
                rows = x.shape[0]
                out = pl.store(pl.mul(pl.load(x, [0, 0], [1, 16]), scale), [0, 0], out)
            for i in pl.range(1, half):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.mul(pl.load(x, [i % rows, 0], [1, 16]), scale)
                    out = pl.store(t, [i, 0], out)
            return out
        """,
        {"x": (("rows", 16), FP32), "n": INT32, "out": ((4, 16), FP32)},
        platform=platform,
    )
    x = randn(2, 16)
    out = torch.zeros(4, 16)
    compiled(x, 8, out)
    assert torch.equal(out, torch.stack([x[0], x[1], x[0], x[1]]) * 4.5)


@PLATFORMS
@pytest.mark.parametrize("rows", [8, 512])
def test_elements_of_computed_values(rows: int, platform: str, compile_text: Any) -> None:
    """They are tiles where they fit on chip, and memory of their own where they do not."""
    compiled = compile_text(
        """
        def values(x: pl.Tensor, n: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, 1.0)
                scale = y[2, 3]
                y[n[0], 4] = 5.0
                for i in pl.range(n[1]):
                    y = pl.mul(y, scale)
                out[:] = y
                corner = out[0, 0]
                out[0, 0] = corner + 1.0
            return out
        """,
        {"x": ((rows, 256), FP32), "n": ((2,), INT32), "out": ((rows, 256), FP32)},
        platform=platform,
    )
    x, n = randn(rows, 256), torch.tensor([1, 2], dtype=torch.int32)
    expected = x + 1.0
    scale = expected[2, 3].clone()
    expected[1, 4] = 5.0
    expected = expected * scale * scale
    expected[0, 0] += 1.0
    torch.testing.assert_close(compiled(x, n), expected)
