"""The C++ file of one kernel: the assembler's function and the entry that unpacks a task."""

from __future__ import annotations

import re

from pypto.codegen.abi import PLACES, KernelAbi
from pypto.ir.nodes import TensorType, Var

BODY_BEGINS = "// --- ptoas-generated code ---"
ENTRY_BEGINS = "// --- Kernel entry point ---"

# What the file itself already says, and would otherwise say twice.
_DROPPED = re.compile(r"^\s*(#\s*include\b|using\s+namespace\s+pto\s*;)")
_EXPORTED = re.compile(r"__global__\s+AICORE\b")


def embedded_body(ptoas_cpp: str) -> str:
    """The assembler's text as it stands inside a kernel file: no includes, nothing exported."""
    lines = [line for line in ptoas_cpp.splitlines() if not _DROPPED.match(line)]
    return _EXPORTED.sub("static AICORE", "\n".join(lines)).strip("\n")


def kernel_wrapper(abi: KernelAbi, symbol: str, ptoas_cpp: str) -> str:
    """The text of `kernels/<core>/<symbol>.cpp`."""
    tensors = {var: f"t{i}" for i, var in enumerate(abi.tensors)}
    first_scalar = len(abi.tensors)
    slots = {var: first_scalar + i for i, var in enumerate(abi.scalars)}
    unpacked = [
        f"    auto* {name} = reinterpret_cast<ChipTensor*>(args[{i}]);"
        for i, name in enumerate(tensors.values())
    ]
    arguments = [_argument(var, tensors, slots) for var in abi.parameters]
    arguments += [
        f"static_cast<int64_t>({tensors[var]}->shapes[{axis}])" for var, axis in abi.extents
    ]
    arguments += [f"{tensors[var]}->strides[{axis}]" for var, axis in abi.strides]
    arguments += [
        f"static_cast<int32_t>(pypto_rt::local_context(args)->{PLACES[place]})"
        for place in abi.places
    ]
    call = f"    {symbol}(" + (",\n" + " " * (5 + len(symbol))).join(arguments) + ");"
    lines = [
        '#include "pypto_rt/kernel_abi.h"',
        '#include "pto/pto-inst.hpp"',
        "using namespace pto;",
        "",
        BODY_BEGINS,
        embedded_body(ptoas_cpp),
        "",
        ENTRY_BEGINS,
        'extern "C" PYPTO_KERNEL_EXPORT void kernel_entry(__gm__ int64_t* args) {',
        "  pypto_rt::guard_kernel(args, [&] {",
        *unpacked,
        call,
        "  });",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _argument(var: Var, tensors: dict[Var, str], slots: dict[Var, int]) -> str:
    cpp = var.type.dtype.cpp
    if isinstance(var.type, TensorType):
        return f"tensor_data<{cpp}>({tensors[var]})"
    return f"from_u64<{cpp}>(static_cast<uint64_t>(args[{slots[var]}]))"
