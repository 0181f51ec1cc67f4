"""Programs that are written as classes, and opaque functions of ``pl.jit``, on both targets."""

from __future__ import annotations

import re
from pathlib import Path

import pypto.language as pl
import pytest
import torch
from pypto import ir
from pypto.backend import BackendType
from pypto.ir.errors import CompileError
from pypto.runtime import RunConfig

PLATFORMS = ("a2a3sim", "a5sim")
M = pl.dynamic("M")


@pl.function(type=pl.FunctionType.InCore)
def scaled(
    x: pl.Tensor[[16, 64], pl.FP32],
    factor: pl.Scalar[pl.FP32],
    out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
) -> pl.Tensor[[16, 64], pl.FP32]:
    return pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), factor), [0, 0], out)


@pl.inline
def twice(tile):
    return pl.add(tile, tile)


@pl.program
class Chained:
    """out = ((2 x) * factor + x) twice over, in kernels of every kind."""

    @pl.function(type=pl.FunctionType.InCore)
    def doubled(
        self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        return pl.store(twice(pl.load(x, [0, 0], [16, 64])), [0, 0], out)

    @pl.function
    def plus(
        self,
        x: pl.Tensor[[M, 64], pl.FP32],
        y: pl.Tensor[[M, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[M, 64], pl.FP32]],
    ):
        rows = pl.tensor.dim(x, 0)
        between = pl.create_tensor([rows, 64], dtype=pl.FP32)
        for i in pl.range(0, rows, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                tile = pl.add(pl.load(x, [i, 0], [8, 64]), pl.load(y, [i, 0], [8, 64]))
                between = pl.store(tile, [i, 0], between)
        for i in pl.range(0, rows, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(between, [i, 0], [16, 64]), [i, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 64], pl.FP32],
        factor: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        first = self.doubled(x, pl.create_tensor([16, 64], dtype=pl.FP32))
        second = scaled(first, factor, pl.create_tensor([16, 64], dtype=pl.FP32))
        third = self.plus(second, x, pl.create_tensor([16, 64], dtype=pl.FP32))
        out = self.plus(third, third, out)
        return out


@pytest.mark.conforms("language.53")
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_program_class_runs(platform: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    compiled = ir.compile(Chained, platform=platform, output_dir=tmp_path, dump_passes=False)
    x, out = torch.rand(16, 64), torch.zeros(16, 64)
    compiled(x, 3.0, out)
    torch.testing.assert_close(out, 2 * (6 * x + x))
    torch.testing.assert_close(compiled(x, 3.0), out)


@pl.program
class OnlyOpaque:
    @pl.function
    def main(self, x: pl.Tensor[[M, 16], pl.FP32], out: pl.Out[pl.Tensor[[M, 16], pl.FP32]]):
        for i in pl.range(0, M, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.exp(pl.load(x, [i, 0], [8, 16])), [i, 0], out)


@pytest.mark.conforms("language.55")
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_program_without_orchestration_is_entered_by_its_opaque_function(
    platform: str, tmp_path: Path
) -> None:
    torch.manual_seed(4)
    compiled = ir.compile(OnlyOpaque, platform=platform, output_dir=tmp_path, dump_passes=False)
    x, out = torch.rand(24, 16), torch.zeros(24, 16)
    compiled(x, out)
    torch.testing.assert_close(out, x.exp())


@pytest.mark.conforms("language.55")
def test_a_program_of_kernels_alone_cannot_be_compiled(tmp_path: Path) -> None:
    @pl.program
    class Kernels:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: pl.Tensor[[16, 16], pl.FP32]):
            pl.load(x, [0, 0], [16, 16])

    with pytest.raises(
        CompileError,
        match=re.escape(
            "the program 'Kernels' has nothing to run: 'kernel' is a core function; add a function "
            "with type=pl.FunctionType.Orchestration that calls it"
        ),
    ):
        ir.compile(Kernels, output_dir=tmp_path)


@pytest.mark.conforms("language.46")
def test_errors_of_the_compiler_name_the_users_line(tmp_path: Path) -> None:
    text = (
        "import pypto.language as pl\n"
        "@pl.program\n"
        "class P:\n"
        "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        "    def main(self, x: pl.Tensor[[16, 16], pl.FP32]):\n"
        "        y = pl.add(x, x)\n"
    )
    with pytest.raises(CompileError, match=r"^user\.py:6:13: Misplaced tensor op 'tensor\.add'"):
        ir.compile(pl.parse(text, "user.py"), output_dir=tmp_path)


@pl.jit.opaque
def stage(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows = x.shape[0]
    for i in pl.range(0, rows, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.add(pl.load(x, [i, 0], [8, 16]), 1.0), [i, 0], out)
    return out


@pl.jit
def staged(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    first = pl.create_tensor([16, 16], dtype=pl.FP32)
    first = stage(x, first)
    out = stage(first, out)
    return out


@pytest.mark.conforms("language.51")
@pytest.mark.parametrize("arch", BackendType)
def test_an_opaque_function_of_a_jit_kernel(arch: BackendType) -> None:
    torch.manual_seed(5)
    x, out = torch.rand(16, 16), torch.zeros(16, 16)
    staged(x, out, config=RunConfig(arch=arch))
    torch.testing.assert_close(out, x + 2.0)
    program = staged.specialize(x, out)
    assert program.functions["stage"].func_type is pl.FunctionType.Opaque
    assert "stage" not in staged.lower(x, out).functions
