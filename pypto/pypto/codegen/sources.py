"""From a lowered program to the text of everything that is compiled."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.codegen.abi import (
    MAX_ENTRY_SCALARS,
    MAX_ENTRY_TENSORS,
    KernelAbi,
    abi_of,
    core_type,
)
from pypto.codegen.kernel_wrapper import kernel_wrapper
from pypto.codegen.names import function_names
from pypto.codegen.orchestration import orchestration_text
from pypto.codegen.pto_kernel import kernel_text
from pypto.ir.nodes import Call, Direction, FunctionKind, Program
from pypto.ir.passes.rewrite import walk

_KIND = {"aiv": "vector", "aic": "cube"}

ENTRY_SYMBOL = "aicpu_orchestration_entry"


@dataclass(frozen=True, slots=True)
class KernelSource:
    """One kernel. `func_id` is how a task names it; `signature` lists its tensors in order."""

    func_id: int
    name: str
    core_type: str
    signature: tuple[Direction, ...]
    pto: str
    abi: KernelAbi

    def wrapper(self, ptoas_cpp: str) -> str:
        """The kernel's C++ file around what the assembler made of `pto`."""
        return kernel_wrapper(self.abi, self.name, ptoas_cpp)


@dataclass(frozen=True, slots=True)
class GeneratedSources:
    """Every text of a program but what the assembler has yet to make."""

    entry: str
    orchestration: str
    signature: tuple[Direction, ...]
    kernels: tuple[KernelSource, ...]


def generate(program: Program, arch: str) -> GeneratedSources:
    """The text of a lowered program; the same program gives the same bytes.

    Raises CompileError for what a kernel or the orchestration cannot do.
    """
    entry = program.functions[program.entry]
    called = {s.callee for s in walk(entry.body) if isinstance(s, Call)}
    names = [
        name
        for name, function in program.functions.items()
        if function.func_type is FunctionKind.INCORE and name in called
    ]
    symbols = function_names((program.entry, *names))
    kernels = []
    for func_id, name in enumerate(names):
        function = program.functions[name]
        abi, core, symbol = abi_of(function), core_type(function), symbols[name]
        pto = kernel_text(program, function, abi, symbol, _KIND[core], arch)
        kernels.append(KernelSource(func_id, symbol, core, abi.signature, pto, abi))
    entry_abi = abi_of(entry, max_tensors=MAX_ENTRY_TENSORS, max_scalars=MAX_ENTRY_SCALARS)
    text = orchestration_text(
        program,
        {name: k.func_id for name, k in zip(names, kernels, strict=True)},
        {name: k.core_type for name, k in zip(names, kernels, strict=True)},
        entry_abi,
    )
    return GeneratedSources(symbols[program.entry], text, entry_abi.signature, tuple(kernels))
