"""Conversions of every element type to every other, in every mode, by exact arithmetic."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from pypto.ir.dtypes import BOOL, DTYPES, FP32, INDEX, INT8, INT32, INT_RANGES, UINT8, DataType
from pypto.ir.typing_rules import CAST_MODES
from torch_reference import rounded

Tensor = torch.Tensor
TYPES = [d for d in DTYPES if d != INDEX]
COUNT = 48


def numbers(dtype: DataType) -> list[Any]:
    """Ties, ends of every range, and what lies next to them, as far as ``dtype`` holds them."""
    if dtype == BOOL:
        return [False, True] * (COUNT // 2)
    whole = [
        0,
        1,
        2,
        3,
        5,
        7,
        100,
        127,
        128,
        129,
        200,
        255,
        256,
        257,
        2047,
        2049,
        2051,
        4097,
        32767,
        32768,
        65504,
        65519,
        65520,
        65535,
        65537,
        2**24 + 1,
        2**24 + 3,
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**33 + 5,
        2**40 + 2**20 + 1,
        2**62 + 1,
        2**63 - 1,
        2**64 - 1,
    ]
    if dtype.is_float:
        values: list[Any] = [
            0.5,
            1.5,
            2.5,
            0.49999997,
            0.75,
            126.5,
            127.5,
            254.5,
            255.5,
            1e-8,
            2.0**-24,
            2.0**-25,
            3e38,
            1e20,
            math.inf,
            math.nan,
            65519.996,
        ]
        values += [-v for v in values] + [float(n) for n in whole[:7]] + [-0.0, 8388609.5]
        return (values + [1.0] * COUNT)[:COUNT]
    low, high = INT_RANGES[dtype.name]
    signed = whole + [-n for n in whole[:12]] + [low]
    fitting = [n for n in signed if low <= n <= high]
    return (fitting + [1] * COUNT)[:COUNT]


def as_tensor(values: list[Any], dtype: DataType) -> Tensor:
    kind = getattr(torch, dtype.torch_name)
    if dtype.name == "uint64":
        return torch.tensor([v - 2**64 if v >= 2**63 else v for v in values]).view(kind)
    return torch.tensor(values).to(kind)


def as_numbers(tensor: Tensor, dtype: DataType) -> list[Any]:
    if dtype.name == "uint64":
        return [v % 2**64 for v in tensor.view(torch.int64).tolist()]
    return tensor.long().tolist() if dtype.is_unsigned else tensor.tolist()


@pytest.mark.conforms("language.140")
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_every_conversion_in_every_mode(compile_text: Any, source: DataType) -> None:
    types: dict[str, object] = {"x": ((1, COUNT), source)}
    lines = []
    for target in TYPES:
        types[f"o_{target.name}"] = ((len(CAST_MODES), COUNT), target)
        for number, mode in enumerate(CAST_MODES):
            said = number if number % 2 else repr(mode)
            lines.append(
                f"        o_{target.name} = pl.store(pl.cast(t, {target!r}, mode={said}), "
                f"[{number}, 0], o_{target.name})"
            )
    params = ", ".join(f"o_{t.name}: pl.Out[pl.Tensor]" for t in TYPES)
    text = "\n".join([
        f"def casts_{source.name}(x: pl.Tensor, {params}):",
        "    with pl.at(level=pl.Level.CORE_GROUP):",
        f"        t = pl.load(x, [0, 0], [1, {COUNT}])",
        *lines,
    ])  # fmt: skip
    x = as_tensor(numbers(source), source).reshape(1, COUNT)
    outs = {
        t: torch.zeros(len(CAST_MODES), COUNT, dtype=getattr(torch, t.torch_name)) for t in TYPES
    }
    compile_text(text, types)(x, *outs.values())
    given = as_numbers(x[0], source)
    for target, out in outs.items():
        for number, mode in enumerate(CAST_MODES):
            actual = as_numbers(out[number], target)
            for value, result in zip(given, actual, strict=True):
                wanted = value if source == target else rounded(value, target, mode)
                same = result == wanted or (result != result and wanted != wanted)
                assert same, f"{value} to {target} by {mode}: {result}, not {wanted}"


SCALAR_PAIRS = [(FP32, INT32), (FP32, INT8), (FP32, UINT8), (INT32, INT8), (INT32, FP32)]


@pytest.mark.conforms("language.140")
@pytest.mark.parametrize("place", ["core", "orchestration"])
@pytest.mark.parametrize("mode", CAST_MODES)
def test_scalars_round_by_their_mode(compile_text: Any, mode: str, place: str) -> None:
    """A run-time scalar and the same number as a constant."""
    computed = [
        f"c{i} = pl.cast({'f' if a == FP32 else 'n'}, {b!r}, mode={mode!r})"
        for i, (a, b) in enumerate(SCALAR_PAIRS)
    ]
    stored = [
        f"out = pl.write(out, [0, {i}], pl.cast(c{i}, pl.FP32))" for i in range(len(SCALAR_PAIRS))
    ]
    indent = "                    "
    before = f"\n{indent}".join(computed if place == "orchestration" else [])
    inside = f"\n{indent}    ".join([*(computed if place == "core" else []), *stored])
    text = f"""
                def scalar_casts_{place}_{mode}(x: pl.Tensor, f: pl.Scalar[pl.FP32],
                                                n: pl.Scalar[pl.INT32], out: pl.InOut[pl.Tensor]):
                    {before or "pass"}
                    with pl.at(level=pl.Level.CORE_GROUP):
                        {inside}
    """
    types = {"x": ((1, 1), FP32), "f": FP32, "n": INT32, "out": ((1, 8), FP32)}
    compiled = compile_text(text, types)
    for f, n in ((2.5, 300), (-2.5, -300), (3.25, 2**24 + 1), (-0.75, 7), (1e20, 0)):
        out = torch.zeros(1, 8)
        compiled(torch.zeros(1, 1), f, n, out)
        for i, (source, target) in enumerate(SCALAR_PAIRS):
            exact = rounded(f if source == FP32 else n, target, mode)
            if place == "orchestration" and (source, target) == (INT32, FP32):
                exact = float(torch.tensor(n).float())
            assert out[0, i] == torch.tensor(exact).float(), (f, n, str(target))
