"""The public entry points: the edge where the environment and the working directory are read."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto.backend import BackendType, RuntimeKind
from pypto.compiler.assembler_choice import AssemblerChoice
from pypto.compiler.build_options import BuildOptions, build_options
from pypto.compiler.driver import (
    Assembler,
    BuiltSources,
    Recorder,
    build_orchestrations,
    build_sources,
)
from pypto.compiler.orchestrations import orchestrations
from pypto.compiler.pass_record import PassRecord, Records
from pypto.compiler.perf_hints import HintRecord
from pypto.compiler.tree import unique_directory
from pypto.ir.external import ExternalKernel
from pypto.ir.nodes import Program
from pypto.ir.options import (
    DiagnosticPhase,
    MemoryPlanner,
    OptimizationStrategy,
    PassDumpLevel,
    VerificationLevel,
)
from pypto.ir.passes import limits_of
from pypto.language.extern_package import ExternPackage, read_package
from pypto.runtime.compiled_orchestrations import CompiledOrchestrations
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.config_argument import run_config
from pypto.runtime.errors import located
from pypto.runtime.host import (
    build_parent,
    host_compilers,
    incore_include_dirs,
    selected_sdk,
)
from pypto.runtime.run_config import RunConfig
from pypto.runtime.storage import OutputDirectory, UnassembledDirectory
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
    skip_ptoas: bool = False,
    verification_level: VerificationLevel | None = None,
    profiling: bool = False,
    diagnostic_phase: DiagnosticPhase | None = None,
    disabled_diagnostics: frozenset[str] | None = None,
    analyze_auto_scopes_for_deps: bool = False,
    memory_planner: MemoryPlanner | None = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
    emit_source_loc: bool | None = None,
    distributed_config: object | None = None,
    runtime: RuntimeKind | str | None = None,
) -> CompiledProgram:
    """Compile a program to a directory of sources and return it as a callable.

    Target: `platform` is a token such as ``"a2a3sim"``; `backend_type` counts only without it and
    means the simulator. `runtime` names how the orchestration meets the scheduler.

    Place: `output_dir`, or a fresh directory in ``$PYPTO_PROG_BUILD_DIR`` or `build_output`. It is
    never cleared: files that this build does not write stay. A program with several orchestration
    functions is built in ``next_levels/<name>/`` for each, and the result, which is a
    `CompiledOrchestrations`, hands them out by name.

    Text: with `skip_ptoas` the kernels stay ``.pto`` texts and the result cannot be run.
    `emit_source_loc` says whether those texts name the user's lines, by which faults are located;
    None is what ``PYPTO_EMIT_PTO_LOC`` says, which is yes unless it is 0.

    Records: `dump_passes` adds the program after each pass, `profiling` how long each took.
    `verification_level` says how often the program is checked, None is ``BASIC``. Hints how to
    make the kernels faster go to ``report/perf_hints.log``, but those whose code or name is in
    `disabled_diagnostics`; `diagnostic_phase` says when they are looked for, None after all passes.

    Accepted, and without effect: `strategy` and `memory_planner`, because there is one of each;
    `dump_ptoas_passes`, because the assembler has no passes of its own;
    `analyze_auto_scopes_for_deps`, because dependencies are found while a program runs;
    `enable_pypto_l0c_double_buffer`, because the simulated chip copies in no time.

    Raises CompileError at the user's place for a program that cannot be compiled, ValueError or
    TypeError naming the option that cannot be what it was given.
    """
    given = dict(locals())
    if not isinstance(program, Program):
        raise TypeError(f"ir.compile takes an ir.Program, got {type(program).__name__}")
    environ = environment_of_tools(dict(os.environ))
    options = build_options(given, os.environ)
    if output_dir is not None:
        directory = Path(output_dir).absolute()
    else:
        directory = unique_directory(build_parent(environ, Path.cwd()), program.name)
    programs = orchestrations(program)
    with located(program.sources):
        if len(programs) > 1:
            return _compile_several(program, programs, directory, options, environ)
        built = build_installed(program, directory, options=options, environ=environ)
    return _compiled(program, built, options)


def _compile_several(
    program: Program,
    programs: Mapping[str, Program],
    directory: Path,
    options: BuildOptions,
    environ: Mapping[str, str],
) -> CompiledProgram:
    family = build_orchestrations(
        programs,
        directory,
        options=options,
        assembler=_assembler(options, environ),
        record=_recorder(options),
        packages=_read_packages(program, options.target.token, environ),
    )
    members = {
        name: _compiled(programs[name], built, options) for name, built in family.members.items()
    }
    return CompiledOrchestrations(program.name, directory, members, program)


def _compiled(program: Program, built: BuiltSources, options: BuildOptions) -> CompiledProgram:
    storage = (
        OutputDirectory(built.output_dir, host_compilers())
        if options.assemble
        else UnassembledDirectory(built.output_dir, built.config)
    )
    return CompiledProgram(storage, built.meta, program=program, sources=program.sources)


def build_installed(
    program: Program,
    directory: Path,
    *,
    options: BuildOptions,
    environ: Mapping[str, str],
    packages: Mapping[ExternalKernel, ExternPackage] | None = None,
    identified: bool = False,
) -> BuiltSources:
    """`build_sources` with the installed SDK and the assembler that `environ` selects.

    One that does not do the work is replaced by the bundled one, unless the result is to be known
    by the assembler that was `identified`. Without `packages` the files of extern kernels are read
    now.
    """
    if packages is None:
        packages = _read_packages(program, options.target.token, environ)
    return build_sources(
        program,
        directory,
        options=options,
        assembler=_assembler(options, environ, identified),
        record=_recorder(options),
        packages=packages,
    )


def _assembler(
    options: BuildOptions, environ: Mapping[str, str], identified: bool = False
) -> Assembler | None:
    if not options.assemble:
        return None
    sdk = selected_sdk(environ)
    choose = select_ptoas if identified else _ASSEMBLERS.choose
    return Assembler(
        choose(environ, sdk.ptoas, sdk.root),
        environ,
        compiler_timeout(environ),
        parallel=os.cpu_count() or 1,
    )


def _recorder(options: BuildOptions) -> Recorder | None:
    limits = limits_of(options.target.backend_type)
    hints = options.hints
    records = options.profiling or options.dump_passes is not PassDumpLevel.NONE
    if not records and hints is None:
        return None

    def make() -> Records:
        observers: list[PassRecord | HintRecord] = []
        if records:
            observers.append(
                PassRecord(
                    dump=options.dump_passes,
                    profile=options.profiling,
                    clock=time.perf_counter,
                    limits=limits,
                )
            )
        if hints is not None:
            observers.append(HintRecord(hints, limits))
        return Records(*observers)

    return make


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
    config = RunConfig() if config is None else run_config(config)
    return compile(program, **config.compile_kwargs())


def run(program: Program, *tensors: Any, config: RunConfig | None = None) -> CompiledProgram:
    """Compile and, unless there are no tensors or the configuration says not to, run once."""
    config = RunConfig() if config is None else run_config(config)
    compiled = compile_program(program, config)
    if tensors and not config.codegen_only:
        compiled(*tensors, config=config)
    return compiled
