"""The C++ file of one kernel: the assembler's function and the entry that unpacks a task."""

from __future__ import annotations

import re

from pypto.codegen.abi import PLACES, KernelAbi
from pypto.ir.nodes import TensorType, Var

BODY_BEGINS = "// --- ptoas-generated code ---"
ENTRY_BEGINS = "// --- Kernel entry point ---"

# All instructions at once, for text that does not say which it uses.
_EVERY_INSTRUCTION = "pto/pto-inst.hpp"
_INCLUDED = re.compile(r"^\s*#\s*include\s*[\"<]([^\">]*)[\">]", re.MULTILINE)
# What is written before the rest, in a form of its own.
_MOVED = re.compile(r"^\s*(#\s*include\b|using\s+namespace\s+pto\s*;)")

# From so many lines on, a kernel's function is translated as it stands. What a compiler does to a
# function grows with its length: 600 additions of one scope take it 4.8 seconds, and 1.4 so. The
# instructions themselves are other functions and stay optimized; what is between them does not, so
# a run of these additions takes 49 microseconds instead of 34.
LONG_BODY_LINES = 1500

_LONG_BODY = """\
#ifndef PTO_LONG_BODY
#define PTO_LONG_BODY
#endif
PTO_LONG_BODY """

_EXPORTED = re.compile(r"__global__\s+AICORE\b")


def instruction_headers(ptoas_cpp: str) -> list[str]:
    """The headers that declare the instructions in the assembler's text.

    The SDK's assembler includes what it uses, by the names of the simulated instruction set. What
    another one includes need not be there, so its text gets the header that includes them all.
    """
    included = _INCLUDED.findall(ptoas_cpp)
    known = bool(included) and all(name.startswith("pto/sim/") for name in included)
    return included if known else [_EVERY_INSTRUCTION]


def embedded_body(ptoas_cpp: str) -> str:
    """The assembler's text as it stands inside a kernel file: what it needs, nothing exported."""
    kept = [line for line in ptoas_cpp.splitlines() if not _MOVED.match(line)]
    long = _LONG_BODY if len(kept) > LONG_BODY_LINES else ""
    code = _EXPORTED.sub(f"{long}static AICORE", "\n".join(kept)).strip("\n")
    lines = [f'#include "{header}"' for header in instruction_headers(ptoas_cpp)]
    lines += ["using namespace pto;", "", code]
    return "\n".join(lines)


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
