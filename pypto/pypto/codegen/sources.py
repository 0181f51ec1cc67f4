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
from pypto.codegen.dispatch import Dispatch
from pypto.codegen.extern_kernel import extern_wrapper
from pypto.codegen.kernel_wrapper import kernel_wrapper
from pypto.codegen.names import function_names
from pypto.codegen.orchestration import orchestration_text
from pypto.codegen.pto_kernel import kernel_text
from pypto.ir.external import ExternalKernel
from pypto.ir.nodes import Call, Direction, FunctionKind, Program, Span
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
class ExternSource:
    """What one core type runs of an extern kernel: part number `part` of `external`."""

    func_id: int
    name: str
    core_type: str
    signature: tuple[Direction, ...]
    external: ExternalKernel
    part: int
    declared_at: Span

    def wrapper(self, source: str) -> str:
        """The kernel's C++ file around the user's, which it includes as `source`."""
        return extern_wrapper(source, self.declared_at)


@dataclass(frozen=True, slots=True)
class GeneratedSources:
    """Every text of a program but what the assembler has yet to make and what the user wrote."""

    entry: str
    orchestration: str
    signature: tuple[Direction, ...]
    kernels: tuple[KernelSource, ...]
    externs: tuple[ExternSource, ...] = ()


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
    symbols = function_names(
        (program.entry, *(label for n in names for label in _labels(program, n)))
    )
    kernels: list[KernelSource] = []
    externs: list[ExternSource] = []
    dispatches: dict[str, Dispatch] = {}
    # One stub that is called with several types is several functions and one kernel.
    known: dict[object, Dispatch] = {}
    for name in names:
        function = program.functions[name]
        abi, func_id = abi_of(function), len(kernels) + len(externs)
        if function.external is None:
            core, symbol = core_type(function), symbols[name]
            pto = kernel_text(program, function, abi, symbol, _KIND[core], arch)
            kernels.append(KernelSource(func_id, symbol, core, abi.signature, pto, abi))
            dispatches[name] = Dispatch.single(core, func_id)
            continue
        same = (function.external, function.span, abi.signature)
        if same not in known:
            parts = [
                ExternSource(
                    func_id + index,
                    symbols[label],
                    part.core_type,
                    abi.signature,
                    function.external,
                    index,
                    function.span,
                )
                for index, (label, part) in enumerate(
                    zip(_labels(program, name), function.external.parts, strict=True)
                )
            ]
            externs += parts
            ids = {part.core_type: part.func_id for part in parts}
            known[same] = Dispatch.of(ids, dual_aiv=function.external.dual_aiv_dispatch)
        dispatches[name] = known[same]
    entry_abi = abi_of(entry, max_tensors=MAX_ENTRY_TENSORS, max_scalars=MAX_ENTRY_SCALARS)
    text = orchestration_text(program, dispatches, entry_abi)
    return GeneratedSources(
        symbols[program.entry], text, entry_abi.signature, tuple(kernels), tuple(externs)
    )


def _labels(program: Program, name: str) -> tuple[str, ...]:
    """The names of the kernels that a function becomes."""
    external = program.functions[name].external
    if external is None or len(external.parts) == 1:
        return (name,)
    return tuple(f"{name}_{part.core_type}" for part in external.parts)
