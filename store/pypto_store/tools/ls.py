"""`ls`: one row for each entry."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto_store.listing import EntryRow
from pypto_store.tools.answer import Answer, Surroundings
from pypto_store.tools.entry_document import entry_document
from pypto_store.tools.selection import rows_of
from pypto_store.tools.terminal import plain, size_text, table

if TYPE_CHECKING:
    from rich.console import Console

_KEY_DIGITS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No more than the common ones."""
    del parser


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """Every entry in a fixed order. Damaged ones are rows too, and no failure of the listing."""
    del options
    rows = list(rows_of(surroundings.root))
    document = {"entries": [entry_document(row) for row in rows]}
    return Answer(document, lambda console: _paint(console, rows))


def _paint(console: Console, rows: Sequence[EntryRow]) -> None:
    listing = table("key", "state", "kind", "cpu", "files", "size", right=("files", "size"))
    for row in rows:
        if row.spec is None:
            listing.add_row(
                row.key[:_KEY_DIGITS], row.state.value, plain(f"damaged: {row.damage}", "red")
            )
        else:
            listing.add_row(
                row.key[:_KEY_DIGITS],
                row.state.value,
                row.spec.build_kind,
                row.spec.cpu_level or "",
                str(row.files),
                size_text(row.size or 0),
            )
    if rows:
        console.print(listing)
    damaged = sum(row.damage is not None for row in rows)
    console.print(
        f"{len(rows)} entries, {damaged} damaged, "
        f"{size_text(sum(row.size or 0 for row in rows))} declared"
    )
