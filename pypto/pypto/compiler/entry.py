"""The public entry points: the edge where the environment and the working directory are read."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto.backend import (
    DEFAULT_RUNTIME,
    BackendType,
    ExecutionMode,
    RuntimeKind,
    Target,
    target_for,
    target_of,
)
from pypto.compiler.assembler_choice import AssemblerChoice
from pypto.compiler.driver import Assembler, BuiltSources, build_sources
from pypto.compiler.pass_record import PassRecord, wants_dump
from pypto.compiler.tree import unique_directory
from pypto.ir.external import ExternalKernel
from pypto.ir.nodes import Program
from pypto.ir.options import DiagnosticPhase, MemoryPlanner, OptimizationStrategy, PassDumpLevel
from pypto.language.extern_package import ExternPackage, read_package
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.errors import located
from pypto.runtime.host import (
    build_parent,
    host_compilers,
    incore_include_dirs,
    selected_sdk,
)
from pypto.runtime.options import refuse_distributed
from pypto.runtime.run_config import RunConfig
from pypto.runtime.storage import OutputDirectory
from pypto_toolchains.declared_environment import environment_of_tools
from pypto_toolchains.process import compiler_timeout
from pypto_toolchains.ptoas import select_ptoas

# What is found out about assemblers holds for the process.
_ASSEMBLERS = AssemblerChoice()


def compile(
    program: Program,
    *,
    output_dir: str | os.PathLike[str] | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool | PassDumpLevel = True,
    dump_ptoas_passes: bool = False,
    backend_type: BackendType = BackendType.Ascend910B,
    platform: str | None = None,
    profiling: bool = False,
    diagnostic_phase: DiagnosticPhase | None = None,
    disabled_diagnostics: frozenset[str] | None = None,
    analyze_auto_scopes_for_deps: bool = False,
    memory_planner: MemoryPlanner | None = None,
    distributed_config: object | None = None,
    runtime: RuntimeKind | str | None = None,
) -> CompiledProgram:
    """Compile a program to a directory of sources and return it as a callable.

    The directory is `output_dir`, or a fresh one in ``$PYPTO_PROG_BUILD_DIR`` or `build_output`.
    It is never cleared: files that this build does not write stay. `platform` is a token such as
    ``"a2a3sim"``; `backend_type` counts only without it and means the simulator. `dump_passes`
    adds the program after each pass, `profiling` how long each took. The assembler has no passes
    of its own to dump, dependencies are found while the program runs, and there is one strategy
    and one memory planner, so the options about those change nothing.

    Raises CompileError at the user's place for a program that cannot be compiled, ValueError or
    TypeError naming the option that cannot be what it was given.
    """
    if not isinstance(program, Program):
        raise TypeError(f"ir.compile takes an ir.Program, got {type(program).__name__}")
    refuse_distributed(distributed_config)
    target, kind = _target(platform, backend_type), _runtime(runtime)
    environ = environment_of_tools(dict(os.environ))
    if output_dir is not None:
        directory = Path(output_dir).absolute()
    else:
        directory = unique_directory(build_parent(environ, Path.cwd()), program.name)
    with located(program.sources):
        built = build_installed(
            program,
            directory,
            target=target,
            runtime=kind,
            dump_passes=dump_passes,
            profiling=profiling,
            environ=environ,
        )
    return CompiledProgram(
        OutputDirectory(built.output_dir, host_compilers()),
        built.meta,
        program=program,
        sources=program.sources,
    )


def build_installed(
    program: Program,
    directory: Path,
    *,
    target: Target,
    runtime: RuntimeKind = DEFAULT_RUNTIME,
    dump_passes: bool | PassDumpLevel,
    profiling: bool,
    environ: Mapping[str, str],
    packages: Mapping[ExternalKernel, ExternPackage] | None = None,
    identified: bool = False,
) -> BuiltSources:
    """`build_sources` with the installed SDK and the assembler that `environ` selects.

    One that does not do the work is replaced by the bundled one, unless the result is to be known
    by the assembler that was `identified`. Without `packages` the files of extern kernels are read
    now.
    """
    sdk = selected_sdk(environ)
    choose = select_ptoas if identified else _ASSEMBLERS.choose
    assembler = Assembler(
        choose(environ, sdk.ptoas, sdk.root),
        environ,
        compiler_timeout(environ),
        parallel=os.cpu_count() or 1,
    )
    dump = wants_dump(dump_passes)
    record = PassRecord(dump=dump, profile=profiling, clock=time.perf_counter)
    return build_sources(
        program,
        directory,
        target=target,
        assembler=assembler,
        runtime=runtime,
        observe=record if dump or profiling else None,
        extra_files=record.files,
        packages=_read_packages(program, target.token, environ) if packages is None else packages,
    )


def _read_packages(
    program: Program, platform: str, environ: Mapping[str, str]
) -> Mapping[ExternalKernel, ExternPackage]:
    kernels = {function.external for function in program.functions.values()}
    if not any(kernels):
        return {}
    provided = incore_include_dirs(platform, environ)
    return {kernel: read_package(kernel, provided) for kernel in kernels if kernel is not None}


def compile_program(program: Program, config: RunConfig | None = None) -> CompiledProgram:
    """Compile with the compile options of a run configuration."""
    config = RunConfig() if config is None else config
    return compile(program, **config.compile_kwargs())


def run(program: Program, *tensors: Any, config: RunConfig | None = None) -> CompiledProgram:
    """Compile and, unless there are no tensors or the configuration says not to, run once."""
    config = RunConfig() if config is None else config
    compiled = compile_program(program, config)
    if tensors and not config.codegen_only:
        compiled(*tensors, config=config)
    return compiled


def _target(platform: str | None, backend_type: BackendType) -> Target:
    if platform is not None:
        return target_of(platform)
    return target_for(backend_type, ExecutionMode.SIM)


def _runtime(runtime: RuntimeKind | str | None) -> RuntimeKind:
    if runtime is None:
        return DEFAULT_RUNTIME
    if isinstance(runtime, RuntimeKind):
        return runtime
    try:
        return RuntimeKind(runtime)
    except ValueError:
        names = ", ".join(kind.value for kind in RuntimeKind)
        raise ValueError(f"runtime must be one of {names}, got {runtime!r}") from None
