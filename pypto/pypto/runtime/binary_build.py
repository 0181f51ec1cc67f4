"""Building all binaries of a program, and the payload that a complete artifact consists of.

A payload is what a program needs to be loaded, without its sources::

    kernel_config.json        which kernels there are
    compiled_meta.json        how the program is called
    binary_manifest.json      which file holds which kernel, and for what they were built
    prebuilt/kernel_<id>.bin  shared libraries
    prebuilt/orchestration.bin
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.backend import PLATFORMS, RuntimeKind
from pypto.runtime import compiled_meta, kernel_config
from pypto.runtime.errors import ArtifactError
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.sdk import CORE_TYPES
from pypto_toolchains.json_fields import (
    FieldError,
    as_int,
    as_list,
    as_object,
    as_relative_path,
    as_text,
    check_keys,
    parse_object,
)

ORCHESTRATION = "orchestration.bin"
MANIFEST_NAME = "binary_manifest.json"
PAYLOAD_DIRECTORY = "prebuilt"

SCHEMA = 1

_MAX_MANIFEST_BYTES = 1 << 20


def kernel_file(func_id: int) -> str:
    """The name of the file that holds kernel ``func_id``."""
    return f"kernel_{func_id}.bin"


def binary_sources(config: KernelConfig) -> Mapping[str, str]:
    """The source of every binary of a program, by the binary's file name."""
    sources = {kernel_file(kernel.func_id): kernel.source for kernel in config.kernels}
    sources[ORCHESTRATION] = config.orchestration.source
    return sources


def compile_binaries(
    sources_dir: Path,
    config: KernelConfig,
    compiler: KernelCompiler,
    names: Iterable[str],
    *,
    workers: int | None = None,
    cancelled: threading.Event | None = None,
) -> dict[str, bytes]:
    """Compile the named binaries side by side, ``workers`` at a time (default: one a processor).

    If some fail, the error of the first in the order of ``names`` is raised and the others'
    compilers are killed; so they are on an interrupt. Nothing they wrote remains. ``cancelled``
    belongs to this call: another thread may set it, and a failure sets it too.
    """
    if cancelled is None:
        cancelled = threading.Event()
    if workers is None:
        workers = len(os.sched_getaffinity(0))
    tasks = {name: _compilation(name, sources_dir, config, compiler, cancelled) for name in names}
    if min(len(tasks), workers) <= 1:
        return {name: task() for name, task in tasks.items()}
    # Imports logging, which a process that only restores does not need.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(
        max_workers=min(len(tasks), workers), thread_name_prefix="pypto-compile"
    ) as pool:
        futures = {name: pool.submit(task) for name, task in tasks.items()}
        try:
            return {name: future.result() for name, future in futures.items()}
        except BaseException:
            cancelled.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _compilation(
    name: str,
    sources_dir: Path,
    config: KernelConfig,
    compiler: KernelCompiler,
    cancelled: threading.Event,
) -> Callable[[], bytes]:
    if name == ORCHESTRATION:
        source = sources_dir / config.orchestration.source
        return lambda: compiler.compile_orchestration(source, cancelled=cancelled)
    kernel = next(entry for entry in config.kernels if kernel_file(entry.func_id) == name)
    return lambda: compiler.compile_incore(
        sources_dir / kernel.source,
        kernel.core_type,
        extra_include_dirs=[sources_dir / item for item in kernel.extra_include_dirs],
        cancelled=cancelled,
    )


@dataclass(frozen=True, slots=True)
class BinaryManifest:
    """What ``binary_manifest.json`` says. Files are relative to the payload's directory.

    Schema 1: schema, platform, runtime, cpu_level, orchestration (file), kernels (func_id,
    core_type, file; in order of func_id).
    """

    platform: str
    runtime: RuntimeKind
    cpu_level: str
    orchestration: str
    kernels: tuple[tuple[int, str, str], ...]

    def to_json(self) -> bytes:
        """The file's bytes; equal values give equal bytes."""
        document = {
            "schema": SCHEMA,
            "platform": self.platform,
            "runtime": self.runtime.value,
            "cpu_level": self.cpu_level,
            "orchestration": self.orchestration,
            "kernels": [
                {"func_id": func_id, "core_type": core_type, "file": file}
                for func_id, core_type, file in self.kernels
            ],
        }
        return (json.dumps(document, indent=2) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes, origin: str = MANIFEST_NAME) -> BinaryManifest:
        """The value of the file's bytes; ArtifactError naming ``origin`` if they are malformed."""
        try:
            return _manifest(parse_object(data, _MAX_MANIFEST_BYTES))
        except FieldError as error:
            raise ArtifactError(f"{origin}: {error}") from error


