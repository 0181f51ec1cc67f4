"""Parts of tensors in scopes: subscripts and pl.slice, against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import BF16, FP32, INDEX, INT8, INT32

Tensor = torch.Tensor

DTYPES = {d.constant_name: d for d in (FP32, BF16, INT32, INT8)}
TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}


def counted(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7 + 3) % 101 - 50).reshape(shape).to(dtype)


# What is read of a [20, 24], c [4, 9, 24] and v [40] with the run-time offset n = 5.
REGIONS = {
    "rows": ("a[3:11]", lambda a, c, v: a[3:11]),
    "open": ("a[12:, 8:]", lambda a, c, v: a[12:, 8:]),
    "moved": ("a[n : n + 8, :]", lambda a, c, v: a[5:13]),
    "row": ("a[n]", lambda a, c, v: a[5]),
    "column": ("a[2:9, n]", lambda a, c, v: a[2:9, 5]),
    "plane": ("c[2]", lambda a, c, v: c[2]),
    "of_plane": ("c[n - 4, 1:4, n : n + 16]", lambda a, c, v: c[1, 1:4, 5:21]),
    "kept": ("c[3:4, 0:2]", lambda a, c, v: c[3:4, 0:2]),
    "line": ("v[n : n + 30]", lambda a, c, v: v[5:35]),
    "called": ("pl.slice(a, [4, 6], [n, 2])", lambda a, c, v: a[5:9, 2:8]),
    "dropped": ("pl.slice(c, [1, 4, 8], [n - 2, 0, n], drop_dims=[0])",
                lambda a, c, v: c[3, 0:4, 5:13]),
    "last": ("pl.tensor.slice(a, [3, 1], [0, n], drop_dims=[-1])", lambda a, c, v: a[:3, 5]),
}  # fmt: skip


@pytest.mark.conforms("language.101", "language.149")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DTYPES)
def test_regions(name: str, target: str, compile_text: Any) -> None:
    if target == "a5" and name != "FP32":
        pytest.skip("one type is enough on the other target")
    dtype = DTYPES[name]
    kind = getattr(torch, dtype.torch_name)
    given = [counted(20, 24, dtype=kind), counted(4, 9, 24, dtype=kind), counted(40, dtype=kind)]
    expected = {region: take(*given) for region, (_, take) in REGIONS.items()}
    types: dict[str, object] = {"n": INDEX, "a": (("M", 24), dtype)}
    types |= {"c": ((4, 9, 24), dtype), "v": ((40,), dtype)}
    if name != "FP32":  # an open slice needs a constant extent
        types["a"] = ((20, 24), dtype)
    regions = [r for r in REGIONS if name != "FP32" or r != "open"]
    types |= {f"out_{r}": (tuple(expected[r].shape), dtype) for r in regions}
    params = ["n: pl.INDEX", *(f"{p}: pl.Tensor" for p in "acv")]
    params += [f"out_{r}: pl.Out[pl.Tensor]" for r in regions]
    lines = [f"        out_{r}[:] = pl.add({REGIONS[r][0]}, 1)" for r in regions]
    text = (
        f"def regions({', '.join(params)}):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n" + "\n".join(lines)
    )
    compiled = compile_text(text, types, backend_type=TARGETS[target])
    outputs = {r: torch.zeros(expected[r].shape, dtype=kind) for r in regions}
    compiled(5, *given, *outputs.values())
    for region, output in outputs.items():
        assert torch.equal(output, expected[region] + 1), region


@pytest.mark.conforms("language.108")
def test_a_slice_is_a_copy_that_products_and_loops_read(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def blocks(x: pl.Tensor, y: pl.Tensor, state: pl.InOut[pl.Tensor],
                   out: pl.Out[pl.Tensor], rest: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                before = state[0:8]
                state[:] = state * 2.0
                acc = x[:, 0:16] @ y[0:16]
                for k in pl.range(16, 64, 16):
                    acc = pl.matmul_acc(acc, x[:, k : k + 16], y[k : k + 16, :])
                out[:] = acc
                part = pl.exp(x)[4:12, 8:24]
                rest[:] = pl.add(part, before)
        """,
        {
            "x": ((32, 64), FP32),
            "y": ((64, 48), FP32),
            "state": ((24, 16), FP32),
            "out": ((32, 48), FP32),
            "rest": ((8, 16), FP32),
        },
    )
    generator = torch.Generator().manual_seed(1)
    x, y = torch.rand((32, 64), generator=generator), torch.rand((64, 48), generator=generator)
    state, out, rest = counted(24, 16), torch.zeros(32, 48), torch.zeros(8, 16)
    before = state.clone()
    compiled(x, y, state, out, rest)
    torch.testing.assert_close(out, x @ y)
    torch.testing.assert_close(rest, torch.exp(x)[4:12, 8:24] + before[:8])
    assert torch.equal(state, before * 2)


