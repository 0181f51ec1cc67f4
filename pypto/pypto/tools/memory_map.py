"""``python -m pypto.tools.memory_map``: on-chip memory of a compiled program over time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.compiler.memory_record import FILE_NAME, FunctionMemory, MemoryRecord
from pypto.tools.command import Command, directory_of
from pypto.tools.memory_page import render
from pypto_store.tools.answer import CommandError
from pypto_store.tools.terminal import plain, size_text, table
from pypto_toolchains.json_fields import FieldError

if TYPE_CHECKING:
    from rich.console import Console

PAGE = "report/memory_map.html"


def load(directory: Path) -> tuple[Path, MemoryRecord]:
    """The build directory that `directory` is, or is the passes_dump of, and its record.

    CommandError where there is none or it cannot be read.
    """
    directory_of(directory)
    name = Path(FILE_NAME)
    within = (directory.absolute() / name, directory.absolute() / name.name)
    path = next((path for path in within if path.is_file()), None)
    if path is None:
        raise CommandError(
            f"{directory}: no {name}; compile with dump_passes=True and name the build directory"
        )
    try:
        record = MemoryRecord.parse(path.read_bytes())
    except FieldError as error:
        raise CommandError(f"{path}: {error}; compile again") from error
    return path.parent.parent, record


def peaks(function: FunctionMemory) -> dict[str, int]:
    """The bytes of each space that a function needs: the end of the tile that lies highest."""
    ends: dict[str, int] = {}
    for tile in function.tiles:
        ends[tile.space] = max(ends.get(tile.space, 0), tile.offset + tile.bytes)
    return ends


def usage(record: MemoryRecord) -> Iterator[tuple[str, str, int, int, int]]:
    """Function, space, number of tiles, bytes needed, and bytes there are (0 if not known)."""
    for function in record.functions:
        for space, peak in peaks(function).items():
            tiles = sum(tile.space == space for tile in function.tiles)
            yield function.name, space, tiles, peak, record.capacity.get(space, 0)


@dataclass(frozen=True, slots=True)
class _Map:
    """The memory of one build."""

    build: Path
    record: MemoryRecord

    @property
    def place(self) -> Path:
        return self.build / PAGE

    def text(self) -> str:
        return render(self.record, self.build)

    def document(self, written: str | None) -> dict[str, object]:
        record = self.record
        functions = json.loads(record.to_json())["functions"]
        for fields, function in zip(functions, record.functions, strict=True):
            fields["peaks"] = peaks(function)
        return {
            "schema_version": 1,
            "directory": str(self.build),
            "page": written,
            "program": record.program,
            "arch": record.arch,
            "capacity": dict(record.capacity),
            "sources": {unit: list(place) for unit, place in record.sources.items()},
            "functions": functions,
        }

    def paint(self, console: Console) -> None:
        numbers = ("tiles", "peak", "capacity", "used")
        rows = table("kernel", "space", *numbers, right=numbers)
        for name, space, tiles, peak, capacity in usage(self.record):
            used = f"{peak / capacity:.1%}" if capacity else ""
            size = size_text(capacity) if capacity else ""
            rows.add_row(plain(name), space, str(tiles), size_text(peak), size, used)
        console.print(rows)


COMMAND = Command(
    program="python -m pypto.tools.memory_map",
    description="Show which tile takes which on-chip memory, and when, as one HTML file that needs "
    "nothing beside it.",
    epilog="The directory is one that was compiled with dump_passes=True.",
    path="directory",
    path_help="a build directory, or its passes_dump",
    made="page",
    default=f"{PAGE} in the build directory",
    told="map",
    answer=lambda path, progress: _Map(*load(path)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the command; gives the exit status."""
    return COMMAND.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
