"""``compiled_meta.json``: the sidecar that makes a directory callable without its program.

Schema 1::

    schema                     1
    params                     in order: name, direction (In | Out | InOut),
                               shape (extents, -1 where dynamic; null for a scalar), dtype,
                               optionally symbols (a name or null beside each extent)
    num_return_types           how many values the function returns
    platform                   platform token
    backend_type               name of the architecture
    supported_execution_modes  optional: sim, onboard
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.backend import PLATFORMS, BackendType, ExecutionMode
from pypto.ir.dtypes import BY_NAME
from pypto.ir.nodes import Direction
from pypto.ir.param_info import ParamInfo
from pypto.runtime.directory_kind import where_to_look
from pypto.runtime.errors import ArtifactError
from pypto.runtime.whole_file import replace_file
from pypto_toolchains.json_fields import (
    FieldError,
    as_int,
    as_list,
    as_object,
    as_text,
    as_texts,
    check_keys,
    parse_object,
)

SCHEMA = 1
FILE_NAME = "compiled_meta.json"

_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CompiledMeta:
    """What a caller needs to know of a compiled program."""

    params: tuple[ParamInfo, ...]
    num_return_types: int
    platform: str
    backend_type: BackendType
    supported_execution_modes: tuple[ExecutionMode, ...] = (
        ExecutionMode.SIM,
        ExecutionMode.ONBOARD,
    )

    def __post_init__(self) -> None:
        target = PLATFORMS.get(self.platform)
        if target is None:
            raise FieldError(f"platform {self.platform!r} is unknown")
        if target.backend_type is not self.backend_type:
            raise FieldError(
                f"platform {self.platform!r} is not of backend {self.backend_type.name}"
            )
        names = [param.name for param in self.params]
        if len(set(names)) != len(names):
            raise FieldError("params has two parameters of one name")
        if self.num_return_types < 0:
            raise FieldError("num_return_types is negative")

    def to_json(self) -> bytes:
        """The file's bytes; equal values give equal bytes."""
        params = []
        for param in self.params:
            fields: dict[str, Any] = {
                "name": param.name,
                "direction": param.direction.value,
                "shape": None if param.shape is None else list(param.shape),
                "dtype": param.dtype.name,
            }
            if any(param.symbols):
                fields["symbols"] = list(param.symbols)
            params.append(fields)
        document = {
            "schema": SCHEMA,
            "params": params,
            "num_return_types": self.num_return_types,
            "platform": self.platform,
            "backend_type": self.backend_type.name,
            "supported_execution_modes": [mode.value for mode in self.supported_execution_modes],
        }
        return (json.dumps(document, indent=2) + "\n").encode()

    def write(self, directory: Path) -> None:
        """Replace the sidecar of ``directory`` at once."""
        replace_file(directory / FILE_NAME, self.to_json())

    @classmethod
    def parse(cls, data: bytes, origin: str = FILE_NAME) -> CompiledMeta:
        """The value of the file's bytes; ArtifactError naming ``origin`` if they are malformed."""
        try:
            return _meta(parse_object(data, _MAX_BYTES))
        except FieldError as error:
            raise ArtifactError(f"{origin}: {error}; recompile via ir.compile()") from error

    @classmethod
    def load(cls, directory: Path) -> CompiledMeta:
        """The sidecar of ``directory``.

        Raises FileNotFoundError where there is none, ArtifactError (a ValueError) where it is
        malformed.
        """
        path = directory / FILE_NAME
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(
                f"{path}: no such sidecar; {where_to_look(directory)}"
            ) from None
        return cls.parse(data, str(path))


def _meta(document: dict[str, Any]) -> CompiledMeta:
    check_keys(
        document,
        "the document",
        {"schema", "params", "num_return_types", "platform", "backend_type"},
        {"supported_execution_modes"},
    )
    if as_int(document["schema"], "schema") != SCHEMA:
        raise FieldError(f"schema is {document['schema']}, but this version reads {SCHEMA}")
    backend = as_text(document["backend_type"], "backend_type")
    if backend not in BackendType.__members__:
        raise FieldError(f"backend_type {backend!r} is unknown")
    modes = document.get("supported_execution_modes")
    known = {mode.value: mode for mode in ExecutionMode}
    texts = tuple(known) if modes is None else as_texts(modes, "supported_execution_modes")
    for text in texts:
        if text not in known:
            raise FieldError(f"supported_execution_modes holds {text!r}, which is unknown")
    return CompiledMeta(
        params=tuple(
            _param(item, f"params[{index}]")
            for index, item in enumerate(as_list(document["params"], "params"))
        ),
        num_return_types=as_int(document["num_return_types"], "num_return_types"),
        platform=as_text(document["platform"], "platform"),
        backend_type=BackendType[backend],
        supported_execution_modes=tuple(known[text] for text in texts),
    )


def _param(value: object, where: str) -> ParamInfo:
    fields = as_object(value, where)
    check_keys(fields, where, {"name", "direction", "shape", "dtype"}, {"symbols"})
    direction = as_text(fields["direction"], f"{where}.direction")
    if direction not in Direction.__members__:
        raise FieldError(f"{where}.direction {direction!r} is unknown")
    dtype = as_text(fields["dtype"], f"{where}.dtype")
    if dtype not in BY_NAME:
        raise FieldError(f"{where}.dtype {dtype!r} is unknown")
    shape = fields["shape"]
    extents = None
    if shape is not None:
        extents = tuple(
            as_int(item, f"{where}.shape[{index}]")
            for index, item in enumerate(as_list(shape, f"{where}.shape"))
        )
    symbols = tuple(
        None if item is None else as_text(item, f"{where}.symbols[{index}]")
        for index, item in enumerate(as_list(fields.get("symbols", []), f"{where}.symbols"))
    )
    try:
        return ParamInfo(
            name=as_text(fields["name"], f"{where}.name"),
            direction=Direction[direction],
            shape=extents,
            dtype=BY_NAME[dtype],
            symbols=symbols,
        )
    except FieldError:
        raise
    except ValueError as error:
        raise FieldError(f"{where}: {error}") from error
