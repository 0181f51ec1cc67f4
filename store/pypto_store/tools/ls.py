"""`ls`: one row for each entry."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto_store.layout import resolve
from pypto_store.listing import EntryRow
from pypto_store.tools.answer import Answer, Surroundings
from pypto_store.tools.comparison import EvidenceShelf, is_of_kernel
from pypto_store.tools.entry_document import entry_document
from pypto_store.tools.quantities import moment
from pypto_store.tools.selection import rows_of
from pypto_store.tools.stock import last_used
from pypto_store.tools.terminal import plain, size_text, table

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console

_KEY_DIGITS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which entries."""
    parser.add_argument("--kernel", metavar="NAME", help="only those of this kernel")


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """Every entry in a fixed order. Damaged ones are rows too, and no failure of the listing."""
    root = surroundings.root
    rows = list(rows_of(root))
    shelf = EvidenceShelf(resolve(root)[0])
    listed = [
        (row, kernel)
        for row in rows
        for kernel in ("" if row.manifest is None else shelf.subject(row.manifest.key.source),)
        if options.kernel is None or is_of_kernel(kernel, options.kernel)
    ]
    document = {
        "entries": [
            {**entry_document(row, kernel), "used": _time(row).isoformat(timespec="seconds")}
            for row, kernel in listed
        ]
    }
    return Answer(document, lambda console: _paint(console, listed))


def _time(row: EntryRow) -> datetime:
    return moment(last_used(row.path))


def _paint(console: Console, listed: Sequence[tuple[EntryRow, str]]) -> None:
    listing = table("key", "state", "kernel", "cpu", "last used", "size", right=("size",))
    for row, kernel in listed:
        key, state = row.key[:_KEY_DIGITS], row.state.value
        if row.spec is None:
            listing.add_row(key, state, plain(f"damaged: {row.damage}", "red"))
        else:
            level = row.spec.cpu_level or ""
            used = f"{_time(row).astimezone():%Y-%m-%d}"
            listing.add_row(key, state, plain(kernel), level, used, size_text(row.size or 0))
    if listed:
        console.print(listing)
    damaged = sum(row.damage is not None for row, _ in listed)
    size = size_text(sum(row.size or 0 for row, _ in listed))
    console.print(f"{len(listed)} entries, {damaged} damaged, {size} declared")
