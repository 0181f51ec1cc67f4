"""The SDK: the assembler, the headers and what the compiler needs to know about each target.

``sdk.json`` is the SDK's description of itself. Its grammar, schema 2::

    schema      2
    revision    64 hex digits: the digest of every other file of the SDK; a source checkout has none
    tools       tool name -> executable name or path of a GCC driver
    dialects    dialect name -> dialect; "gcc" is what flags are written in
    targets     platform token -> target
    cpu_levels  level name -> flags
    limits      architecture -> region name -> bytes

    dialect        instead: flag -> flags that such a driver takes for it, none if it needs none,
                   adds: flags that every command gets,
                   link: flags of a link that is a command of its own, or null where one command
                   compiles and links
    target         arch, host (runs in this process), incore (or null), orchestration,
                   optionally needs: what a target that is not built here lacks
    incore         tool, flags, core_flags, forced_header, admission, include_dirs
    orchestration  runtime name -> tool, flags, include_dirs, helper_sources

Paths are relative to the SDK root and keep their spelling on command lines. A target is checked
when it is first looked at, because a request needs one of them.

Schema history: 2 has dialects; 1 knew GCC alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pypto.backend import PLATFORMS, RuntimeKind
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
from pypto_toolchains.sdk import METADATA_NAME, is_revision

SCHEMA = 2
CORE_TYPES = ("aic", "aiv")

NATIVE_DIALECT = "gcc"
"""The dialect of the SDK's own tools, in which its flags are written."""

_MAX_METADATA_BYTES = 1 << 20


class SdkError(RuntimeError):
    """The SDK is missing or its metadata cannot be used; says which file and what is wrong."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a compiler driver differs from GCC's, in whose flags recipes are written.

    ``link`` is ``None`` for a driver that compiles and links in one command.
    """

    name: str
    instead: Mapping[str, tuple[str, ...]]
    adds: tuple[str, ...]
    link: tuple[str, ...] | None

    def spelled(self, flags: Iterable[str]) -> tuple[str, ...]:
        """``flags`` as such a driver takes them, and those that it gets besides."""
        instead = self.instead
        said = (word for flag in flags for word in instead.get(flag, (flag,)))
        return (*said, *self.adds)


@dataclass(frozen=True, slots=True)
class IncoreRecipe:
    """How a kernel of one target is compiled.

    ``core_flags`` has one entry a core type. ``forced_header`` is included before the source and
    refuses to compile unless ``admission``, a macro definition, is on the command line.
    """

    tool: str
    flags: tuple[str, ...]
    core_flags: Mapping[str, tuple[str, ...]]
    forced_header: str
    admission: str
    include_dirs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrchestrationRecipe:
    """How an orchestration library is compiled, together with the SDK's ``helper_sources``."""

    tool: str
    flags: tuple[str, ...]
    include_dirs: tuple[str, ...]
    helper_sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SdkTarget:
    """One platform. ``incore`` is ``None`` where kernels need what this SDK does not have."""

    platform: str
    arch: str
    host: bool
    incore: IncoreRecipe | None
    orchestration: Mapping[RuntimeKind, OrchestrationRecipe]
    needs: str


@dataclass(frozen=True, slots=True)
class Sdk:
    """A parsed SDK.

    ``root`` is absolute. ``revision`` identifies its contents if it was built, all but the
    metadata, whose SHA-256 in hex is ``metadata``.
    """

    root: Path
    revision: str | None
    metadata: str
    tools: Mapping[str, str]
    dialects: Mapping[str, Dialect]
    targets: Mapping[str, SdkTarget]
    cpu_levels: Mapping[str, tuple[str, ...]]
    limits: Mapping[str, Mapping[str, int]]

    @classmethod
    def load(cls, root: Path) -> Sdk:
        """The SDK in the directory ``root``; SdkError if it is absent or malformed."""
        path = root / METADATA_NAME
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_METADATA_BYTES + 1)
        except OSError as error:
            raise SdkError(
                f"{path}: cannot be read ({error.strerror}); the native core is not installed. "
                "Build it with bazelw, or reinstall pypto"
            ) from error
        try:
            document = parse_object(data, _MAX_METADATA_BYTES)
            return _sdk(root.absolute(), path, document, hashlib.sha256(data).hexdigest())
        except FieldError as error:
            raise SdkError(f"{path}: {error}; reinstall pypto") from error

    def target(self, platform: str) -> SdkTarget:
        """The target of a platform token; SdkError if this SDK has none or it is malformed."""
        target = self.targets.get(platform)
        if target is None:
            raise SdkError(
                f"{self.root / METADATA_NAME}: the SDK has no target {platform!r}, only "
                f"{', '.join(sorted(self.targets))}"
            )
        return target

    @property
    def ptoas(self) -> Path:
        """The bundled assembler."""
        return self.root / "bin" / "ptoas"


class _Targets(Mapping[str, SdkTarget]):
    """Targets by platform token, parsed on first use. SdkError where one is malformed."""

    def __init__(self, path: Path, raw: Mapping[str, Any], tools: Mapping[str, str]) -> None:
        self._path = path
        self._raw = raw
        self._tools = tools
        self._parsed: dict[str, SdkTarget] = {}

    def __getitem__(self, name: str) -> SdkTarget:
        target = self._parsed.get(name)
        if target is None:
            value = self._raw[name]
            try:
                target = _target(name, value, self._tools)
            except FieldError as error:
                raise SdkError(f"{self._path}: {error}; reinstall pypto") from error
            self._parsed[name] = target
        return target

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


