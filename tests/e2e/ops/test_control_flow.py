"""Loops, branches, scalars and run-time extents through the whole chain."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.ir.dtypes import BF16, BOOL, FP16, FP32, INT32, INT64
from pypto.runtime import KernelFault

Tensor = torch.Tensor


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.conforms("language.68")
@pytest.mark.parametrize("runtime", ["tensormap_and_ringbuffer", "host_build_graph"])
def test_tasks_of_a_chain_run_in_order(runtime: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def chain(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            a = pl.create_tensor([8, 16], dtype=pl.FP32)
            for i in pl.range(20):
                with pl.at(level=pl.Level.CORE_GROUP):
                    if i == 0:
                        a = pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], a)
                    else:
                        a = pl.store(pl.add(pl.load(a, [0, 0], [8, 16]), 1.0), [0, 0], a)
                b = pl.create_tensor([8, 16], dtype=pl.FP32)
                with pl.at(level=pl.Level.CORE_GROUP):
                    b = pl.store(pl.mul(pl.load(a, [0, 0], [8, 16]), 2.0), [0, 0], b)
                with pl.at(level=pl.Level.CORE_GROUP):
                    out = pl.store(pl.load(b, [0, 0], [8, 16]), [0, 0], out)
            return out
        """,
        {"x": ((8, 16), FP32), "out": ((8, 16), FP32)},
        runtime=runtime,
    )
    x = randn(8, 16)
    expected = x.clone()
    for _ in range(19):
        expected = expected + 1.0
    for _ in range(3):
        assert torch.equal(compiled(x), expected * 2)


