"""The intermediate representation of kernels, and the compiler's entry points.

``compile`` is defined in `pypto.compiler` and ``CompiledProgram`` in `pypto.runtime`, layers above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pypto.ir.distributed_compiled_program import (
    DistributedCompiledProgram,
    DistributedConfig,
    DistributedUnavailable,
)
from pypto.ir.dtypes import DataType
from pypto.ir.errors import CompileError, IrTypeError, VerifyError
from pypto.ir.nodes import Function, FunctionKind, Program
from pypto.ir.options import (
    DiagnosticPhase,
    MemoryPlanner,
    OptimizationStrategy,
    PassDumpLevel,
    VerificationLevel,
)

if TYPE_CHECKING:
    from pypto.compiler import compile
    from pypto.runtime.compiled_program import CompiledProgram

__all__ = [
    "CompileError",
    "CompiledProgram",
    "DataType",
    "DiagnosticPhase",
    "DistributedCompiledProgram",
    "DistributedConfig",
    "DistributedUnavailable",
    "Function",
    "FunctionKind",
    "IrTypeError",
    "MemoryPlanner",
    "OptimizationStrategy",
    "PassDumpLevel",
    "Program",
    "VerificationLevel",
    "VerifyError",
    "compile",
]


def __getattr__(name: str) -> Any:
    if name == "compile":
        from pypto import compiler

        return compiler.compile
    if name == "CompiledProgram":
        from pypto.runtime.compiled_program import CompiledProgram

        return CompiledProgram
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