def default_sdk_root() -> Path:
    """Where the SDK of the imported package lives; the directory may be absent."""
    return Path(__file__).absolute().parent.parent / "_sdk"


_Value = TypeVar("_Value")


def _table(value: object, where: str, item: Callable[[str, Any], _Value]) -> Mapping[str, _Value]:
    entries = as_object(value, where)
    return MappingProxyType({key: item(f"{where}.{key}", entries[key]) for key in entries})


def _sdk(root: Path, path: Path, document: dict[str, Any], metadata: str) -> Sdk:
    schema = document.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise FieldError(f"schema is {schema!r}, but this version reads schema {SCHEMA}")
    check_keys(
        document,
        "the document",
        {"schema", "tools", "dialects", "targets", "cpu_levels", "limits"},
        {"revision"},
    )
    revision = as_text(document["revision"], "revision") if "revision" in document else None
    if revision is not None and not is_revision(revision):
        raise FieldError("revision must be 64 lower-case hex digits")
    tools = _table(document["tools"], "tools", lambda where, value: as_text(value, where))
    dialects = _table(document["dialects"], "dialects", _dialect)
    if NATIVE_DIALECT not in dialects:
        raise FieldError(f"dialects lacks {NATIVE_DIALECT!r}")
    return Sdk(
        root=root,
        revision=revision,
        metadata=metadata,
        tools=tools,
        dialects=dialects,
        targets=_Targets(path, as_object(document["targets"], "targets"), tools),
        cpu_levels=_table(
            document["cpu_levels"], "cpu_levels", lambda where, value: as_texts(value, where)
        ),
        limits=_table(
            document["limits"],
            "limits",
            lambda where, value: _table(value, where, lambda at, size: as_int(size, at)),
        ),
    )


def _target(name: str, value: object, tools: Mapping[str, str]) -> SdkTarget:
    where = f"targets.{name}"
    if name not in PLATFORMS:
        raise FieldError(f"{where} is no platform")
    fields = as_object(value, where)
    check_keys(fields, where, {"arch", "host", "incore", "orchestration"}, {"needs"})
    arch = as_text(fields["arch"], f"{where}.arch")
    if arch != PLATFORMS[name].backend_type.arch:
        raise FieldError(f"{where}.arch is {arch!r}, which is another architecture")
    recipes = as_object(fields["orchestration"], f"{where}.orchestration")
    orchestration = {}
    for runtime, recipe in recipes.items():
        try:
            kind = RuntimeKind(runtime)
        except ValueError as error:
            raise FieldError(f"{where}.orchestration has unknown runtime {runtime!r}") from error
        orchestration[kind] = _orchestration(f"{where}.orchestration.{runtime}", recipe, tools)
    incore = fields["incore"]
    return SdkTarget(
        platform=name,
        arch=arch,
        host=as_flag(fields["host"], f"{where}.host"),
        incore=None if incore is None else _incore(f"{where}.incore", incore, tools),
        orchestration=MappingProxyType(orchestration),
        needs=as_text(fields["needs"], f"{where}.needs") if "needs" in fields else "",
    )


def _dialect(where: str, value: object) -> Dialect:
    fields = as_object(value, where)
    check_keys(fields, where, {"instead", "adds", "link"})
    link = fields["link"]
    return Dialect(
        name=where.rpartition(".")[2],
        instead=_table(
            fields["instead"], f"{where}.instead", lambda at, words: as_texts(words, at)
        ),
        adds=as_texts(fields["adds"], f"{where}.adds"),
        link=None if link is None else as_texts(link, f"{where}.link"),
    )


def _tool(value: object, where: str, tools: Mapping[str, str]) -> str:
    name = as_text(value, where)
    if name not in tools:
        raise FieldError(f"{where} is {name!r}, which tools does not list")
    return name


def _incore(where: str, value: object, tools: Mapping[str, str]) -> IncoreRecipe:
    fields = as_object(value, where)
    check_keys(
        fields,
        where,
        {"tool", "flags", "core_flags", "forced_header", "admission", "include_dirs"},
    )
    core_flags = as_object(fields["core_flags"], f"{where}.core_flags")
    check_keys(core_flags, f"{where}.core_flags", set(CORE_TYPES))
    admission = as_text(fields["admission"], f"{where}.admission")
    if not admission.startswith("-D"):
        raise FieldError(f"{where}.admission must define a macro, not {admission!r}")
    return IncoreRecipe(
        tool=_tool(fields["tool"], f"{where}.tool", tools),
        flags=as_texts(fields["flags"], f"{where}.flags"),
        core_flags=MappingProxyType(
            {core: as_texts(core_flags[core], f"{where}.core_flags.{core}") for core in CORE_TYPES}
        ),
        forced_header=as_relative_path(fields["forced_header"], f"{where}.forced_header"),
        admission=admission,
        include_dirs=_paths(fields["include_dirs"], f"{where}.include_dirs"),
    )


def _orchestration(where: str, value: object, tools: Mapping[str, str]) -> OrchestrationRecipe:
    fields = as_object(value, where)
    check_keys(fields, where, {"tool", "flags", "include_dirs", "helper_sources"})
    return OrchestrationRecipe(
        tool=_tool(fields["tool"], f"{where}.tool", tools),
        flags=as_texts(fields["flags"], f"{where}.flags"),
        include_dirs=_paths(fields["include_dirs"], f"{where}.include_dirs"),
        helper_sources=_paths(fields["helper_sources"], f"{where}.helper_sources"),
    )


def _paths(value: object, where: str) -> tuple[str, ...]:
    return tuple(
        as_relative_path(item, f"{where}[{index}]")
        for index, item in enumerate(as_list(value, where))
    )
