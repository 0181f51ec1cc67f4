"""``pypto-ir-trace``: a program pass by pass, as a page to search and compare."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.tools import passes_dump
from pypto.tools.command import Command
from pypto.tools.passes_dump import DumpedPass
from pypto.tools.trace_page import render
from pypto_store.tools.terminal import plain, table

if TYPE_CHECKING:
    from rich.console import Console

PAGE = "report/ir_trace.html"


@dataclass(frozen=True, slots=True)
class _Trace:
    """The passes of one build."""

    build: Path
    passes: tuple[DumpedPass, ...]

    @property
    def place(self) -> Path:
        return self.build / PAGE

    def text(self) -> str:
        return render(self.build, self.passes)

    def document(self, written: str | None) -> dict[str, object]:
        return {
            "schema_version": 1,
            "directory": str(self.build),
            "page": written,
            "passes": [
                {
                    "number": one.number,
                    "name": one.name,
                    "file": one.file,
                    "lines": len(one.lines),
                    "functions": [section.name for section in one.sections],
                    "seconds": one.seconds,
                }
                for one in self.passes
            ],
        }

    def paint(self, console: Console) -> None:
        numbers = ("#", "functions", "lines", "ms")
        rows = table("#", "pass", "functions", "lines", "ms", right=numbers)
        for one in self.passes:
            took = "" if one.seconds is None else f"{one.seconds * 1e3:.2f}"
            counts = (str(len(one.sections)), str(len(one.lines)))
            rows.add_row(str(one.number), plain(one.name), *counts, took)
        console.print(rows)


COMMAND = Command(
    program="pypto-ir-trace",
    description="Show a program after each pass of the compiler, and what each pass changed, as "
    "one HTML file that needs nothing beside it.",
    epilog="The directory is one that was compiled with dump_passes=True; with profiling=True the "
    "page has the time of each pass too.",
    path="directory",
    path_help="a build directory, or its passes_dump",
    made="page",
    default=f"{PAGE} in the build directory",
    told="list of passes",
    answer=lambda path, progress: _Trace(*passes_dump.read(path, progress)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the command; gives the exit status."""
    return COMMAND.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