@pytest.mark.conforms("language.44")
def test_tiles_swap_and_rotate_in_loops(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def rotate(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                a = pl.load(x, [0, 0], [4, 8])
                b = pl.load(x, [4, 0], [4, 8])
                c = pl.load(x, [8, 0], [4, 8])
                total = pl.full([4, 8], dtype=pl.FP32, value=0.0)
                for i in pl.range(n):
                    a, b = b, a
                    if i % 2 == 0:
                        b, c = c, b
                    else:
                        a = pl.neg(a)
                    total = pl.add(total, pl.mul(a, 2.0))
                out = pl.store(a, [0, 0], out)
                out = pl.store(b, [4, 0], out)
                out = pl.store(c, [8, 0], out)
                out = pl.store(total, [12, 0], out)
            return out
        """,
        {"x": ((12, 8), FP32), "n": INT32, "out": ((16, 8), FP32)},
    )
    x = randn(12, 8)
    for n in (0, 1, 2, 5):
        a, b, c, total = x[:4], x[4:8], x[8:], torch.zeros(4, 8)
        for i in range(n):
            a, b = b, a
            if i % 2 == 0:
                b, c = c, b
            else:
                a = -a
            total = total + a * 2.0
        out = torch.full((16, 8), 9.0)
        compiled(x, n, out)
        torch.testing.assert_close(out, torch.cat((a, b, c, total)))


@pytest.mark.conforms("language.30")
@pytest.mark.parametrize("rows", [1, 16, 37])
def test_extents_of_the_call_bound_loops_and_valid_regions(rows: int, compile_text: Any) -> None:
    compiled = _dynamic(compile_text)
    x = randn(rows, 24, seed=rows)
    out = torch.empty(rows, 24)
    compiled(x, 0.25, out)
    shifted = torch.exp((x + 0.25) - (x + 0.25).amax(1, keepdim=True))
    torch.testing.assert_close(out, shifted / shifted.sum(1, keepdim=True))


_COMPILED: dict[str, Any] = {}


def _dynamic(compile_text: Any) -> Any:
    if "dynamic" not in _COMPILED:
        _COMPILED["dynamic"] = compile_text(
            """
            def rows(x: pl.Tensor, bias: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
                n = pl.tensor.dim(x, 0)
                moved = pl.create_tensor([n, 24], dtype=pl.FP32)
                for i in pl.range(0, n, 16):
                    count = pl.min(n - i, 16)
                    with pl.at(level=pl.Level.CORE_GROUP):
                        t = pl.load(x, [i, 0], [16, 24], valid_shape=[count, 24])
                        moved = pl.store(pl.add(t, bias), [i, 0], moved)
                    with pl.at(level=pl.Level.CORE_GROUP):
                        t = pl.load(moved, [i, 0], [16, 24], valid_shape=[count, 24])
                        tmp = pl.create_tile([16, 24], dtype=pl.FP32)
                        e = pl.exp(pl.row_expand_sub(t, pl.row_max(t, tmp)))
                        e = pl.row_expand_div(e, pl.row_sum(e, tmp))
                        out = pl.store(e, [i, 0], out)
                return out
            """,
            {"x": (("N", 24), FP32), "bias": FP32, "out": (("N", 24), FP32)},
        )
    return _COMPILED["dynamic"]


def test_scalars_keep_their_type_and_python_semantics(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def scalars(x: pl.Tensor, i: pl.Scalar[pl.INT32], j: pl.Scalar[pl.INT64],
                    f: pl.Scalar[pl.FP32], h: pl.Scalar[pl.FP16], g: pl.Scalar[pl.BF16],
                    flag: pl.Scalar[pl.BOOL], xh: pl.Tensor, xg: pl.Tensor,
                    out: pl.Out[pl.Tensor], oh: pl.Out[pl.Tensor], og: pl.Out[pl.Tensor]):
            outside = (j // 3) % 5
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [1, 8])
                inside = (i // 3) % 5 + i % 7
                a = pl.cast(outside * 100 + inside, pl.FP32)
                s = pl.add(t, a + f)
                if flag:
                    s = pl.neg(s)
                out = pl.store(s, [0, 0], out)
                oh = pl.store(pl.mul(pl.load(xh, [0, 0], [1, 8]), h), [0, 0], oh)
                og = pl.store(pl.mul(pl.load(xg, [0, 0], [1, 8]), g), [0, 0], og)
            return out, oh, og
        """,
        {
            "x": ((1, 8), FP32),
            "i": INT32,
            "j": INT64,
            "f": FP32,
            "h": FP16,
            "g": BF16,
            "flag": BOOL,
            "xh": ((1, 8), FP16),
            "xg": ((1, 8), BF16),
            "out": ((1, 8), FP32),
            "oh": ((1, 8), FP16),
            "og": ((1, 8), BF16),
        },
    )
    x = randn(1, 8)
    for i, j, flag in (
        (7, 11, False),
        (-7, -11, True),
        (-(2**31), 2**40, True),
        (2**31 - 1, -1, False),
    ):
        out, oh, og = compiled(x, i, j, 0.5, 1.5, -0.75, flag, x.half(), x.bfloat16())
        number = ((j // 3) % 5) * 100 + (i // 3) % 5 + i % 7
        expected = x + (float(number) + 0.5)
        torch.testing.assert_close(out, -expected if flag else expected)
        assert torch.equal(oh, x.half() * 1.5)
        assert torch.equal(og, x.bfloat16() * -0.75)


@pytest.mark.conforms("language.111")
def test_helpers_write_where_the_caller_says(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def both(x: pl.Tensor, out: pl.Out[pl.Tensor], more: pl.Out[pl.Tensor]):
            staged = pl.create_tensor([8, 8], dtype=pl.FP32)
            staged = double(x, staged)
            out, more = split(staged, out, more)
            more = double(more, more)
            return out, more
        """,
        {"x": ((8, 8), FP32), "out": ((8, 8), FP32), "more": ((8, 8), FP32)},
        helpers=(
            """
            def double(a: pl.Tensor, b: pl.Out[pl.Tensor]):
                b[:] = pl.add(a, a)
                return b
            """,
            """
            def split(a: pl.Tensor, b: pl.Out[pl.Tensor], c: pl.Out[pl.Tensor]):
                t = pl.load(a, [0, 0], [8, 8])
                b = pl.store(pl.add(t, 1.0), [0, 0], b)
                c = pl.store(pl.sub(t, 1.0), [0, 0], c)
                return b, c
            """,
        ),
    )
    x = randn(8, 8)
    out, more = compiled(x)
    torch.testing.assert_close(out, 2 * x + 1)
    torch.testing.assert_close(more, 2 * (2 * x - 1))


def test_the_other_architecture_computes_the_same(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.exp(pl.matmul(a, b))
            return out
        """,
        {"a": ((9, 12), FP32), "b": ((12, 5), FP32), "out": ((9, 5), FP32)},
        platform="a5sim",
    )
    a, b = randn(9, 12, seed=1) / 4, randn(12, 5, seed=2) / 4
    torch.testing.assert_close(compiled(a, b), torch.exp(a @ b))


@pytest.mark.conforms("language.131")
def test_a_load_out_of_range_is_a_fault_at_the_users_line(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def beyond(x: pl.Tensor, i: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [i, 0], [4, 8])
                out = pl.store(t, [0, 0], out)
            return out
        """,
        {"x": ((12, 8), FP32), "i": INT64, "out": ((4, 8), FP32)},
    )
    x = randn(12, 8)
    assert torch.equal(compiled(x, 8), x[8:])
    for offset in (9, -1, 2**40):
        with pytest.raises(KernelFault) as caught:
            compiled(x, offset)
        assert caught.value.unit == "tests:beyond"
        assert caught.value.line == 3
        assert str(offset) in str(caught.value)
    assert torch.equal(compiled(x, 0), x[:4])


def test_division_by_zero_in_the_orchestration_ends_the_run_not_the_process(
    compile_text: Any,
) -> None:
    compiled = compile_text(
        """
        def divide(x: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
            for i in pl.range(8 // n):
                with pl.at(level=pl.Level.CORE_GROUP):
                    out = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)
            return out
        """,
        {"x": ((4, 8), FP32), "n": INT64, "out": ((4, 8), FP32)},
    )
    x = randn(4, 8)
    assert torch.equal(compiled(x, 2), x)
    with pytest.raises(KernelFault, match="division by zero"):
        compiled(x, 0)
    assert torch.equal(compiled(x, 1), x)
