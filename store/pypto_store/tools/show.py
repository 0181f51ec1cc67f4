"""`show KEY`: everything that is known of one key."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto_store.listing import EntryRow
from pypto_store.tools.answer import Answer, Surroundings
from pypto_store.tools.entry_document import entry_document, files_document
from pypto_store.tools.selection import rows_of, rows_of_key
from pypto_store.tools.terminal import plain, size_text, table

if TYPE_CHECKING:
    from rich.console import Console

_SPEC_DIGITS = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The key."""
    parser.add_argument("key", metavar="KEY", help="a key, or enough of its first digits")


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """The key's components and its entries with their files."""
    root = surroundings.root
    rows = rows_of_key(rows_of(root), options.key, root)
    entries = [{**entry_document(row), "files": files_document(row)} for row in rows]
    return Answer({"key": rows[0].key, "entries": entries}, lambda console: _paint(console, rows))


def _paint(console: Console, rows: Sequence[EntryRow]) -> None:
    console.print(f"key {rows[0].key}")
    manifest = next((row.manifest for row in rows if row.manifest is not None), None)
    if manifest is not None:
        components = table("component", "digest")
        for name, digest in manifest.key.components():
            components.add_row(name, digest.hex)
        console.print(components)
    for row in rows:
        console.print()
        _paint_entry(console, row)


def _paint_entry(console: Console, row: EntryRow) -> None:
    of = "" if row.spec is None else f" {row.spec.digest.hex[:_SPEC_DIGITS]}"
    console.print(f"[bold]{row.state.value}{of}[/bold]")
    # Left to the terminal to wrap, so that it can be copied.
    console.print(plain(row.path), soft_wrap=True)
    if row.manifest is None:
        console.print(plain(f"damaged: {row.damage}", "red"))
        return
    spec = row.manifest.spec
    facts = [spec.build_kind, *spec.execution, *([spec.cpu_level] if spec.cpu_level else [])]
    console.print(f"{', '.join(facts)}; {row.files} files, {size_text(row.size or 0)}")
    files = table("file", "size", "sha256", "", right=("size",))
    for record in row.manifest.files:
        files.add_row(
            plain(record.path),
            size_text(record.size),
            record.sha256[:16],
            "executable" if record.executable else "",
        )
    console.print(files)
