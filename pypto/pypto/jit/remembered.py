"""What earlier processes found out from texts, so that a hit parses none.

Which names a function's text uses is settled by the text and by this package alone; what its
parameters are, by everything that the source digest covers and, again, by this package. Both are
kept below a cache root when something is compiled, each in a file named after what settles it:

    <root>/facts/<digest of name and text>.json      names, attributes, and where the ``def`` is
    <root>/facts/<digest of a source digest>.json    parameters, and axes that the body binds

The file says which version of this package it was written by, and is believed only by that
version. Which version this process is takes longest to find out (every source of the package is
read), so a request assumes what it reads and goes on; before anything is looked up or built with
it, `TextMemory.confirm` compares. A request whose assumption turns out wrong is made once more
without any.

The bytes are a line with the SHA-256 of the rest, and canonical JSON: version, name, facts. The
name is that of the file, so that a record under another's name is not believed.

Schema history: 2 added the name; 1, the first.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pypto.ir.dtypes import BY_NAME
from pypto.ir.nodes import Dim, Direction, DynDim, ScalarType, TensorLayout, TensorType
from pypto.jit.names import NameUse, TextFacts
from pypto.jit.parsed import KnownText, ParsedFunction
from pypto.jit.snapshot import SourceSnapshot
from pypto.language.source import ParamAnnotation, ParamCategory
from pypto_store.digest import Digest
from pypto_toolchains.records import ProbeRecords, sealed, unsealed

SCHEMA = 3

_DIRECTIONS = {direction.value: direction for direction in Direction}
_CATEGORIES = {category.value: category for category in ParamCategory}
# The interpreter's grammar says what a text means; what else it is, the version covers.
_GRAMMAR = f"{SCHEMA} {sys.implementation.cache_tag}"


class StaleFacts(Exception):
    """A request assumed facts that nobody vouches for. Whoever made it makes it again without."""


@dataclass(frozen=True, slots=True)
class KnownSignature:
    """The parameters of a kernel, and the symbols of the axes that its body binds."""

    params: tuple[ParamAnnotation, ...]
    dynamic: Mapping[str, Mapping[int, str]]


class TextMemory:
    """The facts of a process: which version it is, once that is known, and what it has kept."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._distrusted = False
        self._kept: set[tuple[str, str]] = set()

    def below(self, root: str | None) -> RootMemory | None:
        """What is kept below a cache root; None for none, and once something was stale."""
        if root is None or self._distrusted:
            return None
        return RootMemory(root, self._version, self._kept)

    def trusts(self, assumed: frozenset[str]) -> bool:
        """Whether `assumed`, the versions that wrote what a request read, are this process's."""
        return not assumed or assumed == {self._version}

    def confirm(self, assumed: frozenset[str], version: str | None) -> None:
        """Learn this process's version, or that it has none; StaleFacts if others were assumed."""
        if version is not None:
            self._version = version
        if not self.trusts(assumed):
            self._distrusted |= version is not None
            self._kept.clear()  # what was found there is another version's, and to be replaced
            raise StaleFacts

    def keep(self, root: str, snapshot: SourceSnapshot) -> None:
        """Keep below `root`, once, what this process found out about a confirmed snapshot.

        Losing it costs a later process a parse, so no failure is raised.
        """
        digest, version = snapshot.digest, self._version
        if digest is None or version is None or (root, digest.hex) in self._kept:
            return
        self._kept.add((root, digest.hex))
        records = ProbeRecords(f"{root}/facts")
        for _, parsed in snapshot.functions:
            if parsed.assumed is not None:
                continue
            name = _text_name(parsed.code.co_name, parsed.lines)
            records.save(name, _encode(version, name, _told_text(parsed)))
        from pypto.language.parser.dynamic_axes import dynamic_axes
        from pypto.language.parser.signature import read_signature

        told = _told_signature(read_signature(snapshot.entry), dynamic_axes(snapshot.entry))
        name = _signature_name(digest)
        records.save(name, _encode(version, name, told))


