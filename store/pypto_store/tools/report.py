"""`report`: a root as a page to look at and to send around."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pypto_store.keys import State
from pypto_store.tools.answer import Answer, Surroundings
from pypto_store.tools.output_file import STREAM, output_place, written
from pypto_store.tools.report_page import render
from pypto_store.tools.selection import rows_of
from pypto_store.tools.survey import survey
from pypto_store.tools.terminal import plain, size_text

if TYPE_CHECKING:
    from rich.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the page goes."""
    parser.add_argument(
        "--html",
        metavar="FILE",
        required=True,
        help="write one HTML file that needs nothing beside it; - is standard output",
    )


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """Look at every entry from outside and write the page. Damage is told and is no failure."""
    place = output_place(options.html, surroundings)
    rows = list(rows_of(surroundings.root))
    with surroundings.progress.of("looking at entries", len(rows)) as advance:
        found = survey(surroundings.root, rows, advance)
    page = render(found, surroundings.now).encode("utf-8")
    with written(place) as stream:
        stream.write(page)
    document = {
        "html": place,
        "html_size": len(page),
        "keys": len({row.key for row in rows}),
        "entries": len(found.entries),
        "ready": found.count(State.READY),
        "generated": found.count(State.GENERATED),
        "damaged": found.damaged,
        "payload_size": found.payload_size,
        "disk_size": found.disk_size,
        "saved_size": found.saved,
        "hits": None,
    }

    def paint(console: Console) -> None:
        console.print(plain(f"{place}: {size_text(len(page))}"), soft_wrap=True)
        console.print(
            f"{len(rows)} entries, {found.damaged} damaged, {size_text(found.payload_size)} of "
            f"payload in {size_text(found.disk_size)} on disk"
        )

    return Answer(document, paint, beside_data=place == STREAM)
