"""The batch manifest of ``python -m pypto.runtime.execute_artifact``: its grammar.

Schema 1, a JSON object::

    schema       1
    items        a list, each with
      directory  an output directory of ir.compile
      name       optional: how results call it; the directory's name
      platform   optional: a platform token; the directory's
      device_id  optional: the chip; 0
      inputs     optional: a file of torch.save with the list of all arguments; without, the
                 directory's golden.py makes them, or they are random
      outputs    optional: a file to save the written tensors in, by parameter
      extents    optional: run-time extents by symbol, for random arguments
      validate   optional: whether golden.py must agree; without, it must if it is there

Paths are relative to the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pypto.backend import PLATFORMS
from pypto.runtime.errors import ArtifactError
from pypto_toolchains.json_fields import (
    FieldError,
    as_flag,
    as_int,
    as_list,
    as_object,
    as_text,
    check_keys,
    parse_object,
)

SCHEMA = 1

_MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One directory to run; see the module for the fields."""

    directory: Path
    name: str
    platform: str | None = None
    device_id: int = 0
    inputs: Path | None = None
    outputs: Path | None = None
    extents: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    validate: bool | None = None


def load_manifest(path: Path) -> tuple[BatchItem, ...]:
    """The items of a manifest. ArtifactError naming the file and what is wrong in it; OSError."""
    data = path.read_bytes()
    try:
        return _items(parse_object(data, _MAX_BYTES), path.absolute().parent)
    except FieldError as error:
        raise ArtifactError(f"{path}: {error}") from error


def _items(document: Mapping[str, object], folder: Path) -> tuple[BatchItem, ...]:
    check_keys(document, "the document", {"schema", "items"})
    if as_int(document["schema"], "schema") != SCHEMA:
        raise FieldError(f"schema is {document['schema']}, but this version reads {SCHEMA}")
    return tuple(
        _item(value, f"items[{index}]", folder)
        for index, value in enumerate(as_list(document["items"], "items"))
    )


def _item(value: object, where: str, folder: Path) -> BatchItem:
    fields = as_object(value, where)
    check_keys(
        fields,
        where,
        {"directory"},
        {"name", "platform", "device_id", "inputs", "outputs", "extents", "validate"},
    )
    directory = folder / as_text(fields["directory"], f"{where}.directory")
    platform = None
    if "platform" in fields:
        platform = as_text(fields["platform"], f"{where}.platform")
        if platform not in PLATFORMS:
            raise FieldError(f"{where}.platform {platform!r} is none of {', '.join(PLATFORMS)}")
    device_id = as_int(fields.get("device_id", 0), f"{where}.device_id")
    if device_id < 0:
        raise FieldError(f"{where}.device_id is negative")
    files = {
        name: folder / as_text(fields[name], f"{where}.{name}")
        for name in ("inputs", "outputs")
        if name in fields
    }
    extents = {
        symbol: as_int(extent, f"{where}.extents.{symbol}")
        for symbol, extent in as_object(fields.get("extents", {}), f"{where}.extents").items()
    }
    if any(extent < 0 for extent in extents.values()):
        raise FieldError(f"{where}.extents has a negative extent")
    return BatchItem(
        directory,
        as_text(fields["name"], f"{where}.name") if "name" in fields else directory.resolve().name,
        platform,
        device_id,
        files.get("inputs"),
        files.get("outputs"),
        MappingProxyType(extents),
        as_flag(fields["validate"], f"{where}.validate") if "validate" in fields else None,
    )
