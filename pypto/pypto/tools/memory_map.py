"""``python -m pypto.tools.memory_map``: on-chip memory of a compiled program over time."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.compiler.memory_record import FILE_NAME, FunctionMemory, MemoryRecord
from pypto.tools import command
from pypto.tools.memory_page import render
from pypto_store.tools.answer import CommandError, Status
from pypto_store.tools.output_file import STREAM
from pypto_store.tools.terminal import plain, size_text, table
from pypto_toolchains.json_fields import FieldError

if TYPE_CHECKING:
    from rich.console import Console

PAGE = "report/memory_map.html"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m pypto.tools.memory_map",
        description="Show which tile takes which on-chip memory, and when, as one HTML file that "
        "needs nothing beside it.",
        epilog="The directory is one that was compiled with dump_passes=True. Exit status: 0 done, "
        "2 a directory or a file that cannot be used.",
    )
    made.add_argument("directory", type=Path, help="a build directory, or its passes_dump")
    made.add_argument(
        "-o", "--output", metavar="FILE",
        help=f"the page to write; - is standard output (default: {PAGE} in the build directory)",
    )  # fmt: skip
    made.add_argument(
        "--json", action="store_true",
        help="print the map as JSON, and write a page only if -o names one",
    )  # fmt: skip
    return made


def load(directory: Path) -> tuple[Path, MemoryRecord]:
    """The build directory that `directory` is, or is the passes_dump of, and its record.

    CommandError where there is none or it cannot be read.
    """
    command.directory_of(directory)
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


def run(options: argparse.Namespace, streams: command.Streams) -> int:
    """Write the page and say how full each memory space gets."""
    build, record = load(options.directory)
    place = options.output or (None if options.json else build / PAGE)
    written = None
    if place is not None:
        written = command.write_text(render(record, build), place)
    if written == STREAM:
        return Status.OK
    if options.json:
        json.dump(_document(record, build, written), streams.out, indent=2)
        streams.out.write("\n")
    else:
        streams.paint(lambda console: _paint(console, record, written))
    return Status.OK


def _document(record: MemoryRecord, build: Path, page: str | None) -> dict[str, object]:
    functions = json.loads(record.to_json())["functions"]
    for fields, function in zip(functions, record.functions, strict=True):
        fields["peaks"] = peaks(function)
    return {
        "schema_version": 1,
        "directory": str(build),
        "page": page,
        "program": record.program,
        "arch": record.arch,
        "capacity": dict(record.capacity),
        "sources": {unit: list(place) for unit, place in record.sources.items()},
        "functions": functions,
    }


def _paint(console: Console, record: MemoryRecord, page: str | None) -> None:
    rows = table(
        "kernel",
        "space",
        "tiles",
        "peak",
        "capacity",
        "used",
        right=("tiles", "peak", "capacity", "used"),
    )
    for name, space, tiles, peak, capacity in _usage(record):
        used = f"{peak / capacity:.1%}" if capacity else ""
        size = size_text(capacity) if capacity else ""
        rows.add_row(plain(name), space, str(tiles), size_text(peak), size, used)
    console.print(rows)
    if page is not None:
        console.print(plain(f"wrote {page}"), soft_wrap=True)


def _usage(record: MemoryRecord) -> Iterator[tuple[str, str, int, int, int]]:
    for function in record.functions:
        for space, peak in peaks(function).items():
            tiles = sum(tile.space == space for tile in function.tiles)
            yield function.name, space, tiles, peak, record.capacity.get(space, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the command; gives the exit status."""
    return command.main(parser(), run, arguments)


if __name__ == "__main__":
    sys.exit(main())
