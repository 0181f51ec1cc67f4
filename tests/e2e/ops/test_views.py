"""Parts of tensors in orchestration, which name the same memory, against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import BF16, FP32, INDEX, INT8, INT32, INT64
from pypto.runtime import KernelFault

Tensor = torch.Tensor

TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}
RUNTIMES = ("tensormap_and_ringbuffer", "host_build_graph")

DOUBLED = """
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = pl.add(x, x)
    return out
"""


def counted(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7 + 3) % 101 - 50).reshape(shape).to(dtype)


# What is doubled of a [20, 24], c [4, 9, 24] and v [40] with the run-time offset n = 5.
PARTS = {
    "rows": ("a[3:11]", lambda a, c, v: a[3:11]),
    "open": ("a[12:, 8:]", lambda a, c, v: a[12:, 8:]),
    "moved": ("a[n : n + 8, :]", lambda a, c, v: a[5:13]),
    "columns": ("a[:, n : n + 8]", lambda a, c, v: a[:, 5:13]),
    "row": ("a[n]", lambda a, c, v: a[5]),
    "column": ("a[:, 3]", lambda a, c, v: a[:, 3]),
    "plane": ("c[n - 4]", lambda a, c, v: c[1]),
    "of_plane": ("c[2, 2:7, n:n + 16]", lambda a, c, v: c[2, 2:7, 5:21]),
    "across": ("c[:, 4, 2:18]", lambda a, c, v: c[:, 4, 2:18]),
    "line": ("v[n : n + 30]", lambda a, c, v: v[5:35]),
    "called": ("pl.slice(a, [4, 6], [n, 2])", lambda a, c, v: a[5:9, 2:8]),
    "last": ("pl.slice(c, [9, 24], [3, 0, 0])", lambda a, c, v: c[3:4]),
    "dropped": ("pl.slice(c, [4, 1, 8], [0, n, 16], drop_dims=[1])", lambda a, c, v: c[:, 5, 16:]),
    "nested": ("a[2:18, 4:20][n:n + 3, 1:9]", lambda a, c, v: a[7:10, 5:13]),
    "dropped_twice": ("c[1][:, 2][3:9]", lambda a, c, v: c[1, 3:9, 2]),
    "shaped": ("pl.reshape(a[4:8], [8, 12])", lambda a, c, v: a[4:8].reshape(8, 12)),
    "shaped_row": ("pl.reshape(a[:, 4:12][n], [2, 4])", lambda a, c, v: a[5, 4:12].reshape(2, 4)),
}  # fmt: skip


@pytest.mark.conforms("language.107")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [FP32, BF16, INT8], ids=str)
def test_a_kernel_takes_parts(dtype: Any, target: str, compile_text: Any) -> None:
    if target == "a5" and dtype != FP32:
        pytest.skip("one type is enough on the other target")
    kind = getattr(torch, dtype.torch_name)
    given = [counted(20, 24, dtype=kind), counted(4, 9, 24, dtype=kind), counted(40, dtype=kind)]
    types: dict[str, object] = {"n": INDEX, "a": ((20, 24), dtype), "c": ((4, 9, 24), dtype)}
    types |= {"v": ((40,), dtype)}
    expected = {name: take(*given) for name, (_, take) in PARTS.items()}
    # A [1, 9, 24] whole is a tensor of three dimensions.
    expected["last"] = expected["last"].reshape(1, 9, 24)
    types |= {f"out_{name}": (tuple(value.shape), dtype) for name, value in expected.items()}
    params = ["n: pl.INDEX", *(f"{p}: pl.Tensor" for p in "acv")]
    params += [f"out_{name}: pl.Out[pl.Tensor]" for name in PARTS]
    lines = [f"    doubled({PARTS[name][0]}, out_{name})" for name in PARTS]
    text = f"def parts({', '.join(params)}):\n" + "\n".join(lines)
    compiled = compile_text(text, types, (DOUBLED,), backend_type=TARGETS[target])
    outputs = {name: torch.zeros(value.shape, dtype=kind) for name, value in expected.items()}
    compiled(5, *given, *outputs.values())
    for name, output in outputs.items():
        assert torch.equal(output, expected[name] + expected[name]), name


@pytest.mark.conforms("language.107")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_is_written_to_a_part_reaches_the_whole(
    runtime: str, target: str, compile_text: Any
) -> None:
    compiled = compile_text(
        """
        def through(a: pl.Tensor, cache: pl.Tensor, n: pl.Scalar[pl.INT32],
                    out: pl.Out[pl.Tensor]):
            for i in pl.range(4):
                doubled(a[i * 8 : i * 8 + 8, 0:16], out[i * 8 : i * 8 + 8, 16:32])
            left = out[:, 0:16]
            right = out[:, 16:32]
            with pl.at(level=pl.Level.CORE_GROUP):
                left[:] = pl.add(right, 1.0)
            head = cache[n]
            head = doubled(left[0:8], head)
            staged = pl.create_tensor([2, 8, 16], dtype=pl.FP32)
            doubled(head, staged[1])
            doubled(staged[1], cache[n + 1])
            return out
        """,
        {
            "a": ((32, 32), FP32),
            "cache": ((4, 8, 16), FP32),
            "n": INT32,
            "out": ((32, 32), FP32),
        },
        (DOUBLED,),
        runtime=runtime,
        backend_type=TARGETS[target],
    )
    a, cache = counted(32, 32), counted(4, 8, 16)
    expected = torch.cat([a[:, :16] * 2 + 1, a[:, :16] * 2], dim=1)
    written = cache.clone()
    written[2] = expected[:8, :16] * 2
    written[3] = expected[:8, :16] * 8
    out = torch.zeros(32, 32)
    compiled(a, cache, 2, out)
    assert torch.equal(out, expected)
    assert torch.equal(cache, written)


@pytest.mark.conforms("language.68")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_tasks_are_ordered_by_the_parts_that_they_share(runtime: str, compile_text: Any) -> None:
    """Read after write, write after read and write after write, through different parts."""
    compiled = compile_text(
        """
        def ordered(x: pl.InOut[pl.Tensor]):
            for i in pl.range(50):
                doubled(x[0:16], x[16:32])
                with pl.at(level=pl.Level.CORE_GROUP):
                    column = x[8:24, 0:32]
                    x[8:24, 0:32] = pl.mul(column, 0.5)
                upper = x[4:12, 8:24]
                lower = x[20:28, 8:24]
                with pl.at(level=pl.Level.CORE_GROUP):
                    upper[:] = pl.sub(lower, upper)
                doubled(x[16:32, 4:8], x[0:16, 28:32])
        """,
        {"x": ((32, 32), FP32)},
        (DOUBLED,),
        runtime=runtime,
    )
    x = torch.randn(32, 32, generator=torch.Generator().manual_seed(0))
    expected = x.clone()
    for _ in range(50):
        expected[16:32] = expected[0:16] + expected[0:16]
        expected[8:24] *= 0.5
        expected[4:12, 8:24] = expected[20:28, 8:24] - expected[4:12, 8:24]
        expected[0:16, 28:32] = expected[16:32, 4:8] * 2
    compiled(x)
    assert torch.equal(x, expected)


def test_a_kernel_is_compiled_once_for_whole_tensors_and_for_parts(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def both(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor],
                 more: pl.Out[pl.Tensor], last: pl.Out[pl.Tensor]):
            doubled(b, more)
            doubled(a[:, 3:19], out)
            doubled(c[:, :, 3], last)
            doubled(b, a[:, 16:32])
            return out, more, last
        """,
        {
            "a": ((8, 32), FP32),
            "b": ((8, 16), FP32),
            "c": ((8, 16, 5), FP32),
            "out": ((8, 16), FP32),
            "more": ((8, 16), FP32),
            "last": ((8, 16), FP32),
        },
        (DOUBLED,),
    )
    assert [path.name for path in (compiled.output_dir / "kernels" / "aiv").iterdir()] == [
        "doubled.cpp"
    ]
    a, b, c = counted(8, 32), counted(8, 16), counted(8, 16, 5)
    expected = a[:, 3:19] * 2
    out, more, last = compiled(a, b, c)
    assert torch.equal(out, expected)
    assert torch.equal(last, c[:, :, 3] * 2)
    assert torch.equal(more, b * 2)
    assert torch.equal(a[:, 16:], b * 2)


