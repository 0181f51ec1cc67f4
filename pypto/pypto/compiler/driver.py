"""From a program to a directory of sources: passes, code generation, the assembler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from pypto.backend import RuntimeKind, Target
from pypto.codegen import (
    ENTRY_SYMBOL,
    ExternSource,
    GeneratedSources,
    KernelSource,
    generate,
    without_locations,
)
from pypto.compiler.build_options import BuildOptions
from pypto.compiler.errors import AssemblyFailed
from pypto.compiler.pass_record import PassRecord, Records
from pypto.compiler.tree import kernel_config_module, staged, write_files
from pypto.ir.errors import CompileError
from pypto.ir.external import ExternalKernel
from pypto.ir.nodes import FunctionKind, Program
from pypto.ir.options import VerificationLevel
from pypto.ir.param_info import params_of
from pypto.ir.passes import PassObserver, limits_of, run_passes
from pypto.language.extern_package import ExternPackage
from pypto.runtime import compiled_meta, kernel_config
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.debug.run_script import RUN_SCRIPT, run_script
from pypto.runtime.directory_kind import CHILDREN
from pypto.runtime.kernel_config import KernelConfig, KernelEntry, OrchestrationEntry
from pypto_toolchains.process import ToolFailed
from pypto_toolchains.ptoas_acceptance import translate

_NO_PACKAGES: Mapping[ExternalKernel, ExternPackage] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Assembler:
    """How the assembler is run. ``timeout`` is in seconds and for one module."""

    path: Path
    environ: Mapping[str, str]
    timeout: float
    parallel: int = 2


@dataclass(frozen=True, slots=True)
class BuiltSources:
    """A directory of sources and what its two tables say."""

    output_dir: Path
    config: KernelConfig
    meta: CompiledMeta


@dataclass(frozen=True, slots=True)
class BuiltOrchestrations:
    """A directory with one directory of sources for each orchestration function, by name."""

    output_dir: Path
    members: Mapping[str, BuiltSources]


# Makes the observer of one program's passes, whose files join its sources.
Recorder = Callable[[], PassRecord | Records]


def lower(
    program: Program,
    target: Target,
    observe: PassObserver | None = None,
    verification: VerificationLevel = VerificationLevel.BASIC,
) -> Program:
    """The lowered form of a program in frontend form; CompileError where there is none."""
    return run_passes(program, limits_of(target.backend_type), observe, verification)


def build_sources(
    program: Program,
    output_dir: Path,
    *,
    options: BuildOptions,
    assembler: Assembler | None,
    record: Recorder | None = None,
    packages: Mapping[ExternalKernel, ExternPackage] = _NO_PACKAGES,
) -> BuiltSources:
    """Compile a program in frontend form and write its sources to `output_dir`, all or nothing.

    Without an assembler the kernels stay ``.pto`` texts, and the directory cannot be run.
    `packages` has the files of the extern kernels that the program calls.

    Raises CompileError for a program that cannot be compiled, AssemblyFailed or ToolError where
    the assembler fails, OSError where the directory cannot be written.
    """
    draft = _draft(program, options, record, packages)
    with staged(output_dir) as staging:
        _write(draft, staging, assembler)
    return BuiltSources(output_dir, draft.config, draft.meta)


def build_orchestrations(
    programs: Mapping[str, Program],
    output_dir: Path,
    *,
    options: BuildOptions,
    assembler: Assembler | None,
    record: Recorder | None = None,
    packages: Mapping[ExternalKernel, ExternPackage] = _NO_PACKAGES,
) -> BuiltOrchestrations:
    """`build_sources` for several programs, each in ``next_levels/<name>``, all or nothing."""
    drafts = {
        name: _draft(program, options, record, packages) for name, program in programs.items()
    }
    members = {}
    with staged(output_dir) as staging:
        for name, draft in drafts.items():
            place = f"{CHILDREN}/{name}"
            _write(draft, staging / place, assembler)
            members[name] = BuiltSources(output_dir / place, draft.config, draft.meta)
    return BuiltOrchestrations(output_dir, MappingProxyType(members))


@dataclass(frozen=True, slots=True)
class _Draft:
    """A compiled program before anything of it is written."""

    generated: GeneratedSources
    config: KernelConfig
    meta: CompiledMeta
    packages: Mapping[ExternalKernel, ExternPackage]
    options: BuildOptions
    extra_files: Mapping[str, str]


def _draft(
    program: Program,
    options: BuildOptions,
    record: Recorder | None,
    packages: Mapping[ExternalKernel, ExternPackage],
) -> _Draft:
    target, observe = options.target, None if record is None else record()
    lowered = lower(program, target, observe, options.verification)
    if lowered.functions[lowered.entry].func_type is not FunctionKind.ORCHESTRATION:
        raise CompileError(
            f"the program {program.name!r} has nothing to run: {program.entry!r} is a core "
            "function; add a function with type=pl.FunctionType.Orchestration that calls it",
            lowered.functions[lowered.entry].span,
        )
    generated = generate(lowered, target.backend_type.arch)
    if not options.source_locations:
        kernels = tuple(replace(k, pto=without_locations(k.pto)) for k in generated.kernels)
        generated = replace(generated, kernels=kernels)
    entry = lowered.functions[lowered.entry]
    meta = CompiledMeta(
        params=params_of(entry),
        num_return_types=len(entry.return_types),
        platform=target.token,
        backend_type=target.backend_type,
    )
    return _Draft(
        generated,
        _config(generated, target, options.runtime, packages),
        meta,
        packages,
        options,
        {} if observe is None else observe.files,
    )


def _write(draft: _Draft, directory: Path, assembler: Assembler | None) -> None:
    generated, packages = draft.generated, draft.packages
    for package in {k.external: packages[k.external] for k in generated.externs}.values():
        write_files(directory, {file.path: file.data for file in package.files})
    write_files(
        directory,
        {
            **{_kernel_path(k): _extern_text(k, packages) for k in generated.externs},
            **draft.extra_files,
            draft.config.orchestration.source: generated.orchestration,
        },
    )
    if assembler is None:
        write_files(
            directory,
            {f"kernels/{k.core_type}/{k.name}.pto": k.pto for k in generated.kernels},
        )
        return
    write_files(directory, {f"ptoas/{k.name}.pto": k.pto for k in generated.kernels})
    _assemble_all(directory, generated, draft.options.target, assembler)
    wrappers = {
        _kernel_path(k): k.wrapper((directory / f"ptoas/{k.name}.cpp").read_text(encoding="utf-8"))
        for k in generated.kernels
    }
    write_files(
        directory,
        {
            **wrappers,
            **({RUN_SCRIPT: run_script(draft.meta.params)} if draft.options.debug_runner else {}),
            "kernel_config.py": kernel_config_module(draft.config),
            kernel_config.FILE_NAME: draft.config.to_json(),
            compiled_meta.FILE_NAME: draft.meta.to_json(),
        },
    )


def _assemble_all(
    staging: Path, generated: GeneratedSources, target: Target, assembler: Assembler
) -> None:
    directory = staging / "ptoas"

    def assemble(kernel: KernelSource) -> None:
        try:
            translate(
                assembler.path,
                f"{kernel.name}.pto",
                f"{kernel.name}.cpp",
                target.backend_type.arch,
                directory=directory,
                environ=assembler.environ,
                timeout=assembler.timeout,
            )
        except ToolFailed as error:
            raise AssemblyFailed(kernel.name, kernel.pto, str(error)) from error

    if len(generated.kernels) <= 1 or assembler.parallel <= 1:
        for kernel in generated.kernels:
            assemble(kernel)
        return
    with ThreadPoolExecutor(max_workers=assembler.parallel) as pool:
        # The list makes the first failure in program order the one that is raised.
        list(pool.map(assemble, generated.kernels))


def _kernel_path(kernel: KernelSource | ExternSource) -> str:
    return f"kernels/{kernel.core_type}/{kernel.name}.cpp"


def _extern_text(kernel: ExternSource, packages: Mapping[ExternalKernel, ExternPackage]) -> str:
    source = packages[kernel.external].parts[kernel.part].source
    return kernel.wrapper(source if source.startswith("/") else f"../../{source}")


def _config(
    generated: GeneratedSources,
    target: Target,
    runtime: RuntimeKind,
    packages: Mapping[ExternalKernel, ExternPackage],
) -> KernelConfig:
    kernels = [
        KernelEntry(k.func_id, k.name, _kernel_path(k), k.core_type, k.signature)
        for k in generated.kernels
    ]
    kernels += [
        KernelEntry(
            k.func_id,
            k.name,
            _kernel_path(k),
            k.core_type,
            k.signature,
            external=True,
            extra_include_dirs=packages[k.external].include_dirs,
        )
        for k in generated.externs
    ]
    return KernelConfig(
        platform=target.token,
        runtime=runtime,
        aicpu_thread_num=0,
        orchestration=OrchestrationEntry(
            source=f"orchestration/{generated.entry}.cpp",
            function_name=ENTRY_SYMBOL,
            signature=generated.signature,
        ),
        kernels=tuple(sorted(kernels, key=lambda kernel: kernel.func_id)),
    )
