"""Loads, stores, casts, reshapes and concatenations against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from pypto.ir.dtypes import BF16, FP16, FP32, INT8, INT16, INT32, DataType

Tensor = torch.Tensor

BY_NAME = {d.constant_name: d for d in (FP32, FP16, BF16, INT32, INT16, INT8)}


def kind(dtype: DataType) -> torch.dtype:
    return getattr(torch, dtype.torch_name)  # type: ignore[no-any-return]


def counted(*shape: int, dtype: DataType = FP32) -> Tensor:
    return torch.arange(int(np.prod(shape))).reshape(shape).to(kind(dtype))


MODES = {
    "rint": np.rint,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
}


def test_casts_from_floats_to_integers_round_by_their_mode(compile_text: Any) -> None:
    targets = ("INT32", "INT16", "INT8")
    outputs = {f"{m}_{t}": (m, t) for m in MODES for t in targets}
    types: dict[str, object] = {"x": ((3, 41), FP32)}
    types |= {name: ((3, 41), BY_NAME[t]) for name, (_, t) in outputs.items()}
    params = "x: pl.Tensor, " + ", ".join(f"{o}: pl.Out[pl.Tensor]" for o in outputs)
    lines = [
        f"        {o} = pl.store(pl.cast(x_tile, pl.{t}, mode='{m}'), [0, 0], {o})"
        for o, (m, t) in outputs.items()
    ]
    text = (
        f"def casts({params}):\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        x_tile = pl.load(x, [0, 0], [3, 41])\n" + "\n".join(lines)
    )
    compiled = compile_text(text, types)
    generator = torch.Generator().manual_seed(0)
    x = torch.rand((3, 41), generator=generator) * 240 - 120
    x[0, :12] = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.0, -0.0, 7.0, -7.0, 0.49, -0.51])
    tensors = [torch.zeros((3, 41), dtype=kind(BY_NAME[t])) for _, t in outputs.values()]
    compiled(x, *tensors)
    for (mode, target), actual in zip(outputs.values(), tensors, strict=True):
        expected = torch.from_numpy(MODES[mode](x.numpy())).to(kind(BY_NAME[target]))
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, msg=f"{mode} to {target}")


PAIRS = [
    *(("FP32", t) for t in ("FP16", "BF16")),
    *(("FP16", t) for t in ("FP32", "BF16")),
    *(("BF16", t) for t in ("FP32", "FP16")),
    *(("INT32", t) for t in ("FP32", "INT8", "FP16")),
    *(("INT8", t) for t in ("FP32", "INT32", "FP16")),
]


def test_casts_between_types_round_to_nearest_even(compile_text: Any) -> None:
    sources = sorted({s for s, _ in PAIRS})
    types: dict[str, object] = {f"x_{s}": ((5, 33), BY_NAME[s]) for s in sources}
    types |= {f"out_{s}_{t}": ((5, 33), BY_NAME[t]) for s, t in PAIRS}
    params = [f"x_{s}: pl.Tensor" for s in sources]
    params += [f"out_{s}_{t}: pl.Out[pl.Tensor]" for s, t in PAIRS]
    lines = [f"        t_{s} = pl.load(x_{s}, [0, 0], [5, 33])" for s in sources]
    lines += [
        f"        out_{s}_{t} = pl.store(pl.cast(t_{s}, pl.{t}, mode='rint'), [0, 0], out_{s}_{t})"
        for s, t in PAIRS
    ]
    text = (
        f"def casts({', '.join(params)}):\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
        + "\n".join(lines)
    )
    compiled = compile_text(text, types)
    generator = torch.Generator().manual_seed(1)
    spread = torch.randn((5, 33), generator=generator) * 100
    small = torch.randint(-128, 128, (5, 33), generator=generator)
    inputs = [(spread if BY_NAME[s].is_float else small).to(kind(BY_NAME[s])) for s in sources]
    outputs = [torch.zeros((5, 33), dtype=kind(BY_NAME[t])) for _, t in PAIRS]
    compiled(*inputs, *outputs)
    by_source = dict(zip(sources, inputs, strict=True))
    for (source, target), actual in zip(PAIRS, outputs, strict=True):
        expected = by_source[source].to(kind(BY_NAME[target]))
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, msg=f"{source} to {target}")


@pytest.mark.conforms("language.146", "language.148")
@pytest.mark.parametrize("name", ["FP32", "BF16", "INT8"])
def test_shapes_change_in_row_major_order(name: str, compile_text: Any) -> None:
    dtype = BY_NAME[name]
    compiled = compile_text(
        """
        def shapes(x: pl.Tensor, y: pl.Tensor, flat: pl.Out[pl.Tensor], turned: pl.Out[pl.Tensor],
                   column: pl.Out[pl.Tensor], row: pl.Out[pl.Tensor], both: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [6, 10])
                flat = pl.store(pl.reshape(t, [1, 60]), [0, 0], flat)
                turned = pl.store(pl.reshape(t, [15, 4]), [0, 0], turned)
                column = pl.store(pl.reshape(t, [60, 1]), [0, 0], column)
                c = pl.reshape(t, [60, 1])
                row = pl.store(pl.reshape(pl.add(c, c), [1, 60]), [0, 0], row)
                both = pl.store(pl.concat(t, pl.load(y, [0, 0], [6, 3])), [0, 0], both)
            return flat, turned, column, row, both
        """,
        {
            "x": ((6, 10), dtype),
            "y": ((6, 3), dtype),
            "flat": ((1, 60), dtype),
            "turned": ((15, 4), dtype),
            "column": ((60, 1), dtype),
            "row": ((1, 60), dtype),
            "both": ((6, 13), dtype),
        },
    )
    x, y = counted(6, 10, dtype=dtype), counted(6, 3, dtype=dtype) + 100
    flat, turned, column, row, both = compiled(x, y)
    assert torch.equal(flat, x.reshape(1, 60))
    assert torch.equal(turned, x.reshape(15, 4))
    assert torch.equal(column, x.reshape(60, 1))
    assert torch.equal(row, (x + x).reshape(1, 60))
    assert torch.equal(both, torch.cat((x, y), 1))


@pytest.mark.conforms("language.131", "language.132", "language.133")
def test_loads_and_stores_touch_their_region_only(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def regions(x: pl.Tensor, line: pl.Tensor, cube: pl.Tensor, out: pl.InOut[pl.Tensor],
                    line_out: pl.InOut[pl.Tensor], cube_out: pl.InOut[pl.Tensor]):
            for i in pl.range(0, 9, 3):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x, [i, 5], [4, 8], valid_shape=[2, 7])
                    out = pl.store(t, [i + 1, 2], out)
            with pl.at(level=pl.Level.CORE_GROUP):
                s = pl.load(line, [3], [11])
                line_out = pl.store(s, [20], line_out)
                p = pl.load(cube, [1, 2, 3], [1, 3, 4])
                cube_out = pl.store(p, [2, 0, 1], cube_out)
        """,
        {
            "x": ((12, 16), FP32),
            "line": ((17,), FP32),
            "cube": ((3, 5, 7), FP32),
            "out": ((12, 11), FP32),
            "line_out": ((31,), FP32),
            "cube_out": ((3, 5, 7), FP32),
        },
    )
    x, line, cube = counted(12, 16), counted(17), counted(3, 5, 7)
    out, line_out, cube_out = (torch.full(s, -1.0) for s in ((12, 11), (31,), (3, 5, 7)))
    expected, expected_line, expected_cube = out.clone(), line_out.clone(), cube_out.clone()
    compiled(x, line, cube, out, line_out, cube_out)
    for i in range(0, 9, 3):
        expected[i + 1 : i + 3, 2:9] = x[i : i + 2, 5:12]
    expected_line[20:31] = line[3:14]
    expected_cube[2, 0:3, 1:5] = cube[1, 2:5, 3:7]
    assert torch.equal(out, expected)
    assert torch.equal(line_out, expected_line)
    assert torch.equal(cube_out, expected_cube)


