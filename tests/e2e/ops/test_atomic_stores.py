"""Stores that add: no addition of any core is lost, on both targets and runtimes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import RuntimeKind
from pypto.ir.dtypes import BF16, FP16, FP32, INT8, INT16, INT32

Tensor = torch.Tensor

settings = pytest.mark.parametrize(
    ("platform", "runtime"),
    [
        ("a2a3sim", RuntimeKind.HOST_BUILD_GRAPH),
        ("a2a3sim", RuntimeKind.TENSORMAP_AND_RINGBUFFER),
        ("a5sim", RuntimeKind.TENSORMAP_AND_RINGBUFFER),
    ],
)


@pytest.mark.conforms("language.80")
@settings
@pytest.mark.parametrize("dtype", [FP32, INT32])
def test_blocks_add_to_one_tensor(
    compile_text: Any, dtype: Any, platform: str, runtime: RuntimeKind
) -> None:
    """Whole numbers, so that the sum is exact in any order."""
    compiled = compile_text(
        """
        def entry(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
            for i in pl.spmd(512):
                tile = pl.load(x, [i, 0, 0], [1, 8, 64])
                out = pl.store(tile, [0, 0], out, atomic=pl.AtomicType.Add)
            return out
        """,
        {"x": ((512, 8, 64), dtype), "out": ((8, 64), dtype)},
        platform=platform,
        runtime=runtime,
    )
    element = getattr(torch, dtype.torch_name)
    x = torch.randint(-50, 50, (512, 8, 64)).to(element)
    out = torch.randint(-50, 50, (8, 64)).to(element)
    want = out + x.sum(0).to(element)
    compiled(x, out)
    assert torch.equal(out, want)


@pytest.mark.conforms("language.80")
@pytest.mark.parametrize("dtype", [FP16, BF16, INT16, INT8])
def test_elements_of_two_bytes_and_of_one_are_added_too(compile_text: Any, dtype: Any) -> None:
    compiled = compile_text(
        """
        def entry(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
            for i in pl.spmd(100):
                tile = pl.load(x, [0, 0], [4, 64])
                out = pl.store(tile, [0, 0], out, atomic=pl.AtomicType.Add)
            return out
        """,
        {"x": ((4, 64), dtype), "out": ((4, 64), dtype)},
    )
    element = getattr(torch, dtype.torch_name)
    x = torch.randint(0, 2, (4, 64)).to(element)
    out = torch.ones(4, 64, dtype=element)
    compiled(x, out)
    assert torch.equal(out, (1 + 100 * x.to(torch.int32)).to(element))


FORMS = {
    "tasks of a parallel loop": """
        def entry(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
            for i in pl.range(16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    tile = pl.load(x, [i * 8, 0], [8, 64])
                    out = pl.store(tile, [0, 0], out, atomic=pl.AtomicType.Add)
            return out
        """,
    "tasks that nothing orders": """
        def entry(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
            with pl.manual_scope():
                for i in pl.range(16):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        tile = pl.load(x, [i * 8, 0], [8, 64])
                        out = pl.store(tile, [0, 0], out, atomic=pl.AtomicType.Add)
            return out
        """,
    "a value of the tensor level": """
        def entry(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
            for i in pl.spmd(16):
                part = pl.add(pl.slice(x, [8, 64], [i * 8, 0]), 0.0)
                out = pl.assemble(out, part, [0, 0], atomic=pl.AtomicType.Add)
            return out
        """,
    "a tile that is assembled": """
        def entry(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
            for i in pl.spmd(16):
                tile = pl.load(x, [i * 8, 0], [8, 64])
                out = pl.assemble(out, tile, [0, 0], atomic=pl.AtomicType.Add)
            return out
        """,
    "a plain store before": """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                zero = pl.full([8, 64], pl.FP32, 0)
                out = pl.store(zero, [0, 0], out, atomic=pl.AtomicType.None_)
            for i in pl.spmd(16):
                tile = pl.load(x, [i * 8, 0], [8, 64])
                out = pl.store(tile, [0, 0], out, atomic=pl.AtomicType.Add)
            return out
        """,
}


@pytest.mark.conforms("language.80")
@settings
@pytest.mark.parametrize("form", FORMS)
def test_every_form_adds(compile_text: Any, form: str, platform: str, runtime: RuntimeKind) -> None:
    compiled = compile_text(
        FORMS[form],
        {"x": ((128, 64), FP32), "out": ((8, 64), FP32)},
        platform=platform,
        runtime=runtime,
    )
    x = torch.randint(-50, 50, (128, 64)).float()
    out = torch.randint(-50, 50, (8, 64)).float()
    before = torch.zeros_like(out) if "plain store" in form else out.clone()
    compiled(x, out)
    assert torch.equal(out, before + x.reshape(16, 8, 64).sum(0))


@settings
@pytest.mark.parametrize("dtype", [FP32, FP16])
def test_a_matrix_product_is_summed_over_parts_of_k(
    compile_text: Any, dtype: Any, platform: str, runtime: RuntimeKind
) -> None:
    """Split-K: every block multiplies a part of the inner axis and adds its product."""
    compiled = compile_text(
        """
        def entry(a: pl.Tensor, b: pl.Tensor, out: pl.InOut[pl.Tensor]):
            for k in pl.spmd(8):
                left = pl.load(a, [0, k * 32], [32, 32], target_memory=pl.Mem.Mat)
                right = pl.load(b, [k * 32, 0], [32, 48], target_memory=pl.Mem.Mat)
                part = pl.matmul(pl.move(left, pl.Mem.Left), pl.move(right, pl.Mem.Right))
                out = pl.store(part, [0, 0], out, atomic=pl.AtomicType.Add)
            return out
        """,
        {"a": ((32, 256), dtype), "b": ((256, 48), dtype), "out": ((32, 48), dtype)},
        platform=platform,
        runtime=runtime,
    )
    element = getattr(torch, dtype.torch_name)
    # Sums of at most 256 ones, which every type holds exactly.
    a, b = (torch.randint(-1, 2, shape).to(element) for shape in ((32, 256), (256, 48)))
    out = torch.zeros(32, 48, dtype=element)
    compiled(a, b, out)
    assert torch.equal(out, (a.float() @ b.float()).to(element))
