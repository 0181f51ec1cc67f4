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
    from pypto.runtime.runner import execute_compiled
    from pypto.runtime.timing import BenchmarkStats, benchmark
    from pypto.runtime.worker import ChipWorker, RegistrationHandle, Worker

__all__ = [
    "BenchmarkStats",
    "ChipWorker",
    "CompileOptions",
    "DeviceTensor",
    "DfxOptions",
    "KernelFault",
    "RegistrationHandle",
    "RunConfig",
    "Worker",
    "benchmark",
    "compile_program",
    "execute_compiled",
    "run",
]

_LAZY = {
    "BenchmarkStats": "pypto.runtime.timing",
    "ChipWorker": "pypto.runtime.worker",
    "DeviceTensor": "pypto.runtime.device_tensor",
    "RegistrationHandle": "pypto.runtime.worker",
    "Worker": "pypto.runtime.worker",
    "benchmark": "pypto.runtime.timing",
    "execute_compiled": "pypto.runtime.runner",
}


def __getattr__(name: str) -> Any:
    if name in ("run", "compile_program"):
        from pypto import compiler

        return getattr(compiler, name)
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
