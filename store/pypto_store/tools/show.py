"""`show KEY`: everything that is known of one key."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from pypto_store.layout import resolve
from pypto_store.listing import EntryRow
from pypto_store.tools.answer import Answer, Surroundings
from pypto_store.tools.comparison import EvidenceShelf
from pypto_store.tools.entry_document import entry_document, files_document
from pypto_store.tools.selection import rows_of, rows_of_key
from pypto_store.tools.terminal import plain, size_text, table

if TYPE_CHECKING:
    from pypto_store.digest import Digest
    from pypto_store.evidence import EvidenceRecord
    from rich.console import Console

# A component, its digest, and its evidence or why there is none.
_Told: TypeAlias = "tuple[str, Digest, EvidenceRecord | str]"
_SPEC_DIGITS = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The key."""
    parser.add_argument("key", metavar="KEY", help="a key, or enough of its first digits")
    parser.add_argument(
        "--inputs", action="store_true", help="on a terminal, show every readable input too"
    )


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """The key's components with their readable inputs, and its entries with their files."""
    root = surroundings.root
    rows = rows_of_key(rows_of(root), options.key, root)
    manifest = next((row.manifest for row in rows if row.manifest is not None), None)
    told: list[_Told] = []
    kernel = ""
    if manifest is not None:
        shelf = EvidenceShelf(resolve(root)[0])
        kernel = shelf.subject(manifest.key.source)
        told = [(name, digest, shelf.of(digest)) for name, digest in manifest.key.components()]
    entries = [{**entry_document(row, kernel), "files": files_document(row)} for row in rows]
    document = {
        "key": rows[0].key,
        "entries": entries,
        "inputs": {
            name: None if isinstance(found, str) else [item._asdict() for item in found.inputs]
            for name, _, found in told
        },
    }

    def paint(console: Console) -> None:
        of = f" of {kernel}" if kernel else ""
        console.print(plain(f"key {rows[0].key}{of}"))
        _paint_components(console, told)
        if options.inputs:
            _paint_inputs(console, told)
        for row in rows:
            console.print()
            _paint_entry(console, row)

    return Answer(document, paint)


def _paint_components(console: Console, told: Sequence[_Told]) -> None:
    if told:
        components = table("component", "digest")
        for name, digest, _ in told:
            components.add_row(name, digest.hex)
        console.print(components)


def _paint_inputs(console: Console, told: Sequence[_Told]) -> None:
    for name, _, found in told:
        console.print()
        console.print(plain(name, "cyan"))
        if isinstance(found, str):
            console.print(plain(found, "yellow", indent=2))
            continue
        for of, items in groupby(found.inputs, key=lambda item: item.of):
            if of:
                console.print(plain(of, indent=2))
            for item in items:
                separator = ":\n" if "\n" in item.value else ": "
                console.print(plain(f"{item.name}{separator}{item.value}", indent=4))


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
