"""One snapshot of a kernel: its text, its helpers, and every value of the outside they use.

A snapshot has a digest, which goes into the artifact key, and guards, which say cheaply whether
taking it again would give another one. Between two calls only the guards are asked.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, MappingProxyType, ModuleType

from pypto.ir.external import ExternalKernel
from pypto.jit.declaration import Declaration, Declared
from pypto.jit.module_text import ModuleText, read_again
from pypto.jit.names import NameUse
from pypto.jit.parsed import ParsedFunction, SourceChanged, compiles_to, parse
from pypto.jit.values import Unidentifiable, encode, has_members, is_immutable, with_members
from pypto.language.source import FunctionSource
from pypto_store.digest import Digest
from pypto_store.records import RecordBuilder

_ABSENT = object()
_PLAIN = frozenset(
    {bool, int, float, complex, str, bytes, type(None), tuple, list, dict, set, frozenset}
)
# Packages whose content is part of the environment's identity: a name in them is enough.
_OWN_PACKAGES = frozenset({"pypto", "pypto_store", "pypto_toolchains"})


@dataclass(frozen=True, slots=True, eq=False)
class Guards:
    """What must still be so for a snapshot to be current.

    `items`: (mapping, key, value), the value being `_ABSENT` where the key must be missing.
    `attributes`: (object, attribute, value) likewise. `mutables`: (object, its encoding, the
    attributes that take part in it).
    """

    items: tuple[tuple[Mapping[str, object], str, object], ...]
    attributes: tuple[tuple[object, str, object], ...]
    mutables: tuple[tuple[object, bytes, tuple[str, ...]], ...]

    def hold(self) -> bool:
        """Whether everything captured is what it was. No I/O."""
        for mapping, key, value in self.items:
            found = mapping.get(key, _ABSENT)
            if found is not value and not _equal(found, value):
                return False
        try:
            for owner, name, value in self.attributes:
                found = getattr(owner, name, _ABSENT)
                if found is not value and not _equal(found, value):
                    return False
            for value, encoding, names in self.mutables:
                if encode(value, partial(with_members, names, _refuse)) != encoding:
                    return False
        except Exception:  # noqa: BLE001 - the user's property may raise anything
            # That, an emptied cell, or a container that now holds something without an identity.
            return False
        return True


@dataclass(frozen=True, slots=True, eq=False)
class SourceSnapshot:
    """A kernel and all it depends on, at one moment.

    `digest` is None where something has no identity across processes; `bypass` then says what.
    `functions` are the entry and its helpers, each with what it was parsed from; `fields` is what
    the digest covers of each, in the same order.
    """

    entry: FunctionSource
    digest: Digest | None
    bypass: str | None
    guards: Guards
    functions: tuple[tuple[Declaration, ParsedFunction], ...]
    fields: tuple[tuple[str | bytes | bool, ...], ...]

    def source_map(self) -> Mapping[str, tuple[str, int]]:
        """From unit to the file that holds the function and the line of its ``def``."""
        return MappingProxyType(
            {
                declaration.unit: (declaration.function.__code__.co_filename, parsed.first_line)
                for declaration, parsed in self.functions
            }
        )

    @property
    def externs(self) -> tuple[ExternalKernel, ...]:
        """The extern kernels among the functions, whose files `digest` does not cover."""
        return tuple(d.external for d, _ in self.functions if d.external is not None)

    def mismatch(self) -> str | None:
        """Why the texts are not what was imported, or None. Compiles them: for misses only."""
        for declaration, _ in self.functions:
            code = declaration.function.__code__
            if declaration.text is None or not compiles_to(declaration.text, code):
                return f"source changed since import: {code.co_filename}, {code.co_name}"
        return None

    def attributes(self) -> tuple[str, ...]:
        """Every attribute that one of the functions mentions."""
        return tuple(sorted({name for _, parsed in self.functions for name in parsed.attributes}))

    def texts(self) -> tuple[ModuleText, ...]:
        """The distinct files the functions were cut from."""
        found = {
            declaration.text.filename: declaration.text
            for declaration, _ in self.functions
            if declaration.text is not None
        }
        return tuple(found.values())


def texts_now(texts: tuple[ModuleText, ...]) -> tuple[ModuleText | None, ...]:
    """The files of `texts` as they are on disk now."""
    return tuple(read_again(text) for text in texts)


class SourceCapture:
    """Takes snapshots of one declared function. What cannot change is worked out once."""

    __slots__ = ("_declaration", "_parsed")

    def __init__(self, declaration: Declaration) -> None:
        self._declaration = declaration
        self._parsed: dict[Declaration, ParsedFunction] = {}

    def take(self) -> SourceSnapshot:
        """The function, its helpers and what they use, as they are now.

        Raises SourceMissing or SourceChanged when a text is not there or is another function's.
        """
        walk = _Snapshot(self._parsed, ())
        taken = walk.take(self._declaration)
        if walk.met_members:
            # An object may be passed on and used by any of the functions, which are known now.
            taken = _Snapshot(self._parsed, taken.attributes()).take(self._declaration)
        return taken


class _Snapshot:
    """The walk that takes one snapshot; `mentioned` are the attributes of objects to encode."""

    def __init__(
        self, parsed: dict[Declaration, ParsedFunction], mentioned: tuple[str, ...]
    ) -> None:
        self.met_members = False
        self._parsed = parsed
        self._mentioned = mentioned
        self._sources: dict[Declaration, FunctionSource] = {}
        self._order: list[Declaration] = []
        self._fields: list[tuple[str | bytes | bool, ...]] = []
        self._items: list[tuple[Mapping[str, object], str, object]] = []
        self._attributes: list[tuple[object, str, object]] = []
        self._mutables: list[tuple[object, bytes, tuple[str, ...]]] = []
        self._bypass: str | None = None

    def take(self, declaration: Declaration) -> SourceSnapshot:
        entry = self._visit(declaration)
        digest = None
        if self._bypass is None:
            record = RecordBuilder("pypto.source/v1").sequence("functions", self._fields)
            digest = record.finish()
        return SourceSnapshot(
            entry=entry,
            digest=digest,
            bypass=self._bypass,
            guards=Guards(tuple(self._items), tuple(self._attributes), tuple(self._mutables)),
            functions=tuple((item, self._parsed[item]) for item in self._order),
            fields=tuple(self._fields),
        )

    def _visit(self, declaration: Declaration) -> FunctionSource:
        """The source of a function; helpers may be recursive, so it is registered first."""
        known = self._sources.get(declaration)
        if known is not None:
            return known
        parsed = self._parsed.get(declaration)
        if parsed is None:
            parsed = self._parsed[declaration] = parse(declaration)
        namespace: dict[str, object] = {}
        function = declaration.function
        source = self._sources[declaration] = FunctionSource(
            name=function.__name__,
            unit=declaration.unit,
            kind=declaration.kind,
            tree=parsed.tree,
            file=function.__code__.co_filename,
            first_line=parsed.first_line,
            namespace=MappingProxyType(namespace),
            lines=parsed.lines,
            auto_scope=declaration.auto_scope,
            external=declaration.external,
        )
        self._order.append(declaration)
        position = len(self._fields)
        self._fields.append(())
        fields: list[str | bytes | bool] = [
            declaration.unit,
            declaration.kind.value,
            self._encode("level", declaration.level, ()),
            declaration.auto_scope,
            parsed.text,
            self._encode(
                "defaults", (function.__defaults__, function.__kwdefaults__), self._mentioned
            ),
        ]
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self._attributes.append((function, name, getattr(function, name)))
        scope = _Scope(declaration)
        for use in parsed.names:
            where, value = self._resolve(scope, use.name)
            fields += (use.name, where)
            if value is not _ABSENT:
                namespace[use.name] = self._for_parser(value)
                fields.append(self._use(use, value))
        self._fields[position] = tuple(fields)
        return source

    def _resolve(self, scope: _Scope, name: str) -> tuple[str, object]:
        """The value of a name, where it was found, and a guard for it."""
        cell = scope.cells.get(name)
        if cell is not None:
            try:
                value = cell.cell_contents
            except ValueError:
                value = _ABSENT
            else:
                self._attributes.append((cell, "cell_contents", value))
            if value is not _ABSENT:
                return "closure", value
        if name in scope.enclosing:
            return "enclosing", scope.enclosing[name]
        value = scope.globals.get(name, _ABSENT)
        self._items.append((scope.globals, name, value))
        if value is not _ABSENT:
            return "global", value
        value = scope.builtins.get(name, _ABSENT)
        self._items.append((scope.builtins, name, value))
        return ("builtin" if value is not _ABSENT else "absent"), value

    def _for_parser(self, value: object) -> object:
        return self._visit(value.declaration) if isinstance(value, Declared) else value

    def _use(self, use: NameUse, value: object) -> bytes:
        """The encoding of a used name; descends only where the name itself says too little."""
        own = _own_name(value)
        if own is not None:
            return b"".join((own, *(b"\0" + ".".join(path).encode() for path in use.paths)))
        parts: list[bytes] = []
        for path in use.paths:
            parts += (".".join(path).encode(), b"\0", self._descend(use.name, value, path))
        return b"".join(parts)

    def _descend(self, name: str, value: object, path: tuple[str, ...]) -> bytes:
        """The encoding of the first value on `path` that is one, guarding every step."""
        shown = name
        for attribute in path:
            if not _is_namespace(value) or _own_name(value) is not None:
                break
            try:
                found = getattr(value, attribute, _ABSENT)
            except Exception as error:  # noqa: BLE001 - the user's property may raise anything
                return self._give_up(f"{shown}.{attribute} cannot be read: {error!r}")
            shown = f"{shown}.{attribute}"
            self._attributes.append((value, attribute, found))
            if found is _ABSENT:
                return b"absent"
            value = found
        own = _own_name(value)
        if own is not None:
            return own + b"\0" + ".".join(path).encode()
        return self._leaf(shown, value)

    def _leaf(self, name: str, value: object) -> bytes:
        encoding = self._encode(name, value, self._mentioned)
        if self._special(value) is None and not (
            is_immutable(value) and encoding == self._encode(name, value, ())
        ):
            self._mutables.append((value, encoding, self._mentioned))
        return encoding

    def _encode(self, name: str, value: object, mentioned: tuple[str, ...]) -> bytes:
        try:
            return encode(value, partial(with_members, mentioned, self._special))
        except (Unidentifiable, RecursionError) as error:
            return self._give_up(f"{name!r}: {error}")

    def _give_up(self, reason: str) -> bytes:
        if self._bypass is None:
            self._bypass = f"source of the kernel has no identity: {reason}"
        return b""

    def _special(self, value: object) -> bytes | None:
        if isinstance(value, Declared):
            self._visit(value.declaration)
            return b"function\0%d" % self._order.index(value.declaration)
        own = _own_name(value)
        self.met_members |= has_members(value) and _own_name(type(value)) is None
        return own


class _Scope:
    """Where the names of one function are looked up."""

    __slots__ = ("builtins", "cells", "enclosing", "globals")

    def __init__(self, declaration: Declaration) -> None:
        function = declaration.function
        self.cells: dict[str, CellType] = dict(
            zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        )
        self.enclosing = declaration.enclosing
        self.globals: Mapping[str, object] = function.__globals__
        found = function.__globals__.get("__builtins__", builtins)
        self.builtins: Mapping[str, object] = (
            vars(found) if isinstance(found, ModuleType) else found
        )


def _equal(found: object, value: object) -> bool:
    """Whether another object is the same value to a kernel: properties make a new one each time."""
    if type(found) is not type(value) or not (is_immutable(found) and is_immutable(value)):
        return False
    return encode(found, _refuse) == encode(value, _refuse)


def _is_namespace(value: object) -> bool:
    """Whether a value matters by the attributes used of it and not by itself."""
    if isinstance(value, Declared | FunctionType | BuiltinFunctionType):
        return False
    return type(value) not in _PLAIN


def _own_name(value: object) -> bytes | None:
    """What identifies a module, class or function of ours, of the language or built in."""
    if isinstance(value, ModuleType):
        name = value.__name__
        return b"module\0" + name.encode() if _is_own(name) else None
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        module = value.__module__ or ""
        if isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, ModuleType):
            # A function of the interpreter's own modules: its identity covers it.
            return b"name\0" + f"{module}:{value.__qualname__}".encode()
        if _is_own(module) or (
            module == "builtins" and getattr(builtins, value.__name__, None) is value
        ):
            return b"name\0" + f"{module}:{value.__qualname__}".encode()
    return None


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in _OWN_PACKAGES


def _refuse(value: object) -> bytes | None:
    """A container that is guarded holds plain values and names of ours."""
    return _own_name(value)


__all__ = ["Guards", "SourceCapture", "SourceChanged", "SourceSnapshot", "texts_now"]
