"""Programs written by hand: what the code generator would write, without it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pypto.backend import RuntimeKind, target_of
from pypto.ir.dtypes import FP32, INT32
from pypto.ir.nodes import Direction
from pypto.ir.param_info import DYNAMIC, ParamInfo
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.kernel_config import KernelConfig, KernelEntry, OrchestrationEntry

sys.path.insert(0, os.path.dirname(__file__))

SCALE = """
#include "pypto_rt/kernel_abi.h"
#include "pto/sim/fault.hpp"
extern "C" PYPTO_KERNEL_EXPORT void kernel_entry(__gm__ int64_t* args) {
  pypto_rt::guard_kernel(args, [&] {
    auto* x = reinterpret_cast<ChipTensor*>(args[0]);
    auto* out = reinterpret_cast<ChipTensor*>(args[1]);
    const float factor = from_u64<float>(args[2]);
    const int32_t fault = from_u64<int32_t>(args[3]);
    PTO_AT(7, "kernels:scale", 3, 4);
    if (fault != 0) pto::sim::fault_value("tload", "row 9 of 8");
    for (uint32_t i = 0; i < x->shapes[0]; ++i) {
      tensor_data<float>(out)[i] = tensor_data<float>(x)[i] * factor + OFFSET;
    }
  });
}
"""

ORCHESTRATION = """
#include "pypto_rt/pto_orchestration_api.h"
extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs&) { return {4}; }
extern "C" void aicpu_orchestration_entry(const ChipTaskArgs& orch_args) {
  CoreTaskArgs args;
  args.add_input(orch_args.tensor(0).ref());
  args.add_output(orch_args.tensor(1).ref());
  args.add_scalar(from_u64<float>(orch_args.scalar(0)));
  args.add_scalar(from_u64<int32_t>(orch_args.scalar(1)));
  rt_submit_aiv_task(0, args);
}
"""

# Many short tasks one after the other, so that a run lasts about as long as it is told.
SLOW = """
#include "pypto_rt/kernel_abi.h"
#include <time.h>
extern "C" PYPTO_KERNEL_EXPORT void kernel_entry(__gm__ int64_t* args) {
  pypto_rt::guard_kernel(args, [&] {
    auto* out = reinterpret_cast<ChipTensor*>(args[0]);
    const timespec pause{0, 2000000};
    nanosleep(&pause, nullptr);
    tensor_data<float>(out)[0] += 1;
  });
}
"""

SLOW_ORCHESTRATION = """
#include "pypto_rt/pto_orchestration_api.h"
extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs&) { return {2}; }
extern "C" void aicpu_orchestration_entry(const ChipTaskArgs& orch_args) {
  for (int32_t i = 0; i < from_u64<int32_t>(orch_args.scalar(0)); ++i) {
    CoreTaskArgs args;
    args.add_inout(orch_args.tensor(0).ref());
    rt_submit_aiv_task(0, args);
  }
}
"""


def write_program(
    root: Path,
    *,
    platform: str,
    runtime: RuntimeKind,
    name: str,
    kernel: str,
    orchestration: str,
    params: tuple[ParamInfo, ...],
) -> Path:
    """An output directory with one vector kernel."""
    signature = tuple(param.direction for param in params if param.is_tensor)
    config = KernelConfig(
        platform=platform,
        runtime=runtime,
        aicpu_thread_num=0,
        orchestration=OrchestrationEntry(
            f"orchestration/{name}.cpp", "aicpu_orchestration_entry", signature
        ),
        kernels=(KernelEntry(0, name, f"kernels/aiv/{name}.cpp", "aiv", signature),),
    )
    meta = CompiledMeta(params, 1, platform, target_of(platform).backend_type)
    texts = {config.kernels[0].source: kernel, config.orchestration.source: orchestration}
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "kernel_config.json").write_bytes(config.to_json())
    meta.write(root)
    return root


@pytest.fixture
def scale(tmp_path: Path) -> Callable[..., Path]:
    """Makes ``out = x * factor + offset`` over one run-time extent; ``fault`` makes it fail."""

    def make(
        offset: int = 0,
        *,
        name: str = "scale",
        platform: str = "a2a3sim",
        runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER,
        extent: int = DYNAMIC,
    ) -> Path:
        symbols = ("N",) if extent == DYNAMIC else (None,)
        return write_program(
            tmp_path / "output",
            platform=platform,
            runtime=runtime,
            name=name,
            kernel=SCALE.replace("OFFSET", str(offset)),
            orchestration=ORCHESTRATION,
            params=(
                ParamInfo("x", Direction.In, (extent,), FP32, symbols),
                ParamInfo("factor", Direction.In, None, FP32),
                ParamInfo("fault", Direction.In, None, INT32),
                ParamInfo("out", Direction.Out, (extent,), FP32, symbols),
            ),
        )

    return make


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Makes a program whose run takes about 2 ms for each of ``count`` tasks."""
    return write_program(
        tmp_path / "slow",
        platform="a2a3sim",
        runtime=RuntimeKind.TENSORMAP_AND_RINGBUFFER,
        name="slow",
        kernel=SLOW,
        orchestration=SLOW_ORCHESTRATION,
        params=(
            ParamInfo("count", Direction.In, None, INT32),
            ParamInfo("out", Direction.InOut, (1,), FP32),
        ),
    )