@pytest.mark.conforms("language.107")
def test_parts_may_have_run_time_extents(compile_text: Any) -> None:
    rows = """
    def rows(x: pl.Tensor[[pl.dynamic("R"), 16], pl.FP32], out: pl.Out[pl.Tensor]):
        for i in pl.range(x.shape[0]):
            tile = pl.load(x, [i, 0], [1, 16])
            out = pl.store(pl.add(tile, tile), [i, 0], out)
        return out
    """
    compiled = compile_text(
        """
        def cut(x: pl.Tensor, n: pl.Scalar[pl.INT32], m: pl.Scalar[pl.INT64],
                out: pl.Out[pl.Tensor]):
            rows(x[n:m, 0:16], out[0 : m - n, 16:32])
            rows(x[m:, 0:16], out[m:, 0:16])
            rows(pl.slice(x, [n, 16], [m, 16]), pl.slice(out, [n, 16], [0, 0]))
            return out
        """,
        {"x": (("M", 32), FP32), "n": INT32, "m": INT64, "out": (("M", 32), FP32)},
        (rows,),
    )
    for count, n, m in ((32, 4, 20), (9, 2, 7), (6, 0, 6), (6, 3, 3)):
        x, out = counted(count, 32), torch.zeros(count, 32)
        expected = torch.zeros(count, 32)
        expected[0 : m - n, 16:32] = x[n:m, 0:16] * 2
        expected[m:, 0:16] = x[m:, 0:16] * 2
        expected[:n, :16] = x[m : m + n, 16:32] * 2
        compiled(x, n, m, out)
        assert torch.equal(out, expected), (count, n, m)


