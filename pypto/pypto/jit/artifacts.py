"""Artifacts as the JIT keeps them: what each state holds, and a program made from an entry."""

from __future__ import annotations

import functools
from pathlib import Path

from pypto.runtime import compiled_meta, kernel_config
from pypto.runtime.binary_build import MANIFEST_NAME, BinaryManifest, payload_files
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.cpu_level import host_level, levels_up_to
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.storage import CompletePayload, FileCheck
from pypto_store import ArtifactSpec, Entry, State
from pypto_store.records import RecordBuilder

# What a GENERATED entry and a READY entry hold, in which form. Raise the number when either
# changes: older entries are then not found, and never misread.
FORMAT_NUMBER = 1
FORMAT = RecordBuilder("pypto.artifact-format/v1").integer("format", FORMAT_NUMBER).finish()

GENERATED = ArtifactSpec(
    State.GENERATED,
    build_kind="program",
    required_files=(kernel_config.FILE_NAME, compiled_meta.FILE_NAME),
)


@functools.cache
def cpu_level() -> str:
    """The CPU level of this machine; it does not change while a process runs."""
    return host_level()


def ready_spec(config: KernelConfig, level: str | None = None) -> ArtifactSpec:
    """What the complete artifact of a program is for a CPU level, this machine's by default."""
    return ArtifactSpec(
        State.READY,
        build_kind="program",
        required_files=payload_files(config),
        execution=(config.platform,),
        cpu_level=level or cpu_level(),
    )


class ReadySpecs:
    """Derives READY's specification from kernel tables, and keeps the tables it has parsed."""

    def __init__(self) -> None:
        self._parsed: dict[bytes, KernelConfig] = {}

    def derive(self, hint: bytes) -> ArtifactSpec:
        """The specification from the bytes of ``kernel_config.json``; ValueError if malformed."""
        return ready_spec(self.config(hint))

    def lesser(self, hint: bytes) -> tuple[ArtifactSpec, ...]:
        """The specifications for lower CPU levels, which this machine runs too; best first."""
        config = self.config(hint)
        return tuple(ready_spec(config, level) for level in levels_up_to(cpu_level())[1:])

    def config(self, table: bytes) -> KernelConfig:
        """The kernel table of the bytes of ``kernel_config.json``; ValueError if malformed."""
        config = self._parsed.get(table)
        if config is None:
            config = self._parsed[table] = KernelConfig.parse(table)
        return config

    def config_of(self, entry: Entry) -> KernelConfig:
        """The kernel table of a validated entry."""
        return self.config(entry.read(kernel_config.FILE_NAME))


def meta_of(entry: Entry) -> CompiledMeta:
    """The sidecar of a validated entry."""
    return CompiledMeta.parse(entry.read(compiled_meta.FILE_NAME), str(entry.path))


def ready_payload(
    entry: Entry, config: KernelConfig, directory: Path, verify: FileCheck
) -> CompletePayload:
    """The storage of a program whose READY entry was found."""
    return CompletePayload(
        entry.path,
        directory=directory,
        config=config,
        manifest=BinaryManifest.parse(entry.read(MANIFEST_NAME), str(entry.path)),
        artifact_key=entry.key.digest.hex,
        verify=verify,
    )
