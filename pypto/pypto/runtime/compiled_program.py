"""CompiledProgram: a compiled program as a callable.

It reads metadata when it is made and nothing else. Binaries are built where they are missing, and
loaded, when it is first run or when one of the properties is read that show them; making one, and
`complete`, run none of the program's code, not even a library's constructors.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pypto.backend import BackendType, target_for, target_of
from pypto.ir.distributed_compiled_program import refuse_distributed
from pypto.ir.nodes import Program as IrProgram
from pypto.runtime.arguments import Signature
from pypto.runtime.chips import shared_chip
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.config_argument import run_config
from pypto.runtime.directory_kind import DirectoryKind, kind_of
from pypto.runtime.dispatch import Dispatcher, RecordingDispatcher
from pypto.runtime.errors import ArtifactError, SourceMap
from pypto.runtime.host import host_compilers, process_log
from pypto.runtime.loader import load_binaries
from pypto.runtime.options import RunOptions
from pypto.runtime.run_config import RunConfig
from pypto.runtime.storage import OutputDirectory, ProgramStorage
from pypto_store.flights import Flights

if TYPE_CHECKING:
    from pypto._native import Chip
    from pypto._native import Program as NativeProgram

_FRONTEND_DUMP = "passes_dump/00_frontend.py"


class CompiledProgram:
    """A compiled program; call it with its arguments to run it.

    ``compiled(a, b, out)`` runs in place and returns ``None``. ``compiled(a, b)`` makes the
    outputs and returns them, one tensor or a tuple in the order they are declared, if the program
    returns something and the extents of its outputs are fixed. With ``config`` the platform and
    the options of the run are the configuration's; without, the platform is the artifact's.

    It stands for its output directory where a path is expected, and equals it.

    ``sources`` maps units to the user's files, for the messages of faults; ``program`` is the
    representation it was compiled from, ``None`` if it was restored.
    """

    # What calls without a configuration call, once there was one.
    _default: Dispatcher | None = None
    # The configuration of the last call and what it came to; one object, so that threads see a pair
    # that belongs together.
    _recent: tuple[RunConfig | None, Dispatcher | None] = (None, None)

    def __init__(
        self,
        storage: ProgramStorage,
        meta: CompiledMeta,
        *,
        program: IrProgram | None = None,
        sources: SourceMap = MappingProxyType({}),
    ) -> None:
        self.program = program
        self._storage = storage
        self._meta = meta
        self._sources = sources
        self._signature = Signature(
            storage.config.orchestration.name, meta.params, meta.num_return_types
        )
        self._count = len(meta.params)
        self._loads: Flights[NativeProgram] = Flights()
        self._loaded: dict[str, NativeProgram] = {}
        self._dispatchers: dict[RunOptions, Dispatcher] = {}

    @classmethod
    def from_dir(
        cls,
        directory: str | os.PathLike[str],
        *,
        platform: str | None = None,
        backend_type: BackendType | None = None,
    ) -> CompiledProgram:
        """The program in a directory that `ir.compile` wrote, with edits made to its sources.

        ``platform``, or ``backend_type`` where there is no platform, replaces the recorded target
        for calls without a configuration.

        Nothing is written: neither the description nor a ``debug/run.py`` that was edited.

        Raises FileNotFoundError where the directory describes no program, ValueError where its
        description is malformed or of another architecture, DistributedUnavailable where it is a
        program for several chips.
        """
        path = Path(directory)
        if kind_of(path) is DirectoryKind.DISTRIBUTED:
            refuse_distributed(f"{path} holds a program for several chips")
        meta = CompiledMeta.load(path)
        compiled = cls(OutputDirectory(path, host_compilers()), meta)
        if platform is None and backend_type is not None:
            platform = target_for(backend_type, target_of(meta.platform).mode).token
        if platform is not None:
            compiled._check_platform(platform)
            compiled._meta = CompiledMeta(
                meta.params,
                meta.num_return_types,
                platform,
                target_of(platform).backend_type,
                meta.supported_execution_modes,
            )
        return compiled

    def _one(self, verb: str) -> CompiledProgram:
        """The program that is meant where one alone can be called, run, loaded or asked.

        That is this one; what stands for several says in a TypeError how to choose.
        """
        return self

    @property
    def output_dir(self) -> Path:
        """The program's directory."""
        return self._storage.directory

    @property
    def platform(self) -> str:
        """The platform token of calls without a configuration."""
        return self._meta.platform

    @property
    def backend_type(self) -> BackendType:
        """The architecture it was compiled for."""
        return self._meta.backend_type

    @property
    def param_names(self) -> tuple[str, ...]:
        """The names of the parameters in order."""
        params = self._one("asked for its parameters")._meta.params
        return tuple(param.name for param in params)

    @property
    def output_indices(self) -> tuple[int, ...]:
        """The positions of the parameters that are only written."""
        return self._one("asked for its outputs")._signature.output_indices

    @property
    def has_return(self) -> bool:
        """Whether the program returns something, so that outputs can be left out of a call."""
        return self._one("asked for its results")._signature.has_return

    @property
    def orchestration_names(self) -> tuple[str, ...]:
        """The orchestration functions that can be called."""
        return (self._storage.config.orchestration.name,)

    def __getitem__(self, name: str) -> CompiledProgram:
        """The program of an orchestration function; KeyError naming those that there are."""
        if name not in self.orchestration_names:
            names = ", ".join(self.orchestration_names)
            raise KeyError(f"{self!r} has no orchestration {name!r}; it has {names}")
        return self

    @property
    def artifact_key(self) -> str | None:
        """The key under which other processes find this artifact; ``None`` if it is private."""
        return self._storage.artifact_key

    @property
    def chip_callable(self) -> NativeProgram:
        """The loaded program, for a worker of one's own; builds and loads it first."""
        one = self._one("loaded as one")
        return one._load(one._meta.platform)

    @property
    def runtime_name(self) -> str:
        """The runtime it runs under; builds and loads it first."""
        one = self._one("asked for its runtime")
        one.load()
        return one._storage.config.runtime.value

    @property
    def runtime_config(self) -> Mapping[str, Any]:
        """The options of that runtime which the program sets; builds and loads it first."""
        one = self._one("asked for its runtime")
        one.load()
        config = one._storage.config
        return MappingProxyType(
            {"runtime": config.runtime.value, "aicpu_thread_num": config.aicpu_thread_num}
        )

    def validate_ir(self) -> None:
        """Check the program's representation against the rules of the compiler.

        A program from a directory is read from its ``passes_dump/``, which runs as an import does.
        Raises VerifyError naming what breaks a rule, FileNotFoundError where there is no dump,
        ParserError for one that was edited into no program.
        """
        from pypto.ir.verifier import Form, verify

        verify(self._dumped() if self.program is None else self.program, Form.FRONTEND)

    def _dumped(self) -> IrProgram:
        dump = self.output_dir / _FRONTEND_DUMP
        if not dump.is_file():
            raise FileNotFoundError(
                f"{dump}: no such file; compile the program with dump_passes=True to keep its "
                "representation"
            )
        from pypto.language.program_text import loads

        program = loads(dump)
        if not isinstance(program, IrProgram):
            raise ArtifactError(f"{dump}: holds a function and no program")
        return program

    def complete(self) -> None:
        """Make sure that all binaries exist, without loading or running anything."""
        self._storage.complete()

    def load(self) -> None:
        """Build the binaries that are missing and load them all."""
        self._load(self._meta.platform)

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        """Run once, in place or returning outputs; see the class.

        Raises TypeError or ValueError naming the argument that does not fit, KernelFault if the
        run broke a rule, ValueError for a configuration of another architecture.
        """
        dispatcher = self._default
        if config is not None:
            recent, dispatcher = self._recent
            if recent is not config:
                dispatcher = None
        if dispatcher is None:
            dispatcher = self._one("called").dispatcher_for(config)
        if len(args) == self._count:
            dispatcher(args)
            return None
        self._signature.returns_for(len(args))
        full, outputs = self._signature.with_outputs(args)
        dispatcher(full)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def dispatcher(self, chip: Chip, options: RunOptions) -> Dispatcher:
        """This program on a chip for ``options``; builds and loads it first. For workers."""
        program = self._one("run")._load(options.platform)
        config = self._storage.config
        names = [kernel.name for kernel in config.kernels]
        if not options.dfx.any_enabled():
            return Dispatcher(
                self._signature, program, chip, kernel_names=names, sources=self._sources
            )
        # Only runs that are recorded pay for it.
        from pypto.runtime.run_records import recorder

        record = recorder(
            options.dfx, self.output_dir, names, options.platform, config.runtime.value
        )
        return RecordingDispatcher(
            self._signature,
            program,
            chip,
            kernel_names=names,
            sources=self._sources,
            record=record,
            contents=options.dfx.enable_dump_args > 0,
        )

    def dispatcher_for(self, config: RunConfig | None) -> Dispatcher:
        """What a call with ``config`` calls, taking all arguments as one tuple.

        Builds and loads the program first. It stays good as long as this object, and saves the
        caller of many in-place calls the choice by configuration.
        """
        meta = self._one("run")._meta
        options = (
            RunOptions(platform=meta.platform)
            if config is None
            else run_config(config).run_options()
        )
        self._check_platform(options.platform)
        dispatcher = self._dispatchers.get(options)
        if dispatcher is None:
            chip = shared_chip(options)
            dispatcher = self.dispatcher(chip, options)
            dispatcher = self._dispatchers.setdefault(options, dispatcher)
        if config is None:
            self._default = dispatcher
        else:
            self._recent = (config, dispatcher)
        return dispatcher

    def _check_platform(self, platform: str) -> None:
        target = target_of(platform)
        if target.backend_type is not self._meta.backend_type:
            raise ValueError(
                f"{self._signature.name} was compiled for {self._meta.backend_type.name} and "
                f"cannot run on platform {platform!r}; compile it for that"
            )
        if target.mode not in self._meta.supported_execution_modes:
            modes = ", ".join(mode.name for mode in self._meta.supported_execution_modes)
            raise ValueError(
                f"{self._signature.name} supports the execution modes {modes} only, not "
                f"platform {platform!r}"
            )

    def _load(self, platform: str) -> NativeProgram:
        program = self._loaded.get(platform)
        if program is None:
            # Threads that meet here share one build and load; a child forked meanwhile does its
            # own, because the thread that would end the wait is not in it.
            program = self._loads.run(platform, lambda: self._load_now(platform))
        return program

    def _load_now(self, platform: str) -> NativeProgram:
        program = self._loaded.get(platform)
        if program is None:
            begin = time.perf_counter()
            with self._storage.binaries(platform) as paths:
                program = load_binaries(
                    paths,
                    n_tensors=len(self._signature.tensor_indices),
                    n_scalars=len(self._signature.scalar_indices),
                )
            self._loaded[platform] = program
            seconds = time.perf_counter() - begin
            process_log().tell(
                "timing", "%s was made ready for %s in %.3f s", self, platform, seconds
            )
        return program

    def __fspath__(self) -> str:
        return str(self._storage.directory)

    def __str__(self) -> str:
        return str(self._storage.directory)

    def __repr__(self) -> str:
        return f"CompiledProgram({self._signature.name!r}, {str(self._storage.directory)!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (str, os.PathLike)):
            return str(self) == os.fspath(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))