@pytest.mark.conforms("language.109")
@pytest.mark.parametrize("target", TARGETS)
def test_regions_are_assigned_in_orchestration(target: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def assigned(a: pl.Tensor, n: pl.INDEX, out: pl.Out[pl.Tensor], more: pl.Out[pl.Tensor]):
            out[0:8] = a[n]
            out[8:16, n : n + 8] = a[0, :, 16:24]
            out = pl.assemble(out, a[1], [16, 0])
            out[24, 4:12] = a[2, 3, 0:8]
            more[:] = out[12:20]
            return out, more
        """,
        {
            "a": ((3, 8, 32), FP32),
            "n": INDEX,
            "out": ((32, 32), FP32),
            "more": ((8, 32), FP32),
        },
        backend_type=TARGETS[target],
    )
    a, out, more = counted(3, 8, 32), torch.zeros(32, 32), torch.zeros(8, 32)
    expected = torch.zeros(32, 32)
    expected[0:8] = a[2]
    expected[8:16, 2:10] = a[0, :, 16:24]
    expected[16:24] = a[1]
    expected[24, 4:12] = a[2, 3, :8]
    compiled(a, 2, out, more)
    assert torch.equal(out, expected)
    assert torch.equal(more, expected[12:20])


@pytest.mark.conforms("language.110")
@pytest.mark.parametrize(
    ("n", "line", "message"),
    [
        (5, 3, "slice: axis 0: 8 elements from 25 do not lie in an extent of 32"),
        (-1, 2, "slice: axis 1: 4 elements from -1 do not lie in an extent of 32"),
        (9, 4, "slice: axis 1: -1 elements from 0 do not lie in an extent of 32"),
        (2**40, 2, "slice: axis 1: 4 elements from 1099511627776 do not lie in an extent of 32"),
    ],
)
def test_a_part_outside_its_tensor_is_a_fault_at_its_line(
    n: int, line: int, message: str, compile_text: Any
) -> None:
    compiled = compile_text(
        """
        def outside(a: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
            narrow = a[:, n : n + 4]
            doubled(a[n * 5 % 32 : n * 5 % 32 + 8], out)
            doubled(a[0:8, 0 : 8 - n], out[:, 0 : 8 - n])
            return out
        """,
        {"a": ((32, 32), FP32), "n": INT64, "out": ((8, 32), FP32)},
        ("def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):\n"
         "    return pl.store(pl.load(x, [0, 0], [1, 1]), [0, 0], out)\n",),
    )  # fmt: skip
    with pytest.raises(KernelFault) as caught:
        compiled(counted(32, 32), n, torch.zeros(8, 32))
    assert message in str(caught.value)
    assert (caught.value.unit, caught.value.line) == ("tests:outside", line)
    assert caught.value.column > 0


def test_a_kernel_may_not_reach_past_the_part_it_was_given(compile_text: Any) -> None:
    reach = """
    def reach(x: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
        return pl.store(pl.load(x, [0, n], [8, 8]), [0, 0], out)
    """
    compiled = compile_text(
        """
        def calls(a: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
            reach(a[8:16, 8:24], n, out)
            return out
        """,
        {"a": ((32, 32), FP32), "n": INT64, "out": ((8, 8), FP32)},
        (reach,),
    )
    a = counted(32, 32)
    assert torch.equal(compiled(a, 8), a[8:16, 16:24])
    with pytest.raises(KernelFault, match="reach outside dimension -1 of extent 16") as caught:
        compiled(a, 9)
    assert (caught.value.unit, caught.value.line) == ("tests:reach", 2)


FIXED = """
def fixed(x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], out)
"""


def test_a_part_may_have_the_extent_that_a_kernel_declares_only_at_run_time(
    compile_text: Any,
) -> None:
    compiled = compile_text(
        """
        def calls(a: pl.Tensor, n: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT64],
                  out: pl.Out[pl.Tensor]):
            block = a[n * 8 : (n + 1) * 8, 0:16]
            fixed(block, out[0:8])
            fixed(a[n:m, 16:32], out[8:])
            return out
        """,
        {"a": ((32, 32), FP32), "n": INT64, "m": INT64, "out": ((16, 16), FP32)},
        (FIXED,),
    )
    a = counted(32, 32)
    assert torch.equal(compiled(a, 2, 10), torch.cat([a[16:24, :16], a[2:10, 16:]]))
    with pytest.raises(KernelFault) as caught:
        compiled(a, 2, 9)
    assert "another extent than the kernel that it is passed to declares" in str(caught.value)
    assert (caught.value.unit, caught.value.line) == ("tests:calls", 5)


WHOLE = """
def whole(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], x.shape)
    return pl.store(pl.add(tile, 1.0), [0, 0], out)
"""


def test_a_tile_for_a_part_of_run_time_size_is_as_large_as_the_tensor(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def calls(a: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.InOut[pl.Tensor]):
            whole(a[0:n], out[0:n])
            return out
        """,
        {"a": ((8, 16), FP32), "n": INT64, "out": ((8, 16), FP32)},
        (WHOLE,),
    )
    a = counted(8, 16)
    for n in (8, 3, 0):
        out = torch.zeros(8, 16)
        compiled(a, n, out)
        assert torch.equal(out, torch.cat([a[:n] + 1, torch.zeros(8 - n, 16)]))
