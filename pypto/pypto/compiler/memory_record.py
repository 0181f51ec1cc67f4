"""What a compilation planned for on-chip memory, as a file beside the dumped passes.

::

    passes_dump/memory_map.json

Grammar, schema 1. Positions count the statements of a function in program order, from 1; loops and
branches have further positions for their ends. ``first`` is where a tile is written and ``last``
where it is read last; a result may take the place of an operand that dies in the same statement.
Sizes and offsets are bytes.

::

    {"schema": 1, "program": NAME, "arch": NAME, "capacity": {SPACE: BYTES},
     "sources": {UNIT: [FILE, LINE]},
     "functions": [{"name": NAME, "unit": UNIT, "positions": COUNT,
                    "statements": [{"position": N, "depth": N, "text": TEXT, "place": PLACE}],
                    "tiles": [{"name": NAME, "space": SPACE, "shape": [N, N], "dtype": NAME,
                               "offset": N, "bytes": N, "first": N, "last": N,
                               "place": PLACE}]}]}

A PLACE is ``[UNIT, LINE]``: the line counts from the ``def`` of the unit, which is 1. ``sources``
has the file and the line of that ``def`` for units whose source is known; it may be empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pypto_toolchains.json_fields import (
    FieldError,
    as_int,
    as_list,
    as_object,
    as_text,
    check_keys,
    parse_object,
)

SCHEMA = 1
FILE_NAME = "passes_dump/memory_map.json"

_MAX_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a unit, counted from its ``def``."""

    unit: str
    line: int


@dataclass(frozen=True, slots=True)
class RecordedStatement:
    """A statement as one line of text; `depth` counts the loops and branches around it."""

    position: int
    depth: int
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class RecordedTile:
    """A tile, where it lies in bytes and the positions of its first and last use."""

    name: str
    space: str
    shape: tuple[int, int]
    dtype: str
    offset: int
    bytes: int
    first: int
    last: int
    place: Place


@dataclass(frozen=True, slots=True)
class FunctionMemory:
    """One function that runs on a core."""

    name: str
    unit: str
    positions: int
    statements: tuple[RecordedStatement, ...]
    tiles: tuple[RecordedTile, ...]


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """The plan of a whole program. `sources` is from unit to file and line of its ``def``."""

    program: str
    arch: str
    capacity: Mapping[str, int]
    functions: tuple[FunctionMemory, ...]
    sources: Mapping[str, tuple[str, int]]

    def to_json(self) -> str:
        """The text of the file."""
        document = {
            "schema": SCHEMA,
            "program": self.program,
            "arch": self.arch,
            "capacity": dict(self.capacity),
            "sources": {unit: list(place) for unit, place in self.sources.items()},
            "functions": [_function_fields(function) for function in self.functions],
        }
        return json.dumps(document, separators=(",", ":")) + "\n"

    @classmethod
    def parse(cls, data: bytes) -> MemoryRecord:
        """The value of the file's bytes; FieldError says what is wrong with them."""
        document = parse_object(data, _MAX_BYTES)
        keys = {"schema", "program", "arch", "capacity", "sources", "functions"}
        check_keys(document, "the document", keys)
        if as_int(document["schema"], "schema") != SCHEMA:
            raise FieldError(f"schema is {document['schema']}, but this version reads {SCHEMA}")
        capacity = as_object(document["capacity"], "capacity")
        sources = as_object(document["sources"], "sources")
        functions = as_list(document["functions"], "functions")
        return cls(
            program=as_text(document["program"], "program"),
            arch=as_text(document["arch"], "arch"),
            capacity={k: as_int(v, f"capacity[{k!r}]") for k, v in capacity.items()},
            functions=tuple(_function(f, f"functions[{i}]") for i, f in enumerate(functions)),
            sources={unit: _pair(v, f"sources[{unit!r}]") for unit, v in sources.items()},
        )


def _function_fields(function: FunctionMemory) -> dict[str, object]:
    return {
        "name": function.name,
        "unit": function.unit,
        "positions": function.positions,
        "statements": [
            {
                "position": statement.position,
                "depth": statement.depth,
                "text": statement.text,
                "place": [statement.place.unit, statement.place.line],
            }
            for statement in function.statements
        ],
        "tiles": [
            {
                "name": tile.name,
                "space": tile.space,
                "shape": list(tile.shape),
                "dtype": tile.dtype,
                "offset": tile.offset,
                "bytes": tile.bytes,
                "first": tile.first,
                "last": tile.last,
                "place": [tile.place.unit, tile.place.line],
            }
            for tile in function.tiles
        ],
    }


def _function(value: object, where: str) -> FunctionMemory:
    fields = as_object(value, where)
    check_keys(fields, where, {"name", "unit", "positions", "statements", "tiles"})
    statements = as_list(fields["statements"], f"{where}.statements")
    tiles = as_list(fields["tiles"], f"{where}.tiles")
    return FunctionMemory(
        name=as_text(fields["name"], f"{where}.name"),
        unit=as_text(fields["unit"], f"{where}.unit"),
        positions=as_int(fields["positions"], f"{where}.positions"),
        statements=tuple(
            _statement(s, f"{where}.statements[{i}]") for i, s in enumerate(statements)
        ),
        tiles=tuple(_tile(t, f"{where}.tiles[{i}]") for i, t in enumerate(tiles)),
    )


def _statement(value: object, where: str) -> RecordedStatement:
    fields = as_object(value, where)
    check_keys(fields, where, {"position", "depth", "text", "place"})
    return RecordedStatement(
        position=as_int(fields["position"], f"{where}.position"),
        depth=as_int(fields["depth"], f"{where}.depth"),
        text=as_text(fields["text"], f"{where}.text"),
        place=_place(fields["place"], f"{where}.place"),
    )


def _tile(value: object, where: str) -> RecordedTile:
    fields = as_object(value, where)
    numbers = ("offset", "bytes", "first", "last")
    check_keys(fields, where, {"name", "space", "shape", "dtype", *numbers, "place"})
    shape = [as_int(e, f"{where}.shape") for e in as_list(fields["shape"], f"{where}.shape")]
    if len(shape) != 2:
        raise FieldError(f"{where}.shape has {len(shape)} extents, not 2")
    return RecordedTile(
        name=as_text(fields["name"], f"{where}.name"),
        space=as_text(fields["space"], f"{where}.space"),
        shape=(shape[0], shape[1]),
        dtype=as_text(fields["dtype"], f"{where}.dtype"),
        place=_place(fields["place"], f"{where}.place"),
        **{name: as_int(fields[name], f"{where}.{name}") for name in numbers},
    )


def _place(value: object, where: str) -> Place:
    return Place(*_pair(value, where))


def _pair(value: Any, where: str) -> tuple[str, int]:
    items = as_list(value, where)
    if len(items) != 2:
        raise FieldError(f"{where} has {len(items)} items, not 2")
    return as_text(items[0], where), as_int(items[1], where)