@pytest.mark.conforms("language.106")
def test_whole_tensors_of_any_rank(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def ranks(a: pl.Tensor, b: pl.Tensor, out1: pl.Out[pl.Tensor], out3: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out1[:] = pl.add(a, 1.0)
                out3[:] = pl.neg(pl.add(b, b))
            return out1, out3
        """,
        {
            "a": ((37,), FP32),
            "b": ((2, 3, 5), FP32),
            "out1": ((37,), FP32),
            "out3": ((2, 3, 5), FP32),
        },
    )
    a, b = counted(37), counted(2, 3, 5)
    out1, out3 = compiled(a, b)
    assert torch.equal(out1, a + 1)
    assert torch.equal(out3, -(b + b))


@pytest.mark.conforms("language.136")
def test_full_tiles_and_fills(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def fills(out: pl.Out[pl.Tensor], ints: pl.Out[pl.Tensor], low: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.full([5, 9], dtype=pl.FP32, value=-0.1), [0, 0], out)
                ints = pl.store(pl.full([5, 9], dtype=pl.INT32, value=-7), [0, 0], ints)
                low = pl.store(pl.full([5, 9], dtype=pl.BF16, value=3.14159), [0, 0], low)
            return out, ints, low
        """,
        {"out": ((5, 9), FP32), "ints": ((5, 9), INT32), "low": ((5, 9), BF16)},
    )
    out, ints, low = compiled()
    assert torch.equal(out, torch.full((5, 9), -0.1))
    assert torch.equal(ints, torch.full((5, 9), -7, dtype=torch.int32))
    assert torch.equal(low, torch.full((5, 9), 3.14159).to(torch.bfloat16))
