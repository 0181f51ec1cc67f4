"""Programs compiled with the SDK's own flags, as the loader will meet them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pypto
import pytest

SDK = Path(pypto.__file__).parent / "_sdk"

KERNEL = """
#include "pypto_rt/kernel_abi.h"
#include "pto/pto-inst.hpp"
using namespace pto;
extern "C" void kernel_entry(int64_t* args) {
  pypto_rt::guard_kernel(args, [&] {
    auto* x = reinterpret_cast<ChipTensor*>(args[0]);
    auto* y = reinterpret_cast<ChipTensor*>(args[1]);
    const int64_t rows = x->shapes[0];
    using T = Tile<TileType::Vec, float, 16, 16, BLayout::RowMajor, -1, -1>;
    T tile(rows, 16);
    TASSIGN(tile, 0);
    using G = GlobalTensor<float>;
    PTO_AT(3, "unit:kernel", 4, 5);
    TLOAD(tile, G(tensor_data<float>(x), Shape<>(1, 1, 1, rows, 16), Stride<>(0, 0, 0, 16, 1)));
    BODY
    PTO_AT(6, "unit:kernel", 7, 8);
    TSTORE(G(tensor_data<float>(y), Shape<>(1, 1, 1, rows, 16), Stride<>(0, 0, 0, 16, 1)), tile);
  });
}
"""

ORCHESTRATION = """
#include "pypto_rt/pto_orchestration_api.h"
extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs&) {
  return {.expected_arg_count = 3};
}
extern "C" void aicpu_orchestration_entry(const ChipTaskArgs& args) {
  PTO2_SCOPE() {
    CoreTaskArgs task;
    task.add_input(args.tensor(0).ref());
    task.add_output(args.tensor(1).ref());
    task.add_scalar(from_u64<float>(args.scalar(0)));
    rt_submit_aiv_task(0, task);
  }
}
"""

Compile = Callable[[str, str], Path]


def _compile(
    recipe: dict[str, object], extra: Sequence[str], sources: list[Path], out: Path
) -> Path:
    flags = [*recipe["flags"], *extra]
    includes = [f"-I{SDK / directory}" for directory in recipe["include_dirs"]]
    subprocess.run(
        ["g++", *flags, *includes, *map(str, sources), "-o", str(out)],
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    return out


@pytest.fixture(scope="session")
def targets() -> dict[str, dict[str, dict[str, object]]]:
    return json.loads((SDK / "sdk.json").read_text())["targets"]


@pytest.fixture(scope="session")
def compile_kernel(targets, tmp_path_factory) -> Compile:
    """``compile_kernel(name, body)``: a kernel that loads, runs the body on `tile`, and stores."""

    def compile_one(name: str, body: str, platform: str = "a2a3sim") -> Path:
        folder = tmp_path_factory.mktemp(name)
        source = folder / f"{name}.cpp"
        source.write_text(KERNEL.replace("BODY", body))
        recipe = targets[platform]["incore"]
        forced = ["-include", str(SDK / recipe["forced_header"]), recipe["admission"]]
        extra = [*forced, *recipe["core_flags"]["aiv"]]
        return _compile(recipe, extra, [source], folder / f"{name}.so")

    return compile_one


@pytest.fixture(scope="session")
def compile_orchestration(targets, tmp_path_factory) -> Callable[[str, str], Path]:
    def compile_one(name: str, text: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        source = folder / f"{name}.cpp"
        source.write_text(text)
        recipe = targets["a2a3sim"]["orchestration"]["tensormap_and_ringbuffer"]
        helpers = [SDK / helper for helper in recipe["helper_sources"]]
        return _compile(recipe, [], [source, *helpers], folder / f"{name}.so")

    return compile_one


@pytest.fixture(scope="session")
def orchestration(compile_orchestration) -> Path:
    return compile_orchestration("orchestration", ORCHESTRATION)


@pytest.fixture(scope="session")
def add_kernel(compile_kernel) -> Path:
    return compile_kernel(
        "add", "TADDS(tile, tile, from_u64<float>(static_cast<uint64_t>(args[2])));"
    )