def _manifest(document: dict[str, Any]) -> BinaryManifest:
    check_keys(
        document,
        "the document",
        {"schema", "platform", "runtime", "cpu_level", "orchestration", "kernels"},
    )
    if as_int(document["schema"], "schema") != SCHEMA:
        raise FieldError(f"schema is {document['schema']}, but this version reads {SCHEMA}")
    platform = as_text(document["platform"], "platform")
    if platform not in PLATFORMS:
        raise FieldError(f"platform {platform!r} is unknown")
    runtime = as_text(document["runtime"], "runtime")
    kinds = {kind.value: kind for kind in RuntimeKind}
    if runtime not in kinds:
        raise FieldError(f"runtime {runtime!r} is unknown")
    kernels = []
    for index, item in enumerate(as_list(document["kernels"], "kernels")):
        where = f"kernels[{index}]"
        fields = as_object(item, where)
        check_keys(fields, where, {"func_id", "core_type", "file"})
        if as_int(fields["func_id"], f"{where}.func_id") != index:
            raise FieldError(f"{where} has func_id {fields['func_id']}, not its index")
        core_type = as_text(fields["core_type"], f"{where}.core_type")
        if core_type not in CORE_TYPES:
            raise FieldError(f"{where}.core_type {core_type!r} is unknown")
        kernels.append((index, core_type, as_relative_path(fields["file"], f"{where}.file")))
    return BinaryManifest(
        platform=platform,
        runtime=kinds[runtime],
        cpu_level=as_text(document["cpu_level"], "cpu_level"),
        orchestration=as_relative_path(document["orchestration"], "orchestration"),
        kernels=tuple(kernels),
    )


def payload_files(config: KernelConfig) -> tuple[str, ...]:
    """Every file of the payload of a program, relative to its directory, sorted."""
    return tuple(
        sorted(
            [
                kernel_config.FILE_NAME,
                compiled_meta.FILE_NAME,
                MANIFEST_NAME,
                *(f"{PAYLOAD_DIRECTORY}/{name}" for name in binary_sources(config)),
            ]
        )
    )


def build_payload(
    sources_dir: Path,
    compiler: KernelCompiler,
    out_dir: Path,
    *,
    workers: int | None = None,
    cancelled: threading.Event | None = None,
) -> None:
    """Build every binary of the program in ``sources_dir`` and write the payload to ``out_dir``.

    ``out_dir`` must exist; it is complete on return and of no use after an error. The rest is as
    in `compile_binaries`.
    """
    config_bytes = (sources_dir / kernel_config.FILE_NAME).read_bytes()
    config = KernelConfig.parse(config_bytes, str(sources_dir / kernel_config.FILE_NAME))
    meta_bytes = (sources_dir / compiled_meta.FILE_NAME).read_bytes()
    binaries = compile_binaries(
        sources_dir, config, compiler, binary_sources(config), workers=workers, cancelled=cancelled
    )
    manifest = BinaryManifest(
        platform=compiler.platform,
        runtime=config.runtime,
        cpu_level=compiler.cpu_level,
        orchestration=f"{PAYLOAD_DIRECTORY}/{ORCHESTRATION}",
        kernels=tuple(
            (
                kernel.func_id,
                kernel.core_type,
                f"{PAYLOAD_DIRECTORY}/{kernel_file(kernel.func_id)}",
            )
            for kernel in config.kernels
        ),
    )
    (out_dir / kernel_config.FILE_NAME).write_bytes(config_bytes)
    (out_dir / compiled_meta.FILE_NAME).write_bytes(meta_bytes)
    (out_dir / MANIFEST_NAME).write_bytes(manifest.to_json())
    (out_dir / PAYLOAD_DIRECTORY).mkdir()
    for name, binary in binaries.items():
        (out_dir / PAYLOAD_DIRECTORY / name).write_bytes(binary)
