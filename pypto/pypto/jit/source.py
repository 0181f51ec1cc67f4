"""One snapshot of a kernel: its text, its helpers, and every value of the outside they use.

A snapshot has a digest, which goes into the artifact key, and guards, which say cheaply whether
taking it again would give another one. Between two calls only the guards are asked.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    ModuleType,
)

import pypto.language as pl
from pypto.jit.captures import Captures, Guards, at_one_moment
from pypto.jit.declaration import Declaration, Declared
from pypto.jit.names import NameUse
from pypto.jit.parsed import KnownTexts, ParsedFunction, SourceChanged, parse
from pypto.jit.snapshot import SourceSnapshot, assumed_by
from pypto.jit.values import ABSENT, Unidentifiable
from pypto.language.source import FunctionSource
from pypto_store.records import RecordBuilder

_PLAIN = frozenset(
    {bool, int, float, complex, str, bytes, type(None), tuple, list, dict, set, frozenset}
)
# Packages whose content is part of the environment's identity: a name in them is enough.
_OWN_PACKAGES = frozenset({"pypto", "pypto_store", "pypto_toolchains"})


class SourceCapture:
    """Takes snapshots of one declared function. What cannot change is worked out once."""

    __slots__ = ("_declaration", "_parsed")

    def __init__(self, declaration: Declaration) -> None:
        self._declaration = declaration
        self._parsed: dict[Declaration, ParsedFunction] = {}

    @property
    def assumed(self) -> frozenset[str]:
        """The versions of this package that parsed what was taken so far and not parsed here."""
        return assumed_by(self._parsed.values())

    def take(self, known: KnownTexts | None = None) -> SourceSnapshot:
        """The function, its helpers and what they use, as they are at one moment.

        Texts that are `known` are not parsed; the snapshot says what it assumed.

        Raises SourceMissing or SourceChanged when a text is not there or is another function's.
        """
        taken, holds = at_one_moment(lambda: self._take_once(known))
        if holds:
            return taken
        name = self._declaration.function.__name__
        told = f"source of the kernel has no identity: the values that {name!r} uses keep changing"
        return dataclasses.replace(taken, digest=None, bypass=told)

    def _take_once(self, known: KnownTexts | None) -> tuple[SourceSnapshot, Guards]:
        """A snapshot whose values may be of different moments, unless its guards hold."""
        mentioned: tuple[str, ...] = ()
        while True:
            walk = _Snapshot(self._parsed, mentioned, known)
            taken = walk.take(self._declaration)
            # An object may be passed on and used by any of the functions, which are known now.
            every = tuple(sorted({*mentioned, *taken.attributes()}))
            if not walk.met_members or every == mentioned:
                return taken, taken.guards
            mentioned = every


class _Snapshot:
    """The walk that takes one snapshot; `mentioned` are the attributes of objects to capture."""

    def __init__(
        self,
        parsed: dict[Declaration, ParsedFunction],
        mentioned: tuple[str, ...],
        known: KnownTexts | None,
    ) -> None:
        self._known = known
        self._parsed = parsed
        self._sources: dict[Declaration, FunctionSource] = {}
        self._order: list[Declaration] = []
        self._fields: list[tuple[str | bytes | bool, ...]] = []
        self._bypass: str | None = None
        self._captures = Captures(represent=self._represent, own=_own_name, mentioned=mentioned)

    @property
    def met_members(self) -> bool:
        """Whether there are objects whose attributes depend on what is mentioned."""
        return self._captures.met_members

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
            guards=self._captures.guards(_own_name),
            functions=tuple((item, self._parsed[item]) for item in self._order),
            fields=tuple(self._fields),
            defaults=MappingProxyType(self._defaults(declaration.function)),
        )

    def _visit(self, declaration: Declaration) -> FunctionSource:
        """The source of a function; helpers may be recursive, so it is registered first."""
        known = self._sources.get(declaration)
        if known is not None:
            return known
        captures = self._captures
        function = declaration.function
        code = captures.slot(function, "__code__")
        parsed = self._parsed.get(declaration)
        if parsed is None:
            parsed = self._parsed[declaration] = parse(declaration, self._known)
        if parsed.code is not code:
            raise SourceChanged(
                f"the code of kernel {function.__name__!r} was replaced after it was decorated; "
                "decorate the new function"
            )
        namespace: dict[str, object] = {}
        source = self._sources[declaration] = FunctionSource(
            name=function.__name__,
            unit=declaration.unit,
            kind=declaration.kind,
            tree_of=lambda: parsed.tree,
            file=function.__code__.co_filename,
            first_line=parsed.first_line,
            namespace=MappingProxyType(namespace),
            lines=parsed.lines,
            auto_scope=declaration.auto_scope,
            external=declaration.external,
            attributes=captures.attributes,
        )
        self._order.append(declaration)
        position = len(self._fields)
        self._fields.append(())
        defaults = (
            captures.slot(function, "__defaults__"),
            captures.slot(function, "__kwdefaults__"),
        )
        fields: list[str | bytes | bool] = [
            declaration.unit,
            declaration.kind.value,
            self._leaf("level", declaration.level)[1],
            declaration.auto_scope,
            parsed.text,
            self._leaf("defaults", defaults)[1],
        ]
        scope = _Scope(declaration, captures)
        for use in parsed.facts.names:
            where, value = scope.find(use.name)
            fields += (use.name, where)
            if value is not ABSENT:
                namespace[use.name], encoding = self._use(use, value)
                fields.append(encoding)
        self._fields[position] = tuple(fields)
        return source

    def _defaults(self, function: FunctionType) -> dict[str, object]:
        slot = self._captures.slot
        code, given, named = (
            slot(function, name) for name in ("__code__", "__defaults__", "__kwdefaults__")
        )
        assert isinstance(code, CodeType)
        assert isinstance(given, tuple | None)
        assert isinstance(named, dict | None)
        given = given or ()
        names = code.co_varnames[: code.co_argcount]
        return {
            **dict(zip(names[len(names) - len(given) :], given, strict=True)),
            **(named or {}),
        }

    def _represent(self, declared: Declared) -> FunctionSource:
        return self._visit(declared.declaration)

    def _use(self, use: NameUse, value: object) -> tuple[object, bytes]:
        """What the parser sees of a used name, and its encoding.

        Descends only where the name itself says too little.
        """
        own = _own_name(value)
        if own is not None and value is pl and all(map(self._is_as_imported, use.paths)):
            paths = (b"\0" + ".".join(path).encode() for path in use.paths)
            return value, b"".join((own, *paths))
        shown = value
        parts: list[bytes] = []
        for path in use.paths:
            if path and _is_namespace(value):
                encoding = self._descend(use.name, value, path)
            elif own is not None:
                encoding = own + b"\0" + ".".join(path).encode()
            else:
                shown, encoding = self._leaf(use.name, value)
            parts += (".".join(path).encode(), b"\0", encoding)
        return shown, b"".join(parts)

    def _is_as_imported(self, path: tuple[str, ...]) -> bool:
        """Whether an attribute of the language, guarded here, is what its own text says."""
        if not path:
            return True
        found = self._captures.item(vars(pl), path[0])
        if found is ABSENT or found is not pl.AS_IMPORTED.get(path[0]):
            return False
        self._captures.show(pl, path[0], found)
        # Nobody can set a member of an enumeration.
        return len(path) == 1 or (
            len(path) == 2 and isinstance(found, enum.EnumType) and path[1] in found.__members__
        )

    def _descend(self, name: str, value: object, path: tuple[str, ...]) -> bytes:
        """The encoding of the first value on `path` that is one, guarding every step."""
        told = name
        for position, attribute in enumerate(path, start=1):
            told = f"{told}.{attribute}"
            try:
                found = self._captures.attribute(value, attribute)
            except Exception as error:  # noqa: BLE001 - the user's property may raise anything
                return self._give_up(f"{told} cannot be read: {error!r}")
            owner, value = value, found
            if found is ABSENT:
                self._captures.show(owner, attribute, ABSENT)
                return b"absent"
            own = _own_name(value)
            if own is not None and (position == len(path) or not _is_namespace(value)):
                self._captures.show(owner, attribute, value)
                return own + b"\0" + ".".join(path).encode()
            if position == len(path) or not _is_namespace(value):
                shown, encoding = self._leaf(told, value)
                self._captures.show(owner, attribute, shown)
                return encoding
            self._captures.show_unless_shown(owner, attribute, value)
        raise AssertionError("a path has at least one attribute")

    def _leaf(self, name: str, value: object) -> tuple[object, bytes]:
        """A value as it is now, for good, and its encoding."""
        try:
            frozen = self._captures.freeze(value)
            return frozen, self._captures.encode(frozen, self._special)
        except (Unidentifiable, RecursionError) as error:
            shown = self._represent(value) if isinstance(value, Declared) else value
            return shown, self._give_up(f"{name!r}: {error}")

    def _give_up(self, reason: str) -> bytes:
        if self._bypass is None:
            self._bypass = f"source of the kernel has no identity: {reason}"
        return b""

    def _special(self, value: object) -> bytes | None:
        if isinstance(value, FunctionSource):
            sources = [self._sources[declaration] for declaration in self._order]
            if value not in sources:
                raise Unidentifiable(
                    f"{value.name!r} is a function of programs; decorate it with pl.jit.inline or "
                    "pl.jit.incore"
                )
            return b"function\0%d" % sources.index(value)
        return _own_name(value)


class _Scope:
    """Where the names of one function are looked up."""

    __slots__ = ("_builtins", "_captures", "_cells", "_enclosing", "_globals")

    def __init__(self, declaration: Declaration, captures: Captures) -> None:
        function = declaration.function
        self._captures = captures
        self._cells: dict[str, CellType] = dict(
            zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        )
        self._enclosing = declaration.enclosing
        self._globals = function.__globals__
        found = self._globals.get("__builtins__")
        self._builtins: dict[str, object] = found if isinstance(found, dict) else vars(builtins)

    def find(self, name: str) -> tuple[str, object]:
        """Where a name is found, and its value, guarded; ABSENT if it has none."""
        cell = self._cells.get(name)
        if cell is not None:
            try:
                return "closure", self._captures.slot(cell, "cell_contents")
            except ValueError:
                self._captures.empty(cell)
        if name in self._enclosing:
            return "enclosing", self._enclosing[name]
        value = self._captures.item(self._globals, name)
        if value is not ABSENT:
            return "global", value
        value = self._captures.item(self._builtins, name)
        return ("builtin" if value is not ABSENT else "absent"), value


def _is_namespace(value: object) -> bool:
    """Whether a value matters by the attributes used of it and not by itself.

    Modules and classes of ours do too: anybody may set an attribute of them. Nobody can set one
    of the interpreter's classes.
    """
    if isinstance(value, Declared | FunctionType | BuiltinFunctionType):
        return False
    if isinstance(value, type) and value.__module__ == "builtins" and _own_name(value) is not None:
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
            # A kernel can call only those of the interpreter, whose identity covers them. Of any
            # other extension the name tells no more than that it was mentioned.
            return b"name\0" + f"{module}:{value.__qualname__}".encode()
        if _is_own(module) or (
            module == "builtins" and getattr(builtins, value.__name__, None) is value
        ):
            return b"name\0" + f"{module}:{value.__qualname__}".encode()
    return None


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in _OWN_PACKAGES
