"""Bitwise operations against torch, on every integer type, with counts outside the width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import INT8, INT16, INT32, INT64, UINT8

Tensor = torch.Tensor

DTYPES = {d.constant_name: d for d in (INT8, INT16, INT32, INT64, UINT8)}
TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}

ROWS, COLS = 9, 37
VALID = (7, 33)

CASES: dict[str, tuple[str, Callable[[Tensor, Tensor, int], Tensor]]] = {
    "and": ("pl.and_(x, y)", lambda x, y, s: x & y),
    "or": ("pl.or_(x, y)", lambda x, y, s: x | y),
    "xor": ("pl.xor(x, y)", lambda x, y, s: x ^ y),
    "not": ("pl.not_(x)", lambda x, y, s: ~x),
    "shl": ("pl.shl(x, n)", lambda x, y, s: x),
    "shr": ("pl.shr(x, n)", lambda x, y, s: x),
    "ands": ("pl.and_(x, s)", lambda x, y, s: x & s),
    "ors": ("pl.or_(s, x)", lambda x, y, s: x | s),
    "xors": ("pl.xor(x, s)", lambda x, y, s: x ^ s),
    "shls": ("pl.shl(x, 3)", lambda x, y, s: x << 3),
    "shrs": ("pl.shr(x, 3)", lambda x, y, s: x >> 3),
    "by_row": ("pl.xor(x, r)", lambda x, y, s: x ^ y[:, :1]),
    "by_column": ("pl.and_(c, x)", lambda x, y, s: x & y[:1]),
}


def shifted(values: Tensor, counts: Tensor, bits: int, *, left: bool) -> Tensor:
    """Element by element in Python, where numbers have no width."""
    low, high = torch.iinfo(values.dtype).min, torch.iinfo(values.dtype).max
    out = []
    for value, count in zip(values.flatten().tolist(), counts.flatten().tolist(), strict=True):
        inside = 0 <= count < bits
        if left:
            wrapped = (value << count) & (2**bits - 1) if inside else 0
            out.append(wrapped - 2**bits if wrapped > high else wrapped)
        else:
            out.append(value >> count if inside else -1 if value < 0 else 0)
    assert all(low <= value <= high for value in out)
    return torch.tensor(out, dtype=values.dtype).reshape(values.shape)


def kernel(dtypes: list[str]) -> tuple[str, dict[str, object]]:
    """One scope a type: every case on the valid region, whose extents are run-time values."""
    types: dict[str, object] = {"m": INT64, "k": INT64}
    lines = []
    for name in dtypes:
        dtype, low = DTYPES[name], name.lower()
        types |= {f"{low}_{v}": ((ROWS, COLS), dtype) for v in ("x", "y", "n")}
        types[f"{low}_s"] = dtype
        types |= {f"{low}_{case}": ((ROWS, COLS), dtype) for case in CASES}
        lines.append("    with pl.at(level=pl.Level.CORE_GROUP):")
        for value in ("x", "y", "n"):
            lines.append(
                f"        {value} = pl.load({low}_{value}, [0, 0], [{ROWS}, {COLS}], "
                "valid_shape=[m, k])"
            )
        lines += [
            f"        r = pl.load({low}_y, [0, 0], [{ROWS}, 1], valid_shape=[m, 1])",
            f"        c = pl.load({low}_y, [0, 0], [1, {COLS}], valid_shape=[1, k])",
            f"        s = {low}_s",
        ]
        lines += [
            f"        {low}_{case} = pl.store({expression}, [0, 0], {low}_{case})"
            for case, (expression, _) in CASES.items()
        ]
    params = []
    for name, type_ in types.items():
        if not isinstance(type_, tuple):
            params.append(f"{name}: pl.Scalar[pl.{type_.constant_name}]")  # type: ignore[attr-defined]
        elif name.partition("_")[2] in CASES:
            params.append(f"{name}: pl.Out[pl.Tensor]")
        else:
            params.append(f"{name}: pl.Tensor")
    return f"def bits({', '.join(params)}):\n" + "\n".join(lines), types


def inputs(name: str) -> dict[str, Tensor]:
    """Random bits with the extreme values among them, and counts around the width."""
    kind = getattr(torch, DTYPES[name].torch_name)
    info, generator = torch.iinfo(kind), torch.Generator().manual_seed(DTYPES[name].code())
    edges = torch.tensor([info.min, info.max, 0, 1, info.max - 1], dtype=kind)
    out = {}
    for value in ("x", "y"):
        random = torch.randint(-(2**62), 2**62, (ROWS, COLS), generator=generator)
        random[:, :5] = edges.to(torch.int64).roll(0 if value == "x" else 2)
        out[value] = random.to(kind)
    counts = torch.randint(0, info.bits, (ROWS, COLS), generator=generator)
    outside = [0, info.bits - 1, info.bits, info.bits + 1, info.max]
    counts[:, ::6] = torch.tensor(outside[:1] * 2 + outside[1:] + [3])
    if info.min < 0:
        counts[1] = -1
    out["n"] = counts.to(kind)
    return out


@pytest.mark.parametrize("target", TARGETS)
def test_bitwise_operations(target: str, compile_text: Any) -> None:
    dtypes = list(DTYPES) if target == "a2a3" else ["INT16", "UINT8"]
    text, types = kernel(dtypes)
    compiled = compile_text(text, types, backend_type=TARGETS[target])
    given = {name: inputs(name) for name in dtypes}
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, int] = {"m": VALID[0], "k": VALID[1]}
    for name in dtypes:
        low, values = name.lower(), given[name]
        scalars[f"{low}_s"] = 0x5A
        tensors |= {f"{low}_{v}": tensor for v, tensor in values.items()}
        tensors |= {f"{low}_{case}": torch.full_like(values["x"], 77) for case in CASES}
    compiled(*(tensors[n] if n in tensors else scalars[n] for n in types))
    rows, cols = VALID
    for name in dtypes:
        low, bits = name.lower(), DTYPES[name].bits
        x, y, n = (given[name][v] for v in ("x", "y", "n"))
        for case, (_, reference) in CASES.items():
            expected = torch.full_like(x, 77)
            if case in ("shl", "shr"):
                full = shifted(x, n, bits, left=case == "shl")
            else:
                full = reference(x, y, 0x5A)
            expected[:rows, :cols] = full[:rows, :cols]
            actual = tensors[f"{low}_{case}"]
            torch.testing.assert_close(actual, expected, rtol=0, atol=0, msg=f"{case} of {name}")