class RootMemory:
    """What is kept below one root. Everything read is an assumption until it is confirmed."""

    __slots__ = ("_kept", "_records", "_root", "_version")

    def __init__(self, root: str, version: str | None, kept: set[tuple[str, str]]) -> None:
        self._root = root
        self._records = ProbeRecords(f"{root}/facts")
        self._version = version
        self._kept = kept

    def text(self, name: str, lines: tuple[str, ...]) -> KnownText | None:
        """What is known of a function's text."""
        found = self._read(_text_name(name, lines))
        if found is None:
            return None
        version, told = found
        try:
            names = tuple(
                NameUse(use, tuple(tuple(path) for path in paths)) for use, paths in told["names"]
            )
            facts = TextFacts(names, tuple(told["attributes"]))
            return KnownText(int(told["line"]), facts, version)
        except (LookupError, TypeError, ValueError):
            return None

    def signature(self, source: Digest, assumed: frozenset[str]) -> KnownSignature | None:
        """The signature of a kernel by its source digest, if `assumed` wrote it too."""
        found = self._read(_signature_name(source))
        if found is None or assumed != {found[0]}:
            return None
        try:
            params = tuple(_param(item) for item in found[1]["params"])
            dynamic = {
                name: {int(axis): symbol for axis, symbol in axes}
                for name, axes in found[1]["dynamic"]
            }
        except (LookupError, TypeError, ValueError):
            return None
        self._kept.add((self._root, source.hex))
        return KnownSignature(params, dynamic)

    def _read(self, name: str) -> tuple[str, Any] | None:
        body = unsealed(self._records.load(name))
        if body is None:
            return None
        try:
            version, told_of, told = json.loads(body)
        except (ValueError, TypeError, RecursionError):
            return None
        if told_of != name:
            return None
        # Another version's facts are of no use once this one's is known.
        return None if self._version not in (None, version) else (version, told)


def _text_name(name: str, lines: Iterable[str]) -> str:
    text = f"text {_GRAMMAR} {name}\n" + "\n".join(lines)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _signature_name(source: Digest) -> str:
    return hashlib.sha256(f"signature {_GRAMMAR} {source.hex}".encode()).hexdigest()


def _encode(version: str, name: str, told: Mapping[str, Any]) -> bytes:
    document = [version, name, told]
    return sealed(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())


def _told_text(parsed: ParsedFunction) -> dict[str, Any]:
    return {
        "attributes": parsed.facts.attributes,
        "line": parsed.def_line,
        "names": [(use.name, use.paths) for use in parsed.facts.names],
    }


def _told_signature(
    params: tuple[ParamAnnotation, ...], dynamic: Mapping[str, Mapping[int, str]]
) -> dict[str, Any]:
    return {
        "dynamic": [(name, list(axes.items())) for name, axes in dynamic.items()],
        "params": [
            (param.name, param.direction.value, param.category.value, _told_type(param.type))
            for param in params
        ],
    }


def _told_type(type_: TensorType | ScalarType | None) -> Any:
    match type_:
        case TensorType(shape, dtype, layout):
            dims = [[d.symbol, d.limit] if isinstance(d, DynDim) else d for d in shape]
            return [dtype.name, dims, layout.value]
        case ScalarType(dtype):
            return [dtype.name]
        case None:
            return None


def _param(told: Any) -> ParamAnnotation:
    # Without its default, which binding takes from the function itself.
    name, direction, category, type_ = told
    return ParamAnnotation(name, _DIRECTIONS[direction], _CATEGORIES[category], _type(type_))


def _type(told: Any) -> TensorType | ScalarType | None:
    if told is None:
        return None
    dtype = BY_NAME[told[0]]
    if len(told) == 1:
        return ScalarType(dtype)
    shape: list[Dim] = [DynDim(*dim) if isinstance(dim, list) else dim for dim in told[1]]
    return TensorType(tuple(shape), dtype, TensorLayout(told[2]))
