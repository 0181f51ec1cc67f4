"""Where a compiled program's files are, and how its binaries come into being.

A program is used the same way wherever it lies; what differs is who may write there and whether a
file at a path may become another one. Each case is a class of its own:

``OutputDirectory``  sources that the user may edit; binaries are kept beside them in transactions
``UnassembledDirectory``  a directory whose kernels stayed ``.pto`` texts: it has no binaries
``CompletePayload``  an immutable, validated payload without sources
``PendingPayload``   immutable sources; the first use builds a payload and hands it to a publisher
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from pypto.backend import RuntimeKind
from pypto.runtime import kernel_config
from pypto.runtime.binary_build import (
    MANIFEST_NAME,
    ORCHESTRATION,
    BinaryManifest,
    binary_sources,
    build_payload,
    compile_binaries,
    kernel_file,
)
from pypto.runtime.binary_directory import CACHE_DIRECTORY, obtain_binaries
from pypto.runtime.directory_kind import where_to_look
from pypto.runtime.errors import ArtifactError, ToolchainUnavailable
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.kernel_config import KernelConfig
from pypto_store.flights import Flights

# Makes the compiler of a platform token and a runtime; called when something must be built.
CompilerFactory = Callable[[str, RuntimeKind], KernelCompiler]

# Fills an empty directory with a payload.
PayloadBuilder = Callable[[Path], None]

# Raises if the payload's file of that name is no longer what was validated.
FileCheck = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BinaryPaths:
    """Libraries to load. No other file was or will be at one of these paths in this process."""

    runtime: RuntimeKind
    orchestration: Path
    kernels: tuple[tuple[int, str, Path], ...]


@dataclass(frozen=True, slots=True)
class Publication:
    """A payload, whether it lies where other processes find it, and how its files are checked."""

    directory: Path
    shared: bool
    verify: FileCheck | None = None


class ProgramStorage(Protocol):
    """What `CompiledProgram` needs of the place its files are in."""

    @property
    def directory(self) -> Path:
        """The program's public output directory."""
        ...

    @property
    def config(self) -> KernelConfig:
        """The kernels of the program."""
        ...

    @property
    def artifact_key(self) -> str | None:
        """The key under which other processes find the program; ``None`` if they do not."""
        ...

    def complete(self) -> None:
        """Make sure that all binaries exist, loading none."""
        ...

    def binaries(self, platform: str) -> AbstractContextManager[BinaryPaths]:
        """The binaries for a platform token; the files may be gone after the block."""
        ...


class OutputDirectory:
    """A directory that `ir.compile` wrote and that its owner may change at any time."""

    artifact_key: str | None = None

    def __init__(self, directory: Path, compilers: CompilerFactory) -> None:
        self.directory = directory
        self.config = _read_config(directory)
        self._compilers = compilers

    def complete(self) -> None:
        """Build what is missing in the directory."""
        self._obtain()

    def _obtain(self) -> Mapping[str, bytes]:
        compiler = self._compilers(self.config.platform, self.config.runtime)
        return obtain_binaries(self.directory, self.config, compiler)

    @contextmanager
    def binaries(self, platform: str) -> Iterator[BinaryPaths]:
        """Copies of the directory's binaries; those of another execution mode are not kept."""
        if platform == self.config.platform:
            cache = self.directory / CACHE_DIRECTORY
            copies = _private_copies(self._obtain(), self.config, cache)
        else:
            copies = _built_privately(self.directory, self.config, self._compilers, platform)
        with copies as paths:
            yield paths


class UnassembledDirectory:
    """A directory that was compiled without the assembler; it can be read and never run."""

    artifact_key: str | None = None

    def __init__(self, directory: Path, config: KernelConfig) -> None:
        self.directory = directory
        self.config = config

    def complete(self) -> None:
        """Raises ArtifactError: there is no C++ to build."""
        self._refuse()

    def binaries(self, platform: str) -> AbstractContextManager[BinaryPaths]:
        """Raises ArtifactError, as `complete` does."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ArtifactError(
            f"{self.directory}: was compiled with skip_ptoas=True, so its kernels have no C++ to "
            "build; compile it without to run it"
        )


class CompletePayload:
    """A validated payload that nobody changes; its libraries are opened where they are.

    ``sources`` is the directory of the sources, if they are at hand, for the other execution mode.
    ``verify`` is asked about each library right before its path is handed out, because the first
    run may come long after the payload was validated.
    """

    def __init__(
        self,
        payload: Path,
        *,
        directory: Path,
        config: KernelConfig,
        manifest: BinaryManifest,
        artifact_key: str | None = None,
        sources: Path | None = None,
        compilers: CompilerFactory | None = None,
        verify: FileCheck | None = None,
    ) -> None:
        self.directory = directory
        self.config = config
        self.artifact_key = artifact_key
        self._verify = verify
        self._payload = payload
        self._manifest = manifest
        self._sources = sources
        self._compilers = compilers
        kernels = tuple((kernel.func_id, kernel.core_type) for kernel in config.kernels)
        if manifest.runtime is not config.runtime or kernels != tuple(
            (func_id, core_type) for func_id, core_type, _ in manifest.kernels
        ):
            raise ArtifactError(f"{payload}: {MANIFEST_NAME} and the kernel table disagree")

    def complete(self) -> None:
        """Nothing is missing."""

    @contextmanager
    def binaries(self, platform: str) -> Iterator[BinaryPaths]:
        """The payload's libraries; those of another execution mode are built privately."""
        if platform == self._manifest.platform:
            if self._verify is not None:
                for file in (self._manifest.orchestration, *(k[2] for k in self._manifest.kernels)):
                    self._verify(file)
            yield BinaryPaths(
                self._manifest.runtime,
                self._payload / self._manifest.orchestration,
                tuple(
                    (func_id, core_type, self._payload / file)
                    for func_id, core_type, file in self._manifest.kernels
                ),
            )
            return
        if self._sources is None or self._compilers is None:
            raise ToolchainUnavailable(
                f"{self.directory}: holds binaries for platform {self._manifest.platform!r} only; "
                f"compile the program for {platform!r}"
            )
        with _built_privately(self._sources, self.config, self._compilers, platform) as paths:
            yield paths


