"""The description of a hermetic toolchain, as the build that made the toolchain writes it.

``identity.json`` is a JSON object in UTF-8. Its directory is the toolchain's; every path in it is
relative to that and stays below, so that a toolchain is the same wherever it lies. Schema 1::

    schema      1
    components  component name -> component; exactly those of `COMPONENTS`
    tools       tool name -> tool; at least `host_cxx`, what else the SDK names is optional
    inventory   path: the file that lists the toolchain's files (see `toolchain_inventory`),
                sha256: the digest of its content

    component   label: what declares it, for messages alone,
                digest: 64 hex digits; of `device_toolchain`, that of its inventory lines;
                of `ptoas`, that of the assembler; of `pto_isa`, what the SDK's pin says;
                of `runtime`, the revision of the SDK
    tool        argv: the first arguments of its command line, the executable's path first,
                dialect: which options it takes, one of `DIALECTS`

History: 1, the first. A change of meaning or of fields takes the next number and a line here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pypto_toolchains.disk import SYSTEM_DISK, Disk, read_whole
from pypto_toolchains.json_fields import (
    FieldError,
    as_int,
    as_object,
    as_relative_path,
    as_text,
    as_texts,
    check_keys,
    parse_object,
)
from pypto_toolchains.sdk import is_revision

SCHEMA = 1

COMPONENTS = ("device_toolchain", "pto_isa", "ptoas", "runtime")
"""What a description declares; the package itself is what was imported."""

DIALECTS = ("clang", "gcc", "zig")

HOST_TOOL = "host_cxx"

_MAX_BYTES = 1 << 18
_MAX_ARGUMENTS = 64


class DescriptionError(Exception):
    """A description that is not there or says something impossible: which file, what, and what
    to do."""


@dataclass(frozen=True, slots=True)
class DeclaredComponent:
    """What a component is known by, and who says so."""

    label: str
    digest: str


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """How a tool is started. `argv[0]` is relative to the toolchain's directory."""

    argv: tuple[str, ...]
    dialect: str


@dataclass(frozen=True, slots=True)
class ToolchainDescription:
    """A parsed description. `path` is where it was read, which takes part in nothing it names."""

    path: str
    components: Mapping[str, DeclaredComponent]
    tools: Mapping[str, DeclaredTool]
    inventory_path: str
    inventory_sha256: str

    @property
    def directory(self) -> str:
        """The toolchain's directory."""
        return os.path.dirname(self.path)


def read_description(path: str, disk: Disk = SYSTEM_DISK) -> ToolchainDescription:
    """The description in the file at `path`, which is absolute. Raises DescriptionError."""
    try:
        data = read_whole(path, disk, _MAX_BYTES)
    except OSError as error:
        raise DescriptionError(
            f"cannot read {path}: {error.strerror}; PYPTO_TOOLCHAIN names the identity.json of an "
            f"installed toolchain"
        ) from error
    return parse_description(data, path)


def parse_description(data: bytes, path: str) -> ToolchainDescription:
    """The description that the bytes of the file `path` are. Raises DescriptionError."""
    try:
        return _description(parse_object(data, _MAX_BYTES), path)
    except FieldError as error:
        raise DescriptionError(
            f"{path}: {error}; install the toolchain again, with the version of pypto that uses it"
        ) from error


def _description(document: Mapping[str, object], path: str) -> ToolchainDescription:
    if "schema" not in document:
        raise FieldError("lacks 'schema'")
    schema = as_int(document["schema"], "schema")
    if schema != SCHEMA:
        raise FieldError(f"schema is {schema}, but this version reads schema {SCHEMA}")
    check_keys(document, "the document", {"schema", "components", "tools", "inventory"})
    components = as_object(document["components"], "components")
    check_keys(components, "components", set(COMPONENTS))
    tools = as_object(document["tools"], "tools")
    if HOST_TOOL not in tools:
        raise FieldError(f"tools lacks {HOST_TOOL!r}")
    inventory = as_object(document["inventory"], "inventory")
    check_keys(inventory, "inventory", {"path", "sha256"})
    return ToolchainDescription(
        path,
        MappingProxyType(
            {name: _component(components[name], f"components.{name}") for name in COMPONENTS}
        ),
        MappingProxyType({name: _tool(tools[name], f"tools.{name}") for name in sorted(tools)}),
        as_relative_path(inventory["path"], "inventory.path"),
        _digest(inventory["sha256"], "inventory.sha256"),
    )


def _component(value: object, where: str) -> DeclaredComponent:
    fields = as_object(value, where)
    check_keys(fields, where, {"label", "digest"})
    return DeclaredComponent(
        as_text(fields["label"], f"{where}.label"), _digest(fields["digest"], f"{where}.digest")
    )


def _tool(value: object, where: str) -> DeclaredTool:
    fields = as_object(value, where)
    check_keys(fields, where, {"argv", "dialect"})
    argv = as_texts(fields["argv"], f"{where}.argv")
    if not 1 <= len(argv) <= _MAX_ARGUMENTS:
        raise FieldError(f"{where}.argv has {len(argv)} arguments, not 1 to {_MAX_ARGUMENTS}")
    as_relative_path(argv[0], f"{where}.argv[0]")
    for index, argument in enumerate(argv[1:], start=1):
        # Wherever the toolchain lies, its commands have to be the same.
        if "/" in argument or "\0" in argument:
            raise FieldError(f"{where}.argv[{index}] must not name a path, as {argument!r} does")
    dialect = as_text(fields["dialect"], f"{where}.dialect")
    if dialect not in DIALECTS:
        raise FieldError(f"{where}.dialect is {dialect!r}, none of {', '.join(DIALECTS)}")
    return DeclaredTool(argv, dialect)


def _digest(value: object, where: str) -> str:
    text = as_text(value, where)
    if not is_revision(text):
        raise FieldError(f"{where} must be 64 lower-case hex digits, not {text[:80]!r}")
    return text
