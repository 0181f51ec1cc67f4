"""The intermediate representation of kernels, and the compiler's entry points."""

from __future__ import annotations

from pypto.ir.dtypes import DataType
from pypto.ir.errors import CompileError, IrTypeError, VerifyError
from pypto.ir.nodes import Function, FunctionKind, Program

__all__ = [
    "CompileError",
    "DataType",
    "Function",
    "FunctionKind",
    "IrTypeError",
    "Program",
    "VerifyError",
]
