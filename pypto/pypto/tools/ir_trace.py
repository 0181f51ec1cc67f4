"""``pypto-ir-trace``: a program pass by pass, as a page to search and compare."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.tools import command, passes_dump
from pypto.tools.passes_dump import DumpedPass
from pypto.tools.trace_page import render
from pypto_store.tools.answer import Status
from pypto_store.tools.output_file import STREAM
from pypto_store.tools.terminal import plain, table

if TYPE_CHECKING:
    from rich.console import Console

PAGE = "report/ir_trace.html"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="pypto-ir-trace",
        description="Show a program after each pass of the compiler, and what each pass changed, "
        "as one HTML file that needs nothing beside it.",
        epilog="The directory is one that was compiled with dump_passes=True; with "
        "profiling=True the page has the time of each pass too. Exit status: 0 done, 2 a "
        "directory or a file that cannot be used.",
    )
    made.add_argument("directory", type=Path, help="a build directory, or its passes_dump")
    made.add_argument(
        "-o", "--output", metavar="FILE",
        help=f"the page to write; - is standard output (default: {PAGE} in the build directory)",
    )  # fmt: skip
    made.add_argument(
        "--json", action="store_true",
        help="print the list of passes as JSON, and write a page only if -o names one",
    )  # fmt: skip
    return made


def run(options: argparse.Namespace, streams: command.Streams) -> int:
    """Write the page and list the passes."""
    build, passes = passes_dump.read(options.directory, streams.progress)
    place = options.output or (None if options.json else build / PAGE)
    written = None
    if place is not None:
        written = command.write_text(render(build, passes), place)
    if written == STREAM:
        return Status.OK
    if options.json:
        json.dump(_document(build, passes, written), streams.out, indent=2)
        streams.out.write("\n")
    else:
        streams.paint(lambda console: _paint(console, passes, written))
    return Status.OK


def _document(build: Path, passes: Sequence[DumpedPass], page: str | None) -> dict[str, object]:
    return {
        "schema_version": 1,
        "directory": str(build),
        "page": page,
        "passes": [
            {
                "number": one.number,
                "name": one.name,
                "file": one.file,
                "lines": len(one.lines),
                "functions": [section.name for section in one.sections],
                "seconds": one.seconds,
            }
            for one in passes
        ],
    }


def _paint(console: Console, passes: Sequence[DumpedPass], page: str | None) -> None:
    numbers = ("#", "functions", "lines", "ms")
    rows = table("#", "pass", "functions", "lines", "ms", right=numbers)
    for one in passes:
        took = "" if one.seconds is None else f"{one.seconds * 1e3:.2f}"
        rows.add_row(
            str(one.number), plain(one.name), str(len(one.sections)), str(len(one.lines)), took
        )
    console.print(rows)
    if page is not None:
        console.print(plain(f"wrote {page}"), soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the command; gives the exit status."""
    return command.main(parser(), run, arguments)


if __name__ == "__main__":
    sys.exit(main())