class PendingPayload:
    """Immutable sources whose payload the first use builds.

    ``publish`` is given a builder, calls it at most once on an empty directory and returns where
    the payload is: where the builder wrote it, where it was published, or where somebody else's
    was found. Only the returned directory is used. Threads share one publication and its error;
    the next use after an error tries again, and so does a child forked meanwhile.
    """

    def __init__(
        self,
        sources: Path,
        *,
        directory: Path,
        config: KernelConfig,
        compilers: CompilerFactory,
        publish: Callable[[PayloadBuilder], Publication],
        artifact_key: str | None = None,
    ) -> None:
        self.directory = directory
        self.config = config
        self.artifact_key = artifact_key
        self._sources = sources
        self._compilers = compilers
        self._publish = publish
        self._flights: Flights[CompletePayload] = Flights()
        self._payload: CompletePayload | None = None

    def complete(self) -> None:
        """Build the payload and hand it to the publisher, unless that has been done."""
        self._complete()

    def _complete(self) -> CompletePayload:
        payload = self._payload
        if payload is None:
            payload = self._flights.run("payload", self._obtain)
        return payload

    def _obtain(self) -> CompletePayload:
        # Another flight may have landed since the look before this one.
        if self._payload is None:
            compiler = self._compilers(self.config.platform, self.config.runtime)
            publication = self._publish(
                lambda out_dir: build_payload(self._sources, compiler, out_dir)
            )
            if not publication.shared:
                self.artifact_key = None
            path = publication.directory / MANIFEST_NAME
            self._payload = CompletePayload(
                publication.directory,
                directory=self.directory,
                config=self.config,
                manifest=BinaryManifest.parse(path.read_bytes(), str(path)),
                artifact_key=self.artifact_key,
                sources=self._sources,
                compilers=self._compilers,
                verify=publication.verify,
            )
        return self._payload

    @contextmanager
    def binaries(self, platform: str) -> Iterator[BinaryPaths]:
        """The published libraries; those of another execution mode are never published."""
        if platform == self.config.platform:
            built = self._complete().binaries(platform)
        else:
            built = _built_privately(self._sources, self.config, self._compilers, platform)
        with built as paths:
            yield paths


def _read_config(directory: Path) -> KernelConfig:
    path = directory / kernel_config.FILE_NAME
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{path}: no such file; {where_to_look(directory)}") from None
    return KernelConfig.parse(data, str(path))


@contextmanager
def _built_privately(
    sources: Path, config: KernelConfig, compilers: CompilerFactory, platform: str
) -> Iterator[BinaryPaths]:
    """Binaries for another execution mode than the program's, which are kept nowhere."""
    compiler = compilers(platform, config.runtime)
    binaries = compile_binaries(sources, config, compiler, binary_sources(config))
    with (
        compiler.temporary_directory() as parent,
        _private_copies(binaries, config, parent) as paths,
    ):
        yield paths


@contextmanager
def _private_copies(
    binaries: Mapping[str, bytes], config: KernelConfig, parent: Path
) -> Iterator[BinaryPaths]:
    """Files that nothing else names, for as long as the block runs.

    The loader takes a path it has opened before for the same library, and so it does an inode: it
    would give the old code for a rebuilt file. A copy under a name of its own is neither.
    """
    with tempfile.TemporaryDirectory(prefix=".load-", dir=parent) as name:
        directory = Path(name)
        for file, binary in binaries.items():
            (directory / file).write_bytes(binary)
        yield BinaryPaths(
            config.runtime,
            directory / ORCHESTRATION,
            tuple(
                (kernel.func_id, kernel.core_type, directory / kernel_file(kernel.func_id))
                for kernel in config.kernels
            ),
        )
