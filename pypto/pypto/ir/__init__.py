"""The intermediate representation of kernels, and the compiler's entry points.

``compile`` is defined in `pypto.compiler` and ``CompiledProgram`` in `pypto.runtime`, layers above.
"""

from __future__ import annotations

import importlib
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
    from pypto.ir.pass_context import CallbackInstrument, PassContext, PassInstrument
    from pypto.ir.pass_manager import PassManager
    from pypto.ir.printer import python_print
    from pypto.ir.serialization import DamagedProgram, deserialize, serialize
    from pypto.ir.structure import (
        StructuralDifference,
        assert_structural_equal,
        structural_equal,
    )
    from pypto.runtime.compiled_program import CompiledProgram

__all__ = [
    "CallbackInstrument",
    "CompileError",
    "CompiledProgram",
    "DamagedProgram",
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
    "PassContext",
    "PassDumpLevel",
    "PassInstrument",
    "PassManager",
    "Program",
    "StructuralDifference",
    "VerificationLevel",
    "VerifyError",
    "assert_structural_equal",
    "compile",
    "deserialize",
    "python_print",
    "serialize",
    "structural_equal",
]

# What runs passes, prints, compares and stores programs is loaded when somebody asks for it.
_PLACES = {
    "CallbackInstrument": "pass_context",
    "DamagedProgram": "serialization",
    "PassContext": "pass_context",
    "PassInstrument": "pass_context",
    "PassManager": "pass_manager",
    "StructuralDifference": "structure",
    "assert_structural_equal": "structure",
    "deserialize": "serialization",
    "python_print": "printer",
    "serialize": "serialization",
    "structural_equal": "structure",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(f"pypto.ir.{_PLACES[name]}"), name)
    if name == "compile":
        from pypto import compiler

        return compiler.compile
    if name == "CompiledProgram":
        from pypto.runtime.compiled_program import CompiledProgram

        return CompiledProgram
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
