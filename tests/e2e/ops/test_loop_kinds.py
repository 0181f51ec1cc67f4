"""Every kind of loop, on a core and in orchestration, with every kind of value that it carries."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import BOOL, FP32, INT32, INT64
from pypto.runtime import RunConfig

Tensor = torch.Tensor

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
# What a loop runs over: over pl.unroll nothing is carried by init_values.
COUNTED = ("pl.range(n{})", "pl.parallel(n{})", "pl.pipeline(n, stage=3{})")


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.conforms("language.83", "language.84", "language.86")
@PLATFORMS
@pytest.mark.parametrize("loop", COUNTED)
def test_explicit_carried_values_on_a_core(loop: str, platform: str, compile_text: Any) -> None:
    """A tile, a scalar and a tensor-level value; the initial names keep what they had."""
    compiled = compile_text(
        f"""
        def carry(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor],
                  count: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                start = pl.load(x, [0, 0], [8, 16])
                whole = pl.add(x, 0.0)
                for i, (t, k, w) in {loop.format(", init_values=[start, 3, whole]")}:
                    last, total, sum_ = pl.yield_(pl.add(t, 1.0), k + i, pl.add(w, w))
                out[0:8, :] = last
                out[8:16, :] = start
                out[16:24, :] = sum_
                count[0] = pl.cast(total, pl.INT32)
            return out, count
        """,
        {"x": ((8, 16), FP32), "n": INT32, "out": ((24, 16), FP32), "count": ((1,), INT32)},
        platform=platform,
    )
    x = randn(8, 16)
    for n in (0, 1, 4):
        out, count = compiled(x, n)
        expected = x
        for _ in range(n):
            expected = expected + 1.0
        assert torch.equal(out, torch.cat([expected, x, x * 2**n]))
        assert count.tolist() == [3 + sum(range(n))]


@pytest.mark.conforms("language.83", "language.87")
@PLATFORMS
@pytest.mark.parametrize("loop", COUNTED)
def test_carried_values_in_orchestration(loop: str, platform: str, compile_text: Any) -> None:
    compiled = compile_text(
        f"""
        def carry(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
            for i, (row, written) in {loop.format(", init_values=(0, out)")}:
                with pl.at(level=pl.Level.CORE_GROUP):
                    written = pl.store(pl.load(x, [i, 0], [1, 16]), [row, 0], written)
                row_after, out_after = pl.yield_(row + 2, written)
            with pl.at(level=pl.Level.CORE_GROUP):
                out_after[row_after : row_after + 1, :] = pl.full([1, 16], pl.FP32, 7.0)
            return out
        """,
        {"x": ((4, 16), FP32), "n": INT32, "out": ((9, 16), FP32)},
        platform=platform,
    )
    x = randn(4, 16)
    for n in (0, 1, 4):
        out = torch.zeros(9, 16)
        compiled(x, n, out)
        expected = torch.zeros(9, 16)
        expected[0 : 2 * n : 2] = x[:n]
        expected[2 * n] = 7.0
        assert torch.equal(out, expected)


@pytest.mark.conforms("language.82")
@PLATFORMS
def test_bounds_of_every_kind_and_nesting(platform: str, compile_text: Any) -> None:
    """Constants, closure-like constants, run-time scalars and other loops' variables."""
    compiled = compile_text(
        """
        def nest(n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
            rows = 4
            with pl.at(level=pl.Level.CORE_GROUP):
                total = 0
                for i in pl.parallel(0, rows, 2):
                    for j in pl.pipeline(i, n, stage=2):
                        for k in pl.range(j - 1, 5):
                            for u in pl.unroll(1, 6, 2):
                                total = total + i * 1000 + j * 100 + k * 10 + u
                out[0] = pl.cast(total, pl.INT32)
            return out
        """,
        {"n": INT32, "out": ((1,), INT32)},
        platform=platform,
    )
    for n in (-3, 0, 2, 4):
        expected = sum(
            i * 1000 + j * 100 + k * 10 + u
            for i in range(0, 4, 2)
            for j in range(i, n)
            for k in range(j - 1, 5)
            for u in range(1, 6, 2)
        )
        assert compiled(n).tolist() == [expected]


@pytest.mark.conforms("language.88")
@PLATFORMS
def test_unrolled_loops_write_constants_out(platform: str, compile_text: Any) -> None:
    """In orchestration each iteration has shapes of its own; on a core, tiles of its own."""
    compiled = compile_text(
        """
        def unrolled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            at = 0
            for size in pl.unroll(8, 25, 8):
                with pl.at(level=pl.Level.CORE_GROUP):
                    part = pl.load(x, [0, 0], [size, 16])
                    for twice in pl.unroll(2):
                        part = pl.add(part, float(size + twice))
                    out = pl.store(part, [at, 0], out)
                at += size
            return out
        """,
        {"x": ((24, 16), FP32), "out": ((48, 16), FP32)},
        platform=platform,
    )
    x = randn(24, 16)
    expected = torch.cat([x[:s] + float(s) + float(s + 1) for s in (8, 16, 24)])
    assert torch.equal(compiled(x), expected)


@pytest.mark.conforms("language.88")
@PLATFORMS
def test_unrolled_loops_without_iterations(platform: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def unrolled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [8, 16])
                for i in pl.unroll(4, 4):
                    t = pl.add(t, 1.0)
                out[:] = t
            return out
        """,
        {"x": ((8, 16), FP32), "out": ((8, 16), FP32)},
        platform=platform,
    )
    x = randn(8, 16)
    assert torch.equal(compiled(x), x)


@pytest.mark.conforms("language.89")
@PLATFORMS
def test_while_on_a_core(platform: str, compile_text: Any) -> None:
    """Halve until small: a condition on a scalar, a tile carried along and a name rebound."""
    compiled = compile_text(
        """
        def halve(x: pl.Tensor, limit: pl.Scalar[pl.FP32], start: pl.Scalar[pl.FP32],
                  out: pl.Out[pl.Tensor], steps: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [8, 16])
                count = 0
                for (s, u) in pl.while_(init_values=(start, t)):
                    pl.cond(s > limit)
                    count = count + 1
                    s_out, u_out = pl.yield_(s * 0.5, pl.mul(u, 0.5))
                out[0:8, :] = u_out
                out[8:16, :] = t
                steps[0] = s_out
                steps[1] = pl.cast(count, pl.FP32)
            return out, steps
        """,
        {
            "x": ((8, 16), FP32),
            "limit": FP32,
            "start": FP32,
            "out": ((16, 16), FP32),
            "steps": ((2,), FP32),
        },
        platform=platform,
    )
    x = randn(8, 16)
    for start, count in ((8.0, 4), (0.75, 1), (0.5, 0)):
        out, steps = compiled(x, 0.5, start)
        assert steps.tolist() == [start * 0.5**count, float(count)]
        assert torch.equal(out, torch.cat([x * 0.5**count, x]))


@pytest.mark.conforms("language.89")
@PLATFORMS
@pytest.mark.parametrize("runtime", ["tensormap_and_ringbuffer", "host_build_graph"])
def test_while_in_orchestration(runtime: str, platform: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def powers(n: pl.Scalar[pl.INT32], x: pl.Tensor, out: pl.Out[pl.Tensor]):
            row = 0
            for (k,) in pl.while_(init_values=(1,)):
                less = k < n
                pl.cond(less and row < 8)
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.mul(pl.load(x, [0, 0], [1, 16]), pl.cast(k, pl.FP32))
                    out = pl.store(t, [row, 0], out)
                row = row + 1
                k_next = pl.yield_(k * 2)
            with pl.at(level=pl.Level.CORE_GROUP):
                out[8, 0:16] = pl.full([1, 16], pl.FP32, 1.0)
                out[8, 0] = pl.cast(k_next, pl.FP32)
            return out
        """,
        {"n": INT32, "x": ((1, 16), FP32), "out": ((9, 16), FP32)},
        platform=platform,
        runtime=runtime,
    )
    x = randn(1, 16)
    for n in (0, 1, 2, 9, 100000):
        out = torch.zeros(9, 16)
        compiled(n, x, out)
        expected, k, row = torch.zeros(9, 16), 1, 0
        while k < n and row < 8:
            expected[row], k, row = x[0] * k, k * 2, row + 1
        expected[8] = 1.0
        expected[8, 0] = float(k)
        assert torch.equal(out, expected)


