"""Transposition and padding against torch: types, valid regions, run-time extents, loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import BF16, FP16, FP32, INDEX, INT8, INT32, INT64, UINT8

Tensor = torch.Tensor

DTYPES = {d.constant_name: d for d in (FP32, FP16, BF16, INT8, INT32, INT64, UINT8)}
TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}
PADS = {"zero": "0", "max": "pl.PadValue.max", "min": "pl.PadValue.min"}

# Tile shape and valid region.
SHAPES = (((8, 24), (8, 24)), ((9, 40), (7, 33)), ((1, 37), (1, 29)), ((21, 1), (16, 1)))


def values(shape: tuple[int, int], kind: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(shape[0])
    return (torch.rand(shape, generator=generator) * 200 - 100).to(kind)


def limit(kind: torch.dtype, pad: str) -> float | int:
    if pad == "zero":
        return 0
    info = torch.finfo(kind) if kind.is_floating_point else torch.iinfo(kind)
    return info.max if pad == "max" else info.min


@pytest.mark.conforms("language.147", "language.151")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("extents", ["constant", "run_time"])
def test_transpose_and_fillpad(extents: str, target: str, compile_text: Any) -> None:
    names = ["FP32", "INT8"] if target == "a5" else list(DTYPES)
    types: dict[str, object] = {"m": INDEX, "k": INDEX}
    lines, params = [], ["m: pl.INDEX", "k: pl.INDEX"]
    shapes = SHAPES if extents == "constant" else SHAPES[1:2]
    for name in names:
        for index, (shape, valid) in enumerate(shapes):
            key = f"{name.lower()}_{index}"
            types[f"x_{key}"] = (shape, DTYPES[name])
            types[f"t_{key}"] = (shape[::-1], DTYPES[name])
            types |= {f"{pad}_{key}": (shape, DTYPES[name]) for pad in PADS}
            params += [f"x_{key}: pl.Tensor", f"t_{key}: pl.Out[pl.Tensor]"]
            params += [f"{pad}_{key}: pl.Out[pl.Tensor]" for pad in PADS]
            given = list(valid) if extents == "constant" else "[m, k]"
            lines += [
                "    with pl.at(level=pl.Level.CORE_GROUP):",
                f"        x = pl.load(x_{key}, [0, 0], {list(shape)}, valid_shape={given})",
                f"        t_{key} = pl.store(pl.transpose(x, 0, -1), [0, 0], t_{key})",
            ]
            lines += [
                f"        {pad}_{key} = pl.store(pl.fillpad(x, {value}), [0, 0], {pad}_{key})"
                for pad, value in PADS.items()
            ]
    text = f"def shapes({', '.join(params)}):\n" + "\n".join(lines)
    compiled = compile_text(text, types, backend_type=TARGETS[target])
    tensors: dict[str, Tensor] = {}
    for name, type_ in types.items():
        if not isinstance(type_, tuple):
            continue
        kind = getattr(torch, type_[1].torch_name)
        tensors[name] = (
            values(type_[0], kind)
            if name.startswith("x_")
            else torch.full(type_[0], 77, dtype=kind)
        )
    compiled(*SHAPES[1][1], *tensors.values())
    for name in names:
        for index, (_, (rows, cols)) in enumerate(shapes):
            key = f"{name.lower()}_{index}"
            x = tensors[f"x_{key}"]
            expected = torch.full_like(tensors[f"t_{key}"], 77)
            expected[:cols, :rows] = x[:rows, :cols].t()
            assert torch.equal(tensors[f"t_{key}"], expected), key
            for pad in PADS:
                padded = torch.full_like(x, limit(x.dtype, pad))
                padded[:rows, :cols] = x[:rows, :cols]
                assert torch.equal(tensors[f"{pad}_{key}"], padded), (pad, key)


def test_whole_tensors_are_transposed(compile_text: Any) -> None:
    text = """
    def whole(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor], same: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.fillpad(pl.matmul(pl.tensor.transpose(x, 1, 0), y), pl.PadValue.min)
            same[:] = pl.transpose(x, 0, 0)
    """
    types = {"x": ((16, 32), FP32), "y": ((16, 48), FP32), "out": ((32, 48), FP32)}
    compiled = compile_text(text, {**types, "same": ((16, 32), FP32)})
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.rand(types[n][0], generator=generator) for n in "xy")
    out, same = torch.zeros((32, 48)), torch.zeros((16, 32))
    compiled(x, y, out, same)
    torch.testing.assert_close(out, x.t() @ y)
    assert torch.equal(same, x)


@pytest.mark.conforms("language.151")
def test_a_padded_tile_is_carried_and_merged(compile_text: Any) -> None:
    """What fills a tile belongs to its declaration, under every name that the tile has."""
    text = """
    def carried(x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.INT32):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.fillpad(pl.load(x, [0, 0], [8, 16], valid_shape=[5, 11]), pl.PadValue.max)
            for i in pl.range(n):
                a = pl.tile.fillpad(pl.minimum(a, pl.full([8, 16], pl.FP32, 1000)))
            if n > 2:
                a = pl.tile.transpose(pl.transpose(a, 0, 1), -1, 0)
            out = pl.store(a, [0, 0], out)
    """
    compiled = compile_text(text, {"x": ((8, 16), FP32), "out": ((8, 16), FP32), "n": INT32})
    x = values((8, 16), torch.float32)
    for count in (0, 1, 3):
        out = torch.zeros((8, 16))
        compiled(x, out, count)
        expected = torch.full((8, 16), torch.finfo(torch.float32).max if count == 0 else 1000.0)
        expected[:5, :11] = x[:5, :11]
        assert torch.equal(out, expected)