@pytest.mark.conforms("language.63")
def test_a_slice_leaves_its_scope(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def outside(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                part = x[8:16]
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = part - 1.0
        """,
        {"x": ((16, 24), FP32), "out": ((8, 24), FP32)},
    )
    x, out = counted(16, 24), torch.zeros(8, 24)
    compiled(x, out)
    assert torch.equal(out, x[8:] - 1)


@pytest.mark.conforms("language.105", "language.150")
@pytest.mark.parametrize("target", TARGETS)
def test_parts_of_tensors_are_written(target: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def parts(a: pl.Tensor, b: pl.Tensor, flat: pl.InOut[pl.Tensor],
                  deep: pl.InOut[pl.Tensor], line: pl.InOut[pl.Tensor], half: pl.InOut[pl.Tensor],
                  n: pl.INDEX):
            with pl.at(level=pl.Level.CORE_GROUP):
                flat[0:8, 4:20] = a + 1.0
                flat[n : n + 8, 0:16] = flat[0:8, 4:20] * 2.0
                flat[17, 2:18] = a[0]
                flat[8:16, 23] = a[:, n]
                flat = pl.assemble(flat, pl.neg(a[0:2]), [n + 14, 8])
                for i in pl.range(3):
                    deep[i, 1:9, :] = a * 3.0
                    deep = pl.tensor.assemble(deep, pl.load(a, [0, 0], [1, 16]), [i, 0, 0])
                line[n : n + 16] = a[3]
                half[0:8, 8:24] = a @ b
        """,
        {
            "a": ((8, 16), FP32),
            "b": ((16, 16), FP32),
            "flat": ((24, 24), FP32),
            "deep": ((4, 9, 16), FP32),
            "line": ((40,), FP32),
            "half": ((12, 24), BF16),
            "n": INDEX,
        },
        backend_type=TARGETS[target],
    )
    a, b = counted(8, 16), counted(16, 16) / 8
    flat, deep, line = torch.zeros(24, 24), torch.zeros(4, 9, 16), torch.zeros(40)
    half = torch.zeros((12, 24), dtype=torch.bfloat16)
    wanted = [t.clone() for t in (flat, deep, line, half)]
    compiled(a, b, flat, deep, line, half, 8)
    wanted[0][0:8, 4:20] = a + 1
    wanted[0][8:16, 0:16] = wanted[0][0:8, 4:20] * 2
    wanted[0][17, 2:18] = a[0]
    wanted[0][8:16, 23] = a[:, 8]
    wanted[0][22:24, 8:24] = -a[0:2]
    wanted[1][0:3, 1:9] = a * 3
    wanted[1][0:3, 0] = a[0]
    wanted[2][8:24] = a[3]
    wanted[3][0:8, 8:24] = (a @ b).to(torch.bfloat16)
    for actual, expected in zip((flat, deep, line, half), wanted, strict=True):
        assert torch.equal(actual, expected)


@pytest.mark.conforms("language.149")
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_not_read_is_padded(target: str, compile_text: Any) -> None:
    compiled = compile_text(
        """
        def padded(x: pl.Tensor, v: pl.Tensor, y: pl.Tensor, n: pl.INDEX, inside: pl.Out[pl.Tensor],
                   past: pl.Out[pl.Tensor], line: pl.Out[pl.Tensor], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                inside[:] = pl.slice(x, [8, 16], [n, 2], valid_shape=[n, 5],
                                     pad_value=pl.PadValue.max)
                past[:] = pl.slice(x, [8, 16], [n + 14, 0], clamp=True, pad_value=pl.PadValue.min)
                line[:] = pl.slice(v, [16], [n + 30], clamp=True) + 1
                out[:] = pl.slice(x, [1, 16], [0, 0], [1, n], [0], 0) - pl.slice(
                    y, [1, 1, 16], [1, n, 20], clamp=True, drop_dims=[0, -2])
        """,
        {
            "x": (("M", 16), INT32),
            "v": ((40,), INT32),
            "y": ((2, 9, 24), INT32),
            "n": INDEX,
            "inside": ((8, 16), INT32),
            "past": ((8, 16), INT32),
            "line": ((16,), INT32),
            "out": ((16,), INT32),
        },
        backend_type=TARGETS[target],
    )
    x, v, y = (counted(*shape, dtype=torch.int32) for shape in ((20, 16), (40,), (2, 9, 24)))
    outputs = [torch.zeros(s, dtype=torch.int32) for s in ((8, 16), (8, 16), (16,), (16,))]
    compiled(x, v, y, 3, *outputs)
    limits = torch.iinfo(torch.int32)
    wanted = [torch.full((8, 16), limits.max, dtype=torch.int32)]
    wanted[0][:3, :5] = x[3:6, 2:7]
    wanted.append(torch.full((8, 16), limits.min, dtype=torch.int32))
    wanted[1][:3] = x[17:]
    # Without a pad value, what was not read is not written.
    wanted += [torch.zeros(16, dtype=torch.int32), torch.zeros(16, dtype=torch.int32)]
    wanted[2][:7] = v[33:] + 1
    wanted[3][:3] += x[0, :3]  # and zeros, its pad value
    wanted[3][:4] -= y[1, 3, 20:]
    for actual, expected in zip(outputs, wanted, strict=True):
        assert torch.equal(actual, expected)


def test_a_padded_slice_is_a_factor(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def factor(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.slice(x, [16, 16], [16, 0], clamp=True) @ y
        """,
        {"x": ((20, 16), FP32), "y": ((16, 32), FP32), "out": ((16, 32), FP32)},
    )
    x, y, out = counted(20, 16), counted(16, 32), torch.zeros(16, 32)
    compiled(x, y, out)
    assert torch.equal(out[:4], x[16:] @ y)
    assert not out[4:].any()


@pytest.mark.conforms("language.153")
@pytest.mark.parametrize("target", TARGETS)
def test_a_slice_that_is_valid_in_part_is_filled_as_its_reader_says(
    target: str, compile_text: Any
) -> None:
    compiled = compile_text(
        """
        def masked(x: pl.Tensor, n: pl.INDEX, low: pl.Out[pl.Tensor], most: pl.Out[pl.Tensor],
                   total: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                known = pl.slice(x, [4, 64], [0, 0], valid_shape=[4, n])
                scaled = pl.mul(known, 2.0)
                low[:] = pl.fillpad(scaled, pad_value=pl.PadValue.min)
                most[:] = pl.row_max(known)
                seen = pl.slice(x, [4, 64], [0, 0], valid_shape=[4, n])
                total[:] = pl.add(seen, 1.0)
        """,
        {
            "x": ((4, 64), FP32),
            "n": INDEX,
            "low": ((4, 64), FP32),
            "most": ((4, 1), FP32),
            "total": ((4, 64), FP32),
        },
        backend_type=TARGETS[target],
    )
    x = -counted(4, 64) - 1
    low, most, total = torch.zeros(4, 64), torch.zeros(4, 1), torch.zeros(4, 64)
    compiled(x, 10, low, most, total)
    assert torch.equal(low[:, :10], x[:, :10] * 2)
    assert (low[:, 10:] == torch.finfo(torch.float32).min).all()
    assert torch.equal(most, x[:, :10].amax(1, keepdim=True))
    assert torch.equal(total[:, :10], x[:, :10] + 1)
    assert not total[:, 10:].any(), "what is not valid is not written"