@pytest.mark.conforms("language.89")
@PLATFORMS
def test_while_nested_in_loops_and_branches(platform: str, compile_text: Any) -> None:
    """The greatest common divisor, by subtraction, of each row's two numbers."""
    compiled = compile_text(
        """
        def gcd(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(4):
                    for (a, b) in pl.while_(init_values=(x[i, 0], x[i, 1])):
                        pl.cond(a != b)
                        if a > b:
                            a2, b2 = pl.yield_(a - b, b)
                        else:
                            a2, b2 = pl.yield_(a, b - a)
                        first, second = pl.yield_(a2, b2)
                    out[i] = first
            return out
        """,
        {"x": ((4, 2), INT32), "out": ((4,), INT32)},
        platform=platform,
    )
    x = torch.tensor([[12, 18], [7, 7], [1, 9], [100, 75]], dtype=torch.int32)
    assert compiled(x).tolist() == [6, 7, 1, 25]


@pytest.mark.conforms("language.91")
@PLATFORMS
@pytest.mark.parametrize("where", ["core", "orchestration"])
def test_branches_yield(where: str, platform: str, compile_text: Any) -> None:
    """A condition that is a parameter; yields by name, elif, and a branch without else."""
    core = """
        def choose(flag: pl.Scalar[pl.BOOL], n: pl.Scalar[pl.INT32], x: pl.Tensor,
                   out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [1, 16])
                if flag:
                    k, u = pl.yield_(n + 1, pl.add(t, 1.0))
                elif n > 5:
                    k, u = pl.yield_(n * 2, pl.mul(t, 2.0))
                else:
                    k, u = pl.yield_(0, t)
                if n == 3:
                    u = pl.neg(u)
                out[0:1, :] = u
                out[1, 0] = pl.cast(k, pl.FP32)
            return out
        """
    orchestration = """
        def choose(flag: pl.Scalar[pl.BOOL], n: pl.Scalar[pl.INT32], x: pl.Tensor,
                   out: pl.Out[pl.Tensor]):
            if flag:
                k, f = pl.yield_(n + 1, 1.0)
            elif n > 5:
                k, f = pl.yield_(n * 2, 2.0)
            else:
                k, f = pl.yield_(0, 3.0)
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [1, 16])
                if f == 1.0:
                    t = pl.add(t, 1.0)
                if f == 2.0:
                    t = pl.mul(t, 2.0)
                if n == 3:
                    t = pl.neg(t)
                out[0:1, :] = t
                out[1, 0] = pl.cast(k, pl.FP32)
            return out
        """
    compiled = compile_text(
        {"core": core, "orchestration": orchestration}[where],
        {"flag": BOOL, "n": INT32, "x": ((1, 16), FP32), "out": ((2, 16), FP32)},
        platform=platform,
    )
    x = randn(1, 16)
    for flag in (True, False):
        for n in (3, 7):
            out = torch.zeros(2, 16)
            compiled(flag, n, x, out)
            value, k = (x + 1, n + 1) if flag else (x * 2, n * 2) if n > 5 else (x, 0)
            assert torch.equal(out[0:1], -value if n == 3 else value)
            assert out[1, 0] == k


