"""`export`: entries into one file, each validated before it is packed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from pypto_store.bundle.faults import BundleError, CodecMissing
from pypto_store.bundle.frame import codec
from pypto_store.entry import Entry
from pypto_store.evidence import EvidenceRecord
from pypto_store.layout import resolve
from pypto_store.listing import EntryRow
from pypto_store.tools.answer import Answer, CommandError, Status, Surroundings
from pypto_store.tools.bundle_output import bundle_place, write_bundle
from pypto_store.tools.comparison import EvidenceShelf
from pypto_store.tools.entry_document import entry_document
from pypto_store.tools.output_file import STREAM
from pypto_store.tools.selection import add_choice, chosen_rows, payload_fault, rows_of
from pypto_store.tools.terminal import plain, size_text

if TYPE_CHECKING:
    from rich.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to pack and where to."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the bundle; - is standard output"
    )
    chosen = parser.add_argument_group("what to pack (one of these)")
    add_choice(chosen)
    chosen.add_argument("--all", action="store_true", help="every entry")
    parser.add_argument(
        "--with-evidence",
        action="store_true",
        help="also what `why` explains keys with; it names paths of this machine",
    )


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """Validate what is chosen and pack it; damaged entries are left out, named, and a failure."""
    try:
        codec()
        return _export(options, surroundings)
    except CodecMissing as error:
        raise CommandError(str(error)) from None
    except BundleError as error:
        raise CommandError(f"{surroundings.root}: {error}") from None


def _export(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    output = bundle_place(options.output, surroundings)
    layout, _ = resolve(surroundings.root)
    shelf = EvidenceShelf(layout)
    rows = _chosen(options, shelf, surroundings.root)
    entries, damaged = _validated(rows, surroundings)
    if not entries:
        raise CommandError(f"{surroundings.root}: no valid entry to export", Status.FOUND)
    kept = _evidence(entries, shelf) if options.with_evidence else []
    bundle = write_bundle(entries, kept, output, surroundings)
    document = {
        "bundle": output,
        "size": bundle.size,
        "sha256": bundle.sha256,
        "entries": [
            entry_document(row, shelf.kernel(row)) for row in rows if row.path not in damaged
        ],
        "damaged": [{"path": path, "reason": reason} for path, reason in damaged.items()],
        "payload_size": sum(entry.manifest.payload_size for entry in entries),
        "content_size": bundle.content_size,
        "evidence_records": len(kept),
    }
    return Answer(
        document,
        lambda console: _paint(console, document, len(entries), damaged),
        Status.FOUND if damaged else Status.OK,
        beside_data=output == STREAM,
    )


def _chosen(options: argparse.Namespace, shelf: EvidenceShelf, root: str) -> Sequence[EntryRow]:
    if sum((bool(options.keys), options.kernel is not None, options.all)) != 1:
        raise CommandError("say what to export: some keys, or --kernel NAME, or --all")
    rows = list(rows_of(root))
    return rows if options.all else chosen_rows(rows, options.keys, options.kernel, shelf, root)


def _validated(
    rows: Sequence[EntryRow], surroundings: Surroundings
) -> tuple[list[Entry], dict[str, str]]:
    """The rows as validated entries, and why the others are none, by path."""
    entries: list[Entry] = []
    damaged: dict[str, str] = {}
    total = sum(row.size or 0 for row in rows)
    with surroundings.progress.of_bytes("validating", total) as advance:
        for row in rows:
            if row.manifest is None:
                damaged[row.path] = str(row.damage)
                continue
            if (fault := payload_fault(row.path, row.manifest)) is None:
                entries.append(Entry(row.path, row.manifest))
            else:
                damaged[row.path] = fault
            advance(row.manifest.payload_size)
    return entries, damaged


def _evidence(entries: Sequence[Entry], shelf: EvidenceShelf) -> list[EvidenceRecord]:
    """What is kept of the entries' components; what is damaged or missing explains nothing."""
    components = {digest for entry in entries for _, digest in entry.key.components()}
    found = (shelf.of(digest) for digest in sorted(components))
    return [record for record in found if isinstance(record, EvidenceRecord)]


def _paint(
    console: Console, document: dict[str, object], count: int, damaged: dict[str, str]
) -> None:
    console.print(
        f"{count} entries, {size_text(cast('int', document['payload_size']))} of payload, "
        f"{size_text(cast('int', document['content_size']))} of distinct content"
    )
    console.print(plain(f"{document['bundle']}: {size_text(cast('int', document['size']))}"))
    console.print(f"sha256 {document['sha256']}", soft_wrap=True)
    for path, reason in damaged.items():
        console.print(plain(f"left out, damaged: {path}: {reason}", "red"), soft_wrap=True)
