"""Parts of tiles: pl.slice and pl.assemble on every memory space, valid regions, bounds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import BF16, FP16, FP32, INDEX, INT8, INT64, DataType
from pypto.language.parser.diagnostics.exceptions import ParserError
from pypto.runtime import KernelFault

Tensor = torch.Tensor
TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}


def counted(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7 + 3) % 101 - 50).reshape(shape).to(dtype)


# Regions of x, a tile [16, 24], and y, of which [11, 19] are valid; the run-time offset n is 5.
SLICES = {
    "constant": ("pl.slice(x, [4, 8], [3, 5])", lambda x, y: x[3:7, 5:13]),
    "moved": ("pl.slice(x, [11, 24], [n, 0])", lambda x, y: x[5:16]),
    "keywords": ("pl.tile.slice(x, shape=[2, 2], offset=[n, n + 1])", lambda x, y: x[5:7, 6:8]),
    "dropped_row": ("pl.slice(x, [1, 7], [n, 2], drop_dims=[0])", lambda x, y: x[5:6, 2:9]),
    "dropped_column": ("pl.slice(x, [6, 1], [1, n], drop_dims=[-1])", lambda x, y: x[1:7, 5:6].t()),
    "clamped": ("pl.slice(x, [8, 8], [12, n], clamp=True)", lambda x, y: x[12:16, 5:13]),
    "clamped_moved": ("pl.slice(x, [8, 8], [n + 9, 20], clamp=True)", lambda x, y: x[14:, 20:]),
    "bounded": ("pl.slice(x, [8, 8], [n, n], valid_shape=[n, 3])", lambda x, y: x[5:10, 5:8]),
    "carried": ("pl.slice(y, [8, 8], [4, 16])", lambda x, y: y[4:11, 16:19]),
    "carried_moved": ("pl.slice(y, [8, 8], [n + 2, n + 9])", lambda x, y: y[7:11, 14:19]),
    "filled": (
        "pl.fillpad(pl.slice(y, [2, 8], [n + 5, 16]), pl.PadValue.max)",
        lambda x, y: torch.nn.functional.pad(
            y[10:11, 16:19], (0, 5, 0, 1), value=torch.finfo(torch.float32).max
        ),
    ),
}  # fmt: skip


@pytest.mark.conforms("language.149")
@pytest.mark.parametrize("target", TARGETS)
def test_slices_of_tiles(compile_text: Any, target: str) -> None:
    lines = ["def tile_slices(a: pl.Tensor, n: pl.Scalar[pl.INDEX], outs):"]
    types: dict[str, object] = {"a": ((16, 24), FP32), "n": INDEX}
    x, y = counted(16, 24), counted(16, 24)
    expected = {name: reference(x, y) for name, (_, reference) in SLICES.items()}
    for name, value in expected.items():
        types[f"o_{name}"] = (tuple(value.shape), FP32)
    params = ", ".join(f"o_{name}: pl.Out[pl.Tensor]" for name in SLICES)
    lines = [
        f"def tile_slices_{target}(a: pl.Tensor, n: pl.Scalar[pl.INDEX], {params}):",
        "    with pl.at(level=pl.Level.CORE_GROUP):",
        "        x = pl.load(a, [0, 0], [16, 24])",
        "        y = pl.load(a, [0, 0], [16, 24], valid_shape=[11, 19])",
        *(
            f"        o_{name} = pl.store({expression}, [0, 0], o_{name})"
            for name, (expression, _) in SLICES.items()
        ),
    ]
    compiled = compile_text("\n".join(lines), types, backend_type=TARGETS[target])
    outs = [torch.full_like(value, 77) for value in expected.values()]
    compiled(x, 5, *outs)
    for (name, value), out in zip(expected.items(), outs, strict=True):
        torch.testing.assert_close(out, value, rtol=0, atol=0, msg=name)


@pytest.mark.conforms("language.108")
def test_a_slice_is_a_copy(compile_text: Any) -> None:
    text = """
        def slice_is_a_copy(a: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.load(a, [0, 0], [8, 8])
                part = pl.slice(x, [4, 8], [0, 0])
                x = pl.assemble(x, pl.mul(part, 10.0), [0, 0])
                x = pl.assemble(x, part, [4, 0])
                out = pl.store(x, [0, 0], out)
    """
    compiled = compile_text(text, {"a": ((8, 8), FP32), "out": ((8, 8), FP32)})
    a, out = counted(8, 8), torch.zeros(8, 8)
    compiled(a, out)
    torch.testing.assert_close(out, torch.cat((a[:4] * 10, a[:4])), rtol=0, atol=0)


def test_the_pad_value_surrounds_what_is_valid(compile_text: Any) -> None:
    """The valid region stays small; the rest of the memory holds the pad value."""
    text = """
        def slice_padded(a: pl.Tensor, out: pl.Out[pl.Tensor], all: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.load(a, [0, 0], [8, 8])
                part = pl.slice(x, [4, 8], [6, 4], clamp=True, pad_value=pl.PadValue.min)
                out = pl.store(part, [0, 0], out)
                wide = pl.set_validshape(part, 4, 8)
                all = pl.store(wide, [0, 0], all)
    """
    types = {"a": ((8, 8), FP32), "out": ((4, 8), FP32), "all": ((4, 8), FP32)}
    compiled = compile_text(text, types)
    a, out, whole = counted(8, 8), torch.full((4, 8), 7.0), torch.zeros(4, 8)
    compiled(a, out, whole)
    expected = torch.full((4, 8), 7.0)
    expected[:2, :4] = a[6:, 4:]
    torch.testing.assert_close(out, expected, rtol=0, atol=0)
    expected[expected == 7.0] = torch.finfo(torch.float32).min
    expected[:2, :4] = a[6:, 4:]
    torch.testing.assert_close(whole, expected, rtol=0, atol=0)


@pytest.mark.conforms("language.150")
@pytest.mark.parametrize("dtype", [FP32, FP16, BF16, INT8, INT64])
def test_parts_are_written_into_tiles(compile_text: Any, dtype: DataType) -> None:
    name = dtype.constant_name
    text = f"""
        def assemble_{name.lower()}(a: pl.Tensor, b: pl.Tensor, n: pl.Scalar[pl.INDEX],
                                    whole: pl.Out[pl.Tensor], old: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.load(a, [0, 0], [9, 20])
                part = pl.load(b, [0, 0], [4, 7], valid_shape=[3, 7])
                y = pl.tile.assemble(x, part, [n, 11])
                for i in pl.range(2):
                    y = pl.assemble(y, pl.slice(x, [1, 20], [i, 0]), [i + 1, 0])
                whole = pl.store(y, [0, 0], whole)
                old = pl.store(x, [0, 0], old)
    """
    shapes = {"a": (9, 20), "b": (4, 7), "whole": (9, 20), "old": (9, 20)}
    types: dict[str, object] = {k: (v, dtype) for k, v in shapes.items()}
    types = {"a": types["a"], "b": types["b"], "n": INDEX} | types
    kind = getattr(torch, dtype.torch_name)
    a, b = counted(9, 20, dtype=kind), counted(4, 7, dtype=kind) + 1
    whole, old = torch.zeros(9, 20, dtype=kind), torch.zeros(9, 20, dtype=kind)
    compile_text(text, types)(a, b, 5, whole, old)
    expected = a.clone()
    expected[5:8, 11:18] = b[:3]
    expected[1:3] = a[:2]
    torch.testing.assert_close(whole, expected, rtol=0, atol=0)
    torch.testing.assert_close(old, a, rtol=0, atol=0)


@pytest.mark.conforms("language.134")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [FP16, FP32])
def test_products_leave_acc_by_parts(compile_text: Any, dtype: DataType, target: str) -> None:
    name = dtype.constant_name
    text = f"""
        def acc_parts_{name.lower()}_{target}(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor],
                                              d: pl.Out[pl.Tensor], e: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                left = pl.load(a, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
                right = pl.load(b, [0, 0], [32, 16], target_memory=pl.Mem.Mat)
                acc = pl.matmul(left, right)
                wide = pl.create_tile([16, 32], dtype=pl.{name}, target_memory=pl.Mem.Mat)
                wide = pl.assemble(wide, acc, [0, 16])
                wide = pl.assemble(wide, acc, [0, 0])
                c = pl.store(pl.matmul(wide, right), [0, 0], c)
                vec = pl.full([4, 20], dtype=pl.FP32, value=2)
                vec = pl.assemble(vec, pl.slice(acc, [2, 16], [3, 0]), [1, 2])
                d = pl.store(vec, [0, 0], d)
                part = pl.slice(left, [5, 32], [8, 0])
                e = pl.store(pl.move(part, pl.Mem.Vec), [0, 0], e)
    """
    types = {
        "a": ((16, 32), dtype), "b": ((32, 16), dtype), "c": ((16, 16), FP32),
        "d": ((4, 20), FP32), "e": ((5, 32), dtype),
    }  # fmt: skip
    kind = getattr(torch, dtype.torch_name)
    a, b = (counted(16, 32) / 64).to(kind), (counted(32, 16) / 64).to(kind)
    c, d, e = torch.zeros(16, 16), torch.zeros(4, 20), torch.zeros(5, 32, dtype=kind)
    compile_text(text, types, backend_type=TARGETS[target])(a, b, c, d, e)
    product = a.double() @ b.double()
    rounded = product.to(kind).double()
    wide = torch.cat((rounded, rounded), dim=1)
    torch.testing.assert_close(c.double(), wide @ b.double(), rtol=1e-3, atol=1e-3)
    vec = torch.full((4, 20), 2.0)
    vec[1:3, 2:18] = product[3:5].float()
    torch.testing.assert_close(d, vec, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(e, a[8:13], rtol=0, atol=0)


@pytest.mark.conforms("language.150")
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("y = pl.slice(x, [9, 8], [n + 4, 0])", "TEXTRACT: a region of [9, 8] at [9, 0] does not"),
        ("y = pl.slice(x, [9, 8], [n - 6, 0])", "TEXTRACT: a region of [9, 8] at [-1, 0] does not"),
        ("y = pl.assemble(x, pl.slice(x, [9, 8], [0, 0]), [n + 4, 0])",
         "TINSERT: a region of [9, 8] at [9, 0] does not lie inside a tile of [16, 24]"),
    ],
)  # fmt: skip
def test_a_part_outside_the_tile_ends_the_run(
    compile_text: Any, statement: str, message: str
) -> None:
    text = f"""
        def outside(a: pl.Tensor, n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.load(a, [0, 0], [16, 24])
                {statement}
                out = pl.store(y, [0, 0], out)
    """
    types = {"a": ((16, 24), FP32), "n": INDEX, "out": ((16, 24), FP32)}
    compiled = compile_text(text, types)
    with pytest.raises(KernelFault) as caught:
        compiled(torch.zeros(16, 24), 5, torch.zeros(16, 24))
    assert message in str(caught.value)
    assert caught.value.line == 4


@pytest.mark.conforms("language.149", "language.150")
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("pl.slice(x, [8, 8], [10, 0])",
         "pl.slice: reads elements 10 to 18 of axis 0 of a tile of [16, 24]: out of range"),
        ("pl.slice(x, [8, 25], [0, n])",
         "pl.slice: reads 25 elements of axis 1 of a tile of [16, 24]: out of range"),
        ("pl.slice(x, [8, 8], [0, 0, 0])", "pl.slice: needs 2 offsets for a tile fp32[16, 24]"),
        ("pl.slice(x, [8], [0])", "a tile has two dimensions, but shape is [8]"),
        ("pl.slice(x, [8, 8], [0, 0], valid_shape=[9, 8])",
         "pl.slice: valid_shape[0] is 9, outside 0 to 8"),
        ("pl.slice(x, [8, 8], [0, 0], valid_shape=[8])", "valid_shape needs 2 extents, got 1"),
        ("pl.slice(x, [8, 8], [0, 0], drop_dims=[0])", "cannot drop axis 0 of a region of [8, 8]"),
        ("pl.slice(x, [8, 8], [-1, 0])", "pl.slice: offset 0 is -1; offsets count from 0"),
        ("pl.slice(x, [8, n], [0, 0])", "shape[1] must be an int known when the kernel is"),
        ("pl.assemble(x, a, [0, 0])", "cannot write a tensor fp32[16, 24] into a tile; load it"),
        ("pl.assemble(x, pl.cast(x, pl.FP16), [0, 0])",
         "pl.assemble: element types differ: the target is a tile fp32[16, 24] in Vec, the source "
         "a tile fp16[16, 24] in Vec; convert the source with pl.cast(x, pl.FP32)"),
        ("pl.assemble(pl.move(m, pl.Mem.Left), m, [0, 0])",
         "pl.assemble: cannot write into a tile fp32[16, 24] in Left; assemble in Vec or Mat"),
        ("pl.assemble(m, x, [0, 0])", "no way leads from Vec to Mat"),
        ("pl.assemble(x, x, [1, 0])",
         "pl.assemble: writes elements 1 to 17 of axis 0 of a tile of [16, 24]: out of range"),
        ("pl.slice(pl.move(m, pl.Mem.Left), [8, 8], [0, 0])",
         "pl.slice: cannot read a part of a tile fp32[16, 24] in Left; take it in Mat"),
    ],
)  # fmt: skip
def test_wrong_parts_say_so(compile_text: Any, expression: str, message: str) -> None:
    text = f"""
        def wrong_part(a: pl.Tensor, n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.load(a, [0, 0], [16, 24])
                m = pl.load(a, [0, 0], [16, 24], target_memory=pl.Mem.Mat)
                y = {expression}
                out = pl.store(x, [0, 0], out)
    """
    types = {"a": ((16, 24), FP32), "n": INDEX, "out": ((16, 24), FP32)}
    with pytest.raises(ParserError) as caught:
        compile_text(text, types)
    assert message in str(caught.value)
    assert caught.value.line == 5