@pytest.mark.conforms("language.89")
@PLATFORMS
def test_a_condition_sees_what_the_body_stored(platform: str, compile_text: Any) -> None:
    """What was loaded before the loop is loaded again for each look at the condition."""
    compiled = compile_text(
        """
        def grow(x: pl.Tensor, out: pl.Out[pl.Tensor], steps: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = x
                first = pl.row_sum(out)
                for (k,) in pl.while_(init_values=(0,)):
                    pl.cond(pl.row_sum(out)[0, 0] < first[0, 0] + 40.0)
                    out[:] = pl.add(out, 1.0)
                    count = pl.yield_(k + 1)
                steps[0] = pl.cast(count, pl.INT32)
            return out, steps
        """,
        {"x": ((4, 16), FP32), "out": ((4, 16), FP32), "steps": ((1,), INT32)},
        platform=platform,
    )
    x = randn(4, 16)
    out, steps = compiled(x)
    assert steps.tolist() == [3]
    torch.testing.assert_close(out, x + 3.0)


@pytest.mark.conforms("language.89")
@PLATFORMS
@pytest.mark.parametrize("carries_a_tensor", [False, True])
def test_what_a_condition_creates_is_freed_in_every_round(
    carries_a_tensor: bool, platform: str, compile_text: Any
) -> None:
    """200 rounds that make 4 KB each, in a heap of 16 KB."""
    kept = ("(i, kept)", "(0, x)", "j, last = pl.yield_(i + 1, kept)")
    alone = ("(i,)", "(0,)", "j = pl.yield_(i + 1)")
    names, values, final = kept if carries_a_tensor else alone
    compiled = compile_text(
        f"""
        def counted(x: pl.Tensor, n: pl.Scalar[pl.FP32], out: pl.InOut[pl.Tensor]):
            for {names} in pl.while_(init_values={values}):
                t = pl.create_tensor([1, 1024], pl.FP32)
                t = shifted(x, pl.cast(i, pl.INT32), t)
                pl.cond(pl.read(t, [0, 0]) < n)
                {final}
            pl.write(out, [0], j)
            return out
        """,
        {"x": ((1, 1024), FP32), "n": FP32, "out": ((1,), INT64)},
        helpers=(
            """
            def shifted(x: pl.Tensor, i: pl.Scalar[pl.INT32], t: pl.Out[pl.Tensor]):
                moved = pl.add(pl.load(x, [0, 0], [1, 1024]), pl.cast(i, pl.FP32))
                return pl.store(moved, [0, 0], t)
            """,
        ),
        platform=platform,
    )
    out = torch.zeros(1, dtype=torch.int64)
    arch = BackendType.Ascend950 if platform == "a5sim" else BackendType.Ascend910B
    config = RunConfig(arch=arch, ring_heap=16384)
    compiled(torch.zeros(1, 1024), 200.0, out, config=config)
    assert out.item() == 200
