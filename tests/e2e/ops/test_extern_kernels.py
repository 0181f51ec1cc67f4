"""Kernels written in C++, against torch."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pypto.language as pl
import pytest
import torch
from pypto import ir
from pypto.ir.structure import assert_structural_equal
from pypto.language.parser.diagnostics.exceptions import ParserError
from pypto.runtime import KernelFault, RunConfig
from pypto.runtime.compiled_program import CompiledProgram

PLATFORMS = ("a2a3sim", "a5sim")

UNPACK = """
#pragma once
inline ChipTensor* tensor(int64_t arg) { return reinterpret_cast<ChipTensor*>(arg); }
template <class T>
T* data(int64_t arg) { return tensor_data<T>(tensor(arg)); }
template <class T>
T scalar(int64_t arg) { return from_u64<T>(static_cast<uint64_t>(arg)); }
inline int64_t count(int64_t arg) {
  int64_t all = 1;
  for (int axis = 0; axis < tensor(arg)->ndims; ++axis) all *= tensor(arg)->shapes[axis];
  return all;
}
"""

# A family of tiles on whole matrices of R x C, for kernels that use the instruction set.
TILES = """
#pragma once
#include <pto/pto-inst.hpp>
using namespace pto;
template <int R, int C>
using Matrix = GlobalTensor<float, Shape<1, 1, 1, R, C>, Stride<1, 1, 1, C, 1>, Layout::ND>;
template <int R, int C>
Matrix<R, C> matrix(float* data) {
  return Matrix<R, C>(data, Shape<1, 1, 1, R, C>(), Stride<1, 1, 1, C, 1>());
}
template <int R, int C>
using Vector = Tile<TileType::Vec, float, R, C>;
"""


def quarters(*shape: int, seed: int = 0) -> torch.Tensor:
    """Multiples of 1/4 below 16 in size: what is computed of them here is exact in fp32.

    So a result is the same in any order of its operations, fused or not, and is compared exactly.
    """
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-63, 64, shape, generator=generator).float() / 4


class Project:
    """A directory with sources and one module of kernels."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.write("unpack.h", UNPACK)
        self.write("tiles.h", TILES)

    def write(self, name: str, text: str) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def kernels(self, text: str) -> ModuleType:
        """The module whose text follows ``import pypto.language as pl``."""
        self.write("kernels.py", "import pypto.language as pl\n\n" + text)
        spec = importlib.util.spec_from_file_location("extern_kernels", self.top / "kernels.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["extern_kernels"] = module
        spec.loader.exec_module(module)
        return module


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    yield Project(tmp_path / "project")
    sys.modules.pop("extern_kernels", None)


def run(kernel: Any, *args: Any, platform: str = "a2a3sim") -> None:
    with pytest.warns(DeprecationWarning, match="platform"):
        config = RunConfig(platform=platform)
    kernel(*args, config=config)


AXPY = """
#include "unpack.h"
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const float* x = data<float>(args[0]);
  const float* y = data<float>(args[1]);
  float* out = data<float>(args[2]);
  const auto a = scalar<float>(args[3]);
  const auto n = scalar<int32_t>(args[4]);
  for (int64_t i = 0; i < count(args[0]); ++i) out[i] = i < n ? a * x[i] + y[i] : y[i];
}
"""
AXPY_STUB = """
@pl.jit.extern(core_type="%s", source="axpy.cpp")
def axpy(
    a: pl.Scalar[pl.FP32],
    x: pl.Tensor,
    n: pl.Scalar[pl.INT32],
    y: pl.Tensor,
    out: pl.Out[pl.Tensor],
):
    \"\"\"a * x + y for the first n elements.\"\"\"
    ...


@pl.jit
def kernel(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor], a: pl.Scalar[pl.FP32]):
    out = axpy(a, x, 100, y, out)
    return out
"""


@pytest.mark.conforms("language.155")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("core_type", ["aiv", "aic"])
def test_tensors_come_first_and_scalars_after(
    project: Project, platform: str, core_type: str
) -> None:
    project.write("axpy.cpp", AXPY)
    module = project.kernels(AXPY_STUB % core_type)
    x, y, out = quarters(7, 33), quarters(7, 33, seed=1), torch.zeros(7, 33)
    run(module.kernel, x, y, out, 1.5, platform=platform)
    expected = y.clone().flatten()
    expected[:100] += 1.5 * x.flatten()[:100]
    assert torch.equal(out.flatten(), expected)


DYNAMIC = """
M = pl.dynamic("M")


@pl.jit.extern(core_type="aiv", source="double.cpp")
def double(x: pl.InOut[pl.Tensor[[M, 4], pl.INT32]]): ...


@pl.jit
def kernel(x: pl.InOut[pl.Tensor]):
    x.bind_dynamic(0, M)
    x = double(x)
    x = double(x)
    return x
"""


def test_run_time_extents_are_in_the_tensor_and_writes_are_ordered(project: Project) -> None:
    project.write(
        "double.cpp",
        '#include "unpack.h"\nextern "C" void kernel_entry(int64_t* args) {\n'
        "  for (int64_t i = 0; i < count(args[0]); ++i) data<int32_t>(args[0])[i] *= 2;\n}\n",
    )
    module = project.kernels(DYNAMIC)
    for rows in (3, 50):
        x = torch.arange(rows * 4, dtype=torch.int32).reshape(rows, 4)
        expected = x * 4
        run(module.kernel, x)
        assert torch.equal(x, expected)


SAME_NAME = """
@pl.jit.extern(core_type="aiv", source="one/step.cpp", include_dirs=["shared", "first"])
def one(x: pl.Tensor, out: pl.Out[pl.Tensor]): ...


@pl.jit.extern(core_type="aiv", source="two/step.cpp", include_dirs=["shared", "second"])
def two(x: pl.Tensor, out: pl.Out[pl.Tensor]): ...


@pl.jit
def both(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    between = pl.create_tensor([16, 64])
    between = one(x, between)
    out = two(between, out)
    return out


@pl.jit
def second(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    between = pl.create_tensor([16, 64])
    with pl.at(level=pl.Level.CORE_GROUP):
        between = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 3.0), [0, 0], between)
    out = two(between, out)
    return out
"""


def test_files_of_one_name_and_a_shared_header_stay_apart(project: Project) -> None:
    for name, factor in (("one", 2), ("two", 10)):
        project.write(
            f"{name}/step.cpp",
            '#include "../unpack.h"\n#include "step.h"\n#include <scale.h>\n'
            'extern "C" void kernel_entry(int64_t* args) {\n'
            "  for (int64_t i = 0; i < count(args[0]); ++i)\n"
            "    data<float>(args[1])[i] = scaled(data<float>(args[0])[i]) + OFFSET;\n}\n",
        )
        project.write(f"{name}/step.h", f"#define OFFSET {factor + 1}.0f\n")
    # Found through another include directory, whose file of the same name is not the same.
    project.write("shared/scale.h", '#include "factor.h"\n#define scaled(x) ((x) * (FACTOR))\n')
    project.write("first/factor.h", "#define FACTOR 2.0f\n")
    project.write("second/factor.h", "#define FACTOR 10.0f\n")
    module = project.kernels(SAME_NAME)
    x, out = quarters(16, 64), torch.zeros(16, 64)
    run(module.both, x, out)
    assert torch.equal(out, (x * 2 + 3) * 10 + 11)
    run(module.second, x, out)
    assert torch.equal(out, (x * 3) * 10 + 11)


INSTRUCTIONS = """
#include "unpack.h"
#include "tiles.h"
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  Vector<16, 64> a, b;
  TASSIGN(a, 0);
  TASSIGN(b, 4096);
  TLOAD(a, matrix<16, 64>(data<float>(args[0])));
  TADD(b, a, a);
  auto out = matrix<16, 64>(data<float>(args[1]));
  TSTORE(out, b);
}
"""
INSTRUCTIONS_STUB = """
@pl.jit.extern(core_type="aiv", source="add.cpp")
def add(x: pl.Tensor, out: pl.Out[pl.Tensor]): ...


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = add(x, out)
    return out
"""


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_instruction_set_is_there(project: Project, platform: str) -> None:
    project.write("add.cpp", INSTRUCTIONS)
    module = project.kernels(INSTRUCTIONS_STUB)
    x, out = quarters(16, 64), torch.zeros(16, 64)
    run(module.kernel, x, out, platform=platform)
    assert torch.equal(out, x + x)


def test_a_fault_of_an_instruction_ends_the_run_at_the_declaration(project: Project) -> None:
    project.write("add.cpp", INSTRUCTIONS)
    module = project.kernels(INSTRUCTIONS_STUB)
    small = torch.zeros(8, 64)
    for _ in range(2):  # the chip is as good as new after it
        with pytest.raises(KernelFault) as caught:
            run(module.kernel, small, torch.zeros(16, 64))
        assert caught.value.kernel == "add"
        assert caught.value.location is not None
        assert caught.value.location.file == str(project.top / "kernels.py")
        assert "def add" in str(caught.value)
    out = torch.zeros(16, 64)
    run(module.kernel, torch.ones(16, 64), out)
    assert torch.equal(out, torch.full((16, 64), 2.0))


CUBE = """
#include "../unpack.h"
#include "../tiles.h"
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
#ifndef __DAV_CUBE__
#error "this is for the matrix core"
#endif
  using Mat = Tile<TileType::Mat, float, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor>;
  Mat a, b;
  Tile<TileType::Left, float, 32, 32, BLayout::RowMajor, 32, 32, SLayout::RowMajor> left;
  Tile<TileType::Right, float, 32, 32, BLayout::RowMajor, 32, 32, SLayout::ColMajor> right;
  Tile<TileType::Acc, float, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor, 1024> c;
  TASSIGN(a, 0);
  TASSIGN(b, 4096);
  TASSIGN(left, 0);
  TASSIGN(right, 0);
  TASSIGN(c, 0);
  TLOAD(a, matrix<32, 32>(data<float>(args[0])));
  TLOAD(b, matrix<32, 32>(data<float>(args[1])));
  TMOV(left, a);
  TMOV(right, b);
  TMATMUL(c, left, right);
  auto out = matrix<32, 32>(data<float>(args[2]));
  TSTORE(out, c);
}
"""
LANES = """
#include "intrinsic.h"
#include "../unpack.h"
// Each vector core does half of the rows, and says which it was.
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
#ifndef __DAV_VEC__
#error "this is for vector cores"
#endif
  const int lane = get_sub_block_id(args);
  for (int64_t i = lane * 512; i < (lane + 1) * 512; ++i) {
    data<float>(args[3])[i] = data<float>(args[0])[i] + scalar<float>(args[4]) + lane;
  }
}
"""
MIXED_STUB = """
@pl.jit.extern(
    core_type="mixed",
    aic_source="parts/cube.cpp",
    aiv_source="parts/lanes.cpp",
    dual_aiv_dispatch=%s,
)
def step(
    x: pl.Tensor,
    y: pl.Tensor,
    product: pl.Out[pl.Tensor],
    total: pl.InOut[pl.Tensor],
    a: pl.Scalar[pl.FP32],
): ...


@pl.jit
def kernel(
    x: pl.Tensor,
    y: pl.Tensor,
    product: pl.Out[pl.Tensor],
    total: pl.InOut[pl.Tensor],
    a: pl.Scalar[pl.FP32],
):
    product, total = step(x, y, product, total, a)
    with pl.at(level=pl.Level.CORE_GROUP):
        both = pl.add(pl.load(product, [0, 0], [32, 32]), pl.load(total, [0, 0], [32, 32]))
        total = pl.store(both, [0, 0], total)
    return product, total
"""


@pytest.mark.conforms("language.155")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dual", [False, True])
def test_a_mixed_kernel_runs_on_a_matrix_and_on_vector_cores(
    project: Project, platform: str, dual: bool
) -> None:
    project.write("parts/cube.cpp", CUBE)
    project.write("parts/lanes.cpp", LANES)
    module = project.kernels(MIXED_STUB % dual)
    x, y = quarters(32, 32), quarters(32, 32, seed=1)
    product, total = torch.zeros(32, 32), torch.full((32, 32), 7.0)
    run(module.kernel, x, y, product, total, 0.5, platform=platform)
    assert torch.equal(product, x @ y)
    lanes = torch.full((32, 32), 7.0)
    lanes[:16] = x[:16] + 0.5
    if dual:
        lanes[16:] = x[16:] + 0.5 + 1
    # What follows waited for all of them.
    assert torch.equal(total, product + lanes)


CALLS = """
@pl.jit.extern(core_type="aiv", source="any.cpp")
def stub(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor], a: pl.Scalar[pl.INT32]): ...


@pl.jit.extern(core_type="aiv", source="any.cpp")
def busy(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    y = x


@pl.jit.extern(core_type="aiv", source="any.cpp")
def silent(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    \"\"\"No dots.\"\"\"


@pl.jit.extern(core_type="aiv", source="any.cpp")
def constant(x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.constexpr): ...


@pl.jit.extern(core_type="aiv", source="any.cpp")
def bare(x, out: pl.Out[pl.Tensor]): ...


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor], s: pl.Scalar[pl.FP32]):
    %s
    return out
"""


@pytest.mark.parametrize(
    ("call", "line", "message"),
    [
        ("out = stub(x, out)", "out = stub(x, out)", "missing argument 'a'"),
        ("out = stub(x, out, 1, 2)", "out = stub", "3 positional arguments"),
        ("out = stub(x, out, s)", "out = stub(x, out, s)", "argument 'a'"),
        ("out = stub(out, out, 1)", "out = stub(out, out, 1)", r"\[8, 64\]"),
        ("out = stub(x, 3, 1)", "out = stub(x, 3, 1)", "'out' must be a tensor"),
        ("out = busy(x, out)", "y = x", "must be '...'"),
        ("out = silent(x, out)", "def silent", "must be '...'"),
        ("out = constant(x, out, 3)", "def constant", "'n' .* must be annotated"),
        ("out = bare(x, out)", "def bare", "'x' .* must be annotated"),
    ],
)
def test_a_wrong_call_is_reported_at_the_users_line(
    project: Project, call: str, line: str, message: str
) -> None:
    project.write("any.cpp", "")
    module = project.kernels(CALLS % call)
    with pytest.raises(ParserError, match=message) as caught:
        run(module.kernel, torch.zeros(16, 64), torch.zeros(8, 64), 1.0)
    assert caught.value.file == str(project.top / "kernels.py")
    assert line in caught.value.source_line


DOUBLE = """
#include "unpack.h"
extern "C" void kernel_entry(int64_t* args) {
  for (int64_t i = 0; i < count(args[0]); ++i) data<float>(args[0])[i] *= FACTOR;
}
"""
WAYS = """
import types


def double_by(source):
    @pl.jit.extern(core_type="aiv", source=source)
    def double(x: pl.InOut[pl.Tensor]): ...

    return double


library = types.SimpleNamespace(double=double_by("double.cpp"))
alias = library.double


@pl.jit.inline
def twice(x: pl.Tensor):
    x = alias(x)
    x = alias(x=x)
    return x


def factory():
    triple = double_by("triple.cpp")

    @pl.jit
    def kernel(x: pl.InOut[pl.Tensor], n: pl.Scalar[pl.INT32]):
        x = library.double(x)
        x = twice(x)
        for i in pl.range(n):
            x = triple(x)
        return x

    return kernel


kernel = factory()
"""


def test_an_extern_kernel_is_found_like_any_helper(project: Project) -> None:
    project.write("double.cpp", DOUBLE.replace("FACTOR", "2"))
    project.write("triple.cpp", DOUBLE.replace("FACTOR", "3"))
    module = project.kernels(WAYS)
    x = torch.ones(4, 8)
    run(module.kernel, x, 2)
    assert torch.equal(x, torch.full((4, 8), 2.0**3 * 3.0**2))
    # Both were declared by one function, so both are called `double`; each is itself.
    project.write("triple.cpp", DOUBLE.replace("FACTOR", "5"))
    run(module.kernel, x, 1)
    assert torch.equal(x, torch.full((4, 8), 2.0**3 * 3.0**2 * 2.0**3 * 5.0))


def test_a_program_can_be_compiled_by_itself(project: Project, tmp_path: Path) -> None:
    project.write("axpy.cpp", AXPY)
    module = project.kernels(AXPY_STUB % "aiv")
    x, y, out = quarters(7, 33), quarters(7, 33, seed=1), torch.zeros(7, 33)
    program = module.kernel.specialize(x, y, out, 0.0)
    compiled = ir.compile(program, output_dir=tmp_path / "out", platform="a5sim")
    compiled(x, y, out, 2.0)
    assert torch.equal(out.flatten()[:100], (2.0 * x + y).flatten()[:100])
    dumped = pl.loads(tmp_path / "out" / "passes_dump" / "00_frontend.py")
    assert_structural_equal(dumped, program)
    # An edit of the copy counts, as it does for other sources of an output directory.
    (source,) = (tmp_path / "out" / "extern").rglob("axpy.cpp")
    source.write_text(source.read_text().replace("a * x[i]", "a * a * x[i]"))
    CompiledProgram.from_dir(tmp_path / "out")(x, y, out, 2.0)
    assert torch.equal(out.flatten()[:100], (4.0 * x + y).flatten()[:100])
