"""Running compiled programs: configuration, artifacts, workers.

What needs a chip is imported when it is first asked for, so that restoring an artifact loads no
worker. ``run`` and ``compile_program`` are defined in `pypto.compiler`, a layer above.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pypto.runtime.errors import KernelFault
from pypto.runtime.options import CompileOptions, DfxOptions
from pypto.runtime.run_config import RunConfig

if TYPE_CHECKING:
    from pypto.compiler import compile_program, run
    from pypto.runtime.device_tensor import DeviceTensor
    from pypto.runtime.distributed import (
        DistributedRunHandle,
        DistributedWorker,
        StackedDeviceTensor,
        execute_distributed_compiled,
    )
    from pypto.runtime.host import (
        configure_log,
        ensure_pto_isa_root,
        log_level,
        pto_isa_include_dir,
    )
    from pypto.runtime.run_result import RunResult
    from pypto.runtime.runner import execute_compiled
    from pypto.runtime.specs import ScalarSpec, TensorSpec
    from pypto.runtime.timing import BenchmarkStats, benchmark
    from pypto.runtime.trace import TraceInvocation, TraceSpan
    from pypto.runtime.worker import ChipWorker, RegistrationHandle, Worker

__all__ = [
    "BenchmarkStats",
    "ChipWorker",
    "CompileOptions",
    "DeviceTensor",
    "DfxOptions",
    "DistributedRunHandle",
    "DistributedWorker",
    "KernelFault",
    "RegistrationHandle",
    "RunConfig",
    "RunResult",
    "ScalarSpec",
    "StackedDeviceTensor",
    "TensorSpec",
    "TraceInvocation",
    "TraceSpan",
    "Worker",
    "benchmark",
    "compile_program",
    "configure_log",
    "ensure_pto_isa_root",
    "execute_compiled",
    "execute_distributed_compiled",
    "log_level",
    "pto_isa_include_dir",
    "run",
]

_LAZY = {
    "BenchmarkStats": "pypto.runtime.timing",
    "ChipWorker": "pypto.runtime.worker",
    "DeviceTensor": "pypto.runtime.device_tensor",
    "DistributedRunHandle": "pypto.runtime.distributed",
    "DistributedWorker": "pypto.runtime.distributed",
    "RegistrationHandle": "pypto.runtime.worker",
    "RunResult": "pypto.runtime.run_result",
    "ScalarSpec": "pypto.runtime.specs",
    "StackedDeviceTensor": "pypto.runtime.distributed",
    "TensorSpec": "pypto.runtime.specs",
    "TraceInvocation": "pypto.runtime.trace",
    "TraceSpan": "pypto.runtime.trace",
    "Worker": "pypto.runtime.worker",
    "benchmark": "pypto.runtime.timing",
    "configure_log": "pypto.runtime.host",
    "ensure_pto_isa_root": "pypto.runtime.host",
    "execute_compiled": "pypto.runtime.runner",
    "execute_distributed_compiled": "pypto.runtime.distributed",
    "log_level": "pypto.runtime.host",
    "pto_isa_include_dir": "pypto.runtime.host",
}


def __getattr__(name: str) -> Any:
    if name in ("run", "compile_program"):
        from pypto import compiler

        return getattr(compiler, name)
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
