"""``kernel_config.json``: which sources make a program and how its kernels are numbered.

Schema 1::

    schema             1
    platform           platform token
    runtime            host_build_graph | tensormap_and_ringbuffer
    aicpu_thread_num   0 (automatic) or a number of scheduler threads
    orchestration      source, function_name, signature
    kernels            in order of func_id, which counts from 0:
                       func_id, name, source, core_type (aiv | aic), signature,
                       optionally external (bool) and extra_include_dirs

A signature lists the directions (In, Out, InOut) of the tensors in the order they are passed.
Sources are relative to the directory of the file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pypto.backend import PLATFORMS, RuntimeKind
from pypto.ir.nodes import Direction
from pypto.runtime.errors import ArtifactError
from pypto.runtime.sdk import CORE_TYPES
from pypto_toolchains.json_fields import (
    FieldError,
    as_flag,
    as_int,
    as_list,
    as_object,
    as_relative_path,
    as_text,
    as_texts,
    check_keys,
    parse_object,
)

SCHEMA = 1
FILE_NAME = "kernel_config.json"

_MAX_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class OrchestrationEntry:
    """The orchestration function of a program."""

    source: str
    function_name: str
    signature: tuple[Direction, ...]

    @property
    def name(self) -> str:
        """The program's name: that of its orchestration source."""
        return self.source.rsplit("/", 1)[-1].rsplit(".", 1)[0]


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """One kernel. ``external`` sources come from the user and may include what they like."""

    func_id: int
    name: str
    source: str
    core_type: str
    signature: tuple[Direction, ...]
    external: bool = False
    extra_include_dirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """The parsed file; kernels are ordered by ``func_id``, which is their index."""

    platform: str
    runtime: RuntimeKind
    aicpu_thread_num: int
    orchestration: OrchestrationEntry
    kernels: tuple[KernelEntry, ...]

    def __post_init__(self) -> None:
        if self.platform not in PLATFORMS:
            raise FieldError(f"platform {self.platform!r} is unknown")
        if self.aicpu_thread_num < 0 or self.aicpu_thread_num == 1:
            raise FieldError("aicpu_thread_num must be 0 or at least 2")
        for index, kernel in enumerate(self.kernels):
            if kernel.func_id != index:
                raise FieldError(f"kernels[{index}] has func_id {kernel.func_id}, not its index")
            if kernel.core_type not in CORE_TYPES:
                raise FieldError(f"kernels[{index}].core_type is {kernel.core_type!r}")

    def to_json(self) -> bytes:
        """The file's bytes; equal values give equal bytes."""
        kernels = []
        for kernel in self.kernels:
            fields: dict[str, Any] = {
                "func_id": kernel.func_id,
                "name": kernel.name,
                "source": kernel.source,
                "core_type": kernel.core_type,
                "signature": [direction.value for direction in kernel.signature],
            }
            if kernel.external:
                fields["external"] = True
            if kernel.extra_include_dirs:
                fields["extra_include_dirs"] = list(kernel.extra_include_dirs)
            kernels.append(fields)
        document = {
            "schema": SCHEMA,
            "platform": self.platform,
            "runtime": self.runtime.value,
            "aicpu_thread_num": self.aicpu_thread_num,
            "orchestration": {
                "source": self.orchestration.source,
                "function_name": self.orchestration.function_name,
                "signature": [direction.value for direction in self.orchestration.signature],
            },
            "kernels": kernels,
        }
        return (json.dumps(document, indent=2) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes, origin: str = FILE_NAME) -> KernelConfig:
        """The value of the file's bytes; ArtifactError naming ``origin`` if they are malformed."""
        try:
            return _config(parse_object(data, _MAX_BYTES))
        except FieldError as error:
            raise ArtifactError(f"{origin}: {error}; recompile via ir.compile()") from error


def _config(document: dict[str, Any]) -> KernelConfig:
    check_keys(
        document,
        "the document",
        {"schema", "platform", "runtime", "aicpu_thread_num", "orchestration", "kernels"},
    )
    if as_int(document["schema"], "schema") != SCHEMA:
        raise FieldError(f"schema is {document['schema']}, but this version reads {SCHEMA}")
    runtime = as_text(document["runtime"], "runtime")
    try:
        kind = RuntimeKind(runtime)
    except ValueError as error:
        raise FieldError(f"runtime {runtime!r} is unknown") from error
    orchestration = as_object(document["orchestration"], "orchestration")
    check_keys(orchestration, "orchestration", {"source", "function_name", "signature"})
    return KernelConfig(
        platform=as_text(document["platform"], "platform"),
        runtime=kind,
        aicpu_thread_num=as_int(document["aicpu_thread_num"], "aicpu_thread_num"),
        orchestration=OrchestrationEntry(
            source=as_relative_path(orchestration["source"], "orchestration.source"),
            function_name=as_text(orchestration["function_name"], "orchestration.function_name"),
            signature=_signature(orchestration["signature"], "orchestration.signature"),
        ),
        kernels=tuple(
            _kernel(item, f"kernels[{index}]")
            for index, item in enumerate(as_list(document["kernels"], "kernels"))
        ),
    )


def _kernel(value: object, where: str) -> KernelEntry:
    fields = as_object(value, where)
    check_keys(
        fields,
        where,
        {"func_id", "name", "source", "core_type", "signature"},
        {"external", "extra_include_dirs"},
    )
    return KernelEntry(
        func_id=as_int(fields["func_id"], f"{where}.func_id"),
        name=as_text(fields["name"], f"{where}.name"),
        source=as_relative_path(fields["source"], f"{where}.source"),
        core_type=as_text(fields["core_type"], f"{where}.core_type"),
        signature=_signature(fields["signature"], f"{where}.signature"),
        external=as_flag(fields.get("external", False), f"{where}.external"),
        extra_include_dirs=as_texts(
            fields.get("extra_include_dirs", []), f"{where}.extra_include_dirs"
        ),
    )


def _signature(value: object, where: str) -> tuple[Direction, ...]:
    try:
        return tuple(Direction(item) for item in as_texts(value, where))
    except ValueError as error:
        if isinstance(error, FieldError):
            raise
        raise FieldError(f"{where}: {error}") from error
