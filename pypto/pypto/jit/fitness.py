"""Whether what came from somewhere else is an artifact as this version makes them.

A store and a remote know that an entry has the files that its manifest lists. What is in them is
for the JIT to read, and a file that it cannot read would fail every later request for the kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pypto.jit.artifacts import ready_spec
from pypto.runtime import compiled_meta, kernel_config
from pypto.runtime.binary_build import MANIFEST_NAME, BinaryManifest
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.errors import ArtifactError
from pypto.runtime.kernel_config import KernelConfig
from pypto_store import State

if TYPE_CHECKING:
    from pypto_store.manifest import Manifest


def misfit(manifest: Manifest, directory: str) -> str | None:
    """Why the payload in `directory` is no artifact such as `manifest` says, or None if it is.

    Only descriptions are read: nothing tells whether sources or machine code are the right ones.
    OSError where they cannot be read.
    """
    place = Path(directory)
    try:
        config = KernelConfig.parse((place / kernel_config.FILE_NAME).read_bytes())
        meta = CompiledMeta.parse(
            (place / compiled_meta.FILE_NAME).read_bytes(), compiled_meta.FILE_NAME
        )
        if meta.platform != config.platform:
            return f"{compiled_meta.FILE_NAME} and {kernel_config.FILE_NAME} name two platforms"
        if manifest.spec.state is State.GENERATED:
            return _misfit_of_sources(manifest, config)
        binaries = BinaryManifest.parse((place / MANIFEST_NAME).read_bytes())
    except ArtifactError as error:
        return str(error)
    return _misfit_of_binaries(manifest, config, binaries)


def _misfit_of_sources(manifest: Manifest, config: KernelConfig) -> str | None:
    named = {config.orchestration.source, *(kernel.source for kernel in config.kernels)}
    lacking = named - {record.path for record in manifest.files}
    if lacking:
        return f"{kernel_config.FILE_NAME} names {min(lacking)}, which is not there"
    return None


def _misfit_of_binaries(
    manifest: Manifest, config: KernelConfig, binaries: BinaryManifest
) -> str | None:
    spec = manifest.spec
    try:
        derived = ready_spec(config, spec.cpu_level)
    except ValueError as error:
        return f"{kernel_config.FILE_NAME}: {error}"
    if derived != spec:
        return f"{kernel_config.FILE_NAME} is not that of this specification"
    built_for = (binaries.platform, binaries.runtime, binaries.cpu_level)
    kernels = [(kernel.func_id, kernel.core_type) for kernel in config.kernels]
    if built_for != (config.platform, config.runtime, spec.cpu_level) or kernels != [
        (func_id, core_type) for func_id, core_type, _ in binaries.kernels
    ]:
        return f"{MANIFEST_NAME} and {kernel_config.FILE_NAME} disagree"
    named = {binaries.orchestration, *(file for _, _, file in binaries.kernels)}
    lacking = named - {record.path for record in manifest.files}
    return f"{MANIFEST_NAME} names {min(lacking)}, which is not there" if lacking else None
