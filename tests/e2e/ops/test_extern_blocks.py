"""Kernels in C++ that run in blocks: what they are told, on one core and on a whole cluster."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from pypto.language.parser.diagnostics.exceptions import UnsupportedFeatureError

SOURCE = """
#include "intrinsic.h"
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  auto* out = reinterpret_cast<ChipTensor*>(args[0]);
  int32_t* row = tensor_data<int32_t>(out) + get_block_idx(args) * out->strides[0];
  row[ROW + get_sub_block_id(args)] = 1000 * get_block_num(args) + get_block_idx(args);
}
"""

KERNELS = """
import pypto.language as pl


@pl.jit.extern(core_type="aiv", source="vector.cpp")
def marks(out: pl.InOut[pl.Tensor]): ...


@pl.jit.extern(
    core_type="mixed", aic_source="cube.cpp", aiv_source="vector.cpp", dual_aiv_dispatch=True
)
def marks_of_clusters(out: pl.InOut[pl.Tensor]): ...


@pl.jit
def one_core(n: pl.Scalar[pl.INT32], out: pl.InOut[pl.Tensor[[64, 4], pl.INT32]]):
    with pl.spmd(n):
        out = marks(out)
    return out


@pl.jit
def clusters(n: pl.Scalar[pl.INT32], out: pl.InOut[pl.Tensor[[64, 4], pl.INT32]]):
    out, tid = pl.spmd_submit(marks_of_clusters, out, core_num=n)
    return out


@pl.jit
def in_a_loop(n: pl.Scalar[pl.INT32], out: pl.InOut[pl.Tensor[[64, 4], pl.INT32]]):
    for i in pl.spmd(n):
        out = marks(out)
    return out
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vector.cpp").write_text(SOURCE.replace("ROW", "0"))
    (tmp_path / "cube.cpp").write_text(SOURCE.replace("ROW", "2"))
    (tmp_path / "block_kernels.py").write_text(KERNELS)
    spec = importlib.util.spec_from_file_location("block_kernels", tmp_path / "block_kernels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["block_kernels"] = module
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("block_kernels")


def test_a_kernel_knows_its_block_and_how_many_there_are(kernels: ModuleType) -> None:
    out = torch.zeros(64, 4, dtype=torch.int32)
    kernels.one_core(50, out)
    want = torch.zeros_like(out)
    want[:50, 0] = 50_000 + torch.arange(50)
    assert torch.equal(out, want)


def test_every_core_of_a_cluster_runs_every_block(kernels: ModuleType) -> None:
    out = torch.zeros(64, 4, dtype=torch.int32)
    kernels.clusters(64, out)
    want = torch.zeros_like(out)
    want[:, :3] = (64_000 + torch.arange(64))[:, None]
    assert torch.equal(out, want)


def test_a_kernel_in_cpp_is_no_part_of_a_block(kernels: ModuleType) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        kernels.in_a_loop(4, torch.zeros(64, 4, dtype=torch.int32))
    assert "'marks' is a kernel in C++, so its call is the only statement" in caught.value.message
    lines = Path("block_kernels.py").read_text().splitlines()
    assert lines[caught.value.line - 1].strip() == "out = marks(out)"
