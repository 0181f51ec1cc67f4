"""The owner of every compiler and linker invocation.

All that is particular to a target (tool, flags, headers, helper sources) comes from the SDK, and
what is particular to a tool from `tool_commands`. What is added here is what makes an invocation
safe and its result reproducible: a private temporary directory that holds every byte the tools
write, the CPU level, maps that keep directories out of the output, the time limit and the check of
what came out.

Commands run in the SDK's root and spell its paths as the SDK does, so that they read the same
wherever it is installed.
"""

from __future__ import annotations

import struct
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pypto.backend import RuntimeKind, target_of
from pypto.runtime.errors import BinaryError, ToolchainUnavailable
from pypto.runtime.sdk import CORE_TYPES, Sdk, SdkError
from pypto.runtime.tool_commands import Command, MachineTools, Tools
from pypto_toolchains.process import compiler_timeout, run_tool

_OUTPUT_NAME = "output.so"
_ELF_HEADER = struct.Struct("<4sBB10xHH")
_ELF_CLASS_64 = 2
_ELF_LITTLE_ENDIAN = 1
_ELF_SHARED = 3


class KernelCompiler:
    """Compiles kernels and orchestration functions of one target into shared libraries.

    ``cpu_level`` names the level of the host's instruction set that binaries may use, one of the
    SDK's. ``tools`` are the compilers; without them, those that ``environ`` has, which get it. The
    time limit (PYPTO_COMPILER_TIMEOUT) is read from ``environ`` here. ``build_dir`` moves the
    parent of the temporary directories and keeps nothing. ``isa_root`` replaces the SDK's
    instruction set headers.

    Raises ValueError for an unknown platform, runtime or level and SdkError where the SDK has no
    such target. Instances hold no open resource and may be used by several threads.
    """

    def __init__(
        self,
        platform: str,
        *,
        sdk: Sdk,
        runtime_name: str,
        cpu_level: str,
        environ: Mapping[str, str],
        tools: Tools | None = None,
        build_dir: Path | None = None,
        isa_root: Path | None = None,
    ) -> None:
        self.target = target_of(platform)
        self.sdk = sdk
        self.runtime = RuntimeKind(runtime_name)
        if cpu_level not in sdk.cpu_levels:
            raise ValueError(
                f"unknown CPU level {cpu_level!r}: the SDK has {', '.join(sdk.cpu_levels)}"
            )
        self.cpu_level = cpu_level
        self.isa_root = None if isa_root is None else isa_root.absolute()
        self.timeout = compiler_timeout(environ)
        self._tools = MachineTools(sdk, environ) if tools is None else tools
        self._temporary = environ.get("TMPDIR", "")
        self._build_dir = build_dir
        self._target = sdk.target(platform)

    @property
    def platform(self) -> str:
        """The platform token of the target."""
        return self.target.token

    @property
    def project_root(self) -> Path:
        """The working directory of every invocation; probes must run there too."""
        return self.sdk.root

    def compile_incore(
        self,
        source: Path,
        core_type: str,
        *,
        extra_include_dirs: Sequence[Path] = (),
        cancelled: threading.Event | None = None,
    ) -> bytes:
        """Compile and link the kernel in ``source`` for a core of type ``"aiv"`` or ``"aic"``.

        Setting ``cancelled`` kills the compiler. Raises ToolchainUnavailable, SdkError, a
        ToolError of the compiler, or BinaryError.
        """
        if core_type not in CORE_TYPES:
            raise ValueError(f"core_type must be one of {', '.join(CORE_TYPES)}, got {core_type!r}")
        recipe = self._target.incore
        if recipe is None:
            needed = self._target.needs or "a device toolkit"
            raise ToolchainUnavailable(
                f"kernels for platform {self.platform!r} need {needed}, which this installation "
                f"does not have; use platform '{self._target.arch}sim' to run on the simulator"
            )
        header_root = self.sdk.root if self.isa_root is None else self.isa_root
        self._require(header_root / recipe.forced_header)
        forced_header = (
            recipe.forced_header
            if self.isa_root is None
            else str(self.isa_root / recipe.forced_header)
        )
        includes = [*recipe.include_dirs]
        if self.isa_root is not None:
            includes = [*(str(self.isa_root / item) for item in recipe.include_dirs), *includes]
        return self._compile(
            recipe.tool,
            [
                *recipe.flags,
                *recipe.core_flags[core_type],
                recipe.admission,
                "-include",
                forced_header,
                *(f"-I{item}" for item in includes),
                *(f"-I{item}" for item in extra_include_dirs),
                *(
                    f"-ffile-prefix-map={item}=include{index}"
                    for index, item in enumerate(extra_include_dirs)
                ),
            ],
            source,
            [],
            stage=f"compiling kernel {source.name} ({core_type}, {self.platform})",
            cancelled=cancelled,
        )

    def compile_orchestration(
        self, source: Path, *, cancelled: threading.Event | None = None
    ) -> bytes:
        """Compile and link the orchestration function in ``source`` with the SDK's helpers.

        A helper source that is missing is an SdkError before any compiler starts. Raises as
        `compile_incore` does besides.
        """
        recipe = self._target.orchestration.get(self.runtime)
        if recipe is None:
            raise SdkError(
                f"the SDK has no {self.runtime.value} orchestration for {self.platform!r}"
            )
        for helper in recipe.helper_sources:
            self._require(self.sdk.root / helper)
        return self._compile(
            recipe.tool,
            [*recipe.flags, *(f"-I{item}" for item in recipe.include_dirs)],
            source,
            list(recipe.helper_sources),
            stage=f"compiling orchestration {source.name} ({self.runtime.value}, {self.platform})",
            cancelled=cancelled,
        )

    def reuse_context(self) -> Mapping[str, str] | None:
        """What else than its source decides a binary's bytes; ``None`` if that is not known.

        Two equal contexts allow one to use the other's binaries.
        """
        revision = self.sdk.revision
        if self.isa_root is not None or revision is None:
            return None
        recipes = [self._target.incore, self._target.orchestration.get(self.runtime)]
        tools = sorted({recipe.tool for recipe in recipes if recipe is not None})
        return {
            "platform": self.platform,
            "runtime": self.runtime.value,
            "cpu_level": self.cpu_level,
            "sdk_revision": revision,
            # The flags are in it, and no revision covers them.
            "sdk_metadata": self.sdk.metadata,
            **self._tools.context(tools),
        }

    def _require(self, path: Path) -> None:
        if not path.is_file():
            raise SdkError(f"{path}: the SDK lacks this file; reinstall pypto")

    def _compile(
        self,
        tool: str,
        options: Sequence[str],
        source: Path,
        helpers: Sequence[str],
        *,
        stage: str,
        cancelled: threading.Event | None,
    ) -> bytes:
        source = source.absolute()
        if not source.is_file():
            raise FileNotFoundError(f"{stage}: {source} does not exist")
        command = self._tools.command(tool)
        # Levels are the host's; the cross compiler's target has one of its own.
        level = self.sdk.cpu_levels[self.cpu_level] if self._target.host else ()
        with self.temporary_directory() as scratch:
            output = scratch / _OUTPUT_NAME
            arguments = [
                *command.dialect.spelled([*options, *level]),
                *self._reproducible(command, source, scratch),
            ]
            for step in _steps(command, arguments, [str(source), *helpers], output):
                run_tool(
                    step,
                    cwd=self.project_root,
                    # What tools keep for themselves must vanish with the directory, however they
                    # end.
                    environ={
                        **command.environ,
                        **dict.fromkeys(command.scratch_variables, str(scratch)),
                        "LC_ALL": "C",
                    },
                    timeout=self.timeout,
                    stage=stage,
                    cancelled=cancelled,
                )
            try:
                binary = output.read_bytes()
            except OSError as error:
                raise BinaryError(f"{stage}: the compiler succeeded but wrote no output") from error
        self._check_binary(binary, stage)
        return binary

    def _reproducible(self, command: Command, source: Path, scratch: Path) -> Iterator[str]:
        for directory, name in command.names:
            yield f"-ffile-prefix-map={directory}={name}"
        yield f"-ffile-prefix-map={scratch}=build"
        yield f"-ffile-prefix-map={self.sdk.root}=sdk"
        if self.isa_root is not None:
            yield f"-ffile-prefix-map={self.isa_root}=isa"
        yield f"-ffile-prefix-map={source.parent}=source"
        # Instead of the random number that link-time optimisation and coverage write.
        yield f"-frandom-seed={source.name}"

    @contextmanager
    def temporary_directory(self) -> Iterator[Path]:
        """A directory of its own where temporary files go; it is gone after the block.

        Nothing is written to find out whether that place will do.
        """
        parent = self._build_dir
        if parent is None:
            declared = Path(self._temporary)
            parent = declared if declared.is_absolute() else Path("/tmp")  # noqa: S108
        else:
            parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="pypto-build-", dir=parent) as name:
            yield Path(name).absolute()

    def _check_binary(self, binary: bytes, stage: str) -> None:
        if not binary:
            raise BinaryError(f"{stage}: the compiler succeeded but its output is empty")
        if len(binary) < _ELF_HEADER.size:
            raise BinaryError(f"{stage}: the compiler's output is too short to be an ELF file")
        magic, elf_class, byte_order, elf_type, _ = _ELF_HEADER.unpack_from(binary)
        if (magic, elf_class, byte_order) != (b"\x7fELF", _ELF_CLASS_64, _ELF_LITTLE_ENDIAN):
            raise BinaryError(f"{stage}: the compiler's output is no 64-bit ELF file")
        if elf_type != _ELF_SHARED:
            raise BinaryError(f"{stage}: the compiler's output is no shared library")


def _steps(
    command: Command, arguments: Sequence[str], sources: Sequence[str], output: Path
) -> Iterator[list[str]]:
    """The command lines that make ``output`` of ``sources``, in order."""
    link = command.dialect.link
    if link is None:
        yield [*command.argv, *arguments, *sources, "-o", str(output)]
        return
    objects = [str(output.with_name(f"{index}.o")) for index in range(len(sources))]
    for source, made in zip(sources, objects, strict=True):
        yield [*command.argv, *arguments, "-c", source, "-o", made]
    yield [*command.argv, *arguments, *link, *objects, "-o", str(output)]
