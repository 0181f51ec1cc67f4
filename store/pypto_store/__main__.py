"""`python -m pypto_store ls|show`: look into a store without touching it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_store.listing import iterate_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pypto_store.listing import EntryRow

SCHEMA = 1


def main(arguments: Sequence[str]) -> int:
    """Run one command; 0 if all is well, 1 if nothing matches, 2 if the root cannot be read."""
    options = _parser().parse_args(arguments)
    try:
        rows = list(iterate_entries(options.root))
    except OSError as error:
        print(f"{options.root}: {error.strerror or error}", file=sys.stderr)
        return 2
    if options.command == "show":
        rows = [row for row in rows if row.key.startswith(options.key)]
        if not rows:
            print(f"{options.root}: no key starts with {options.key!r}", file=sys.stderr)
            return 1
    write = _write_json if options.json else _WRITERS[options.command]
    write(rows)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pypto_store", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("ls", help="list every entry")
    show = commands.add_parser("show", help="show the entries of one key with their files")
    for command in (listing, show):
        command.add_argument("--root", type=Path, required=True, help="the store's directory")
        command.add_argument("--json", action="store_true", help="machine-readable output")
    show.add_argument("key", help="the key's digest or the beginning of it")
    return parser


def _write_table(rows: Iterable[EntryRow]) -> None:
    count = total = 0
    for row in rows:
        size = "-" if row.size is None else str(row.size)
        detail = row.damage if row.spec is None else row.spec.cpu_level or ""
        print(f"{row.key[:16]}  {row.state.value:<9}  {size:>12}  {detail}".rstrip())
        count += 1
        total += row.size or 0
    print(f"{count} entries, {total} bytes")


def _write_details(rows: Iterable[EntryRow]) -> None:
    for row in rows:
        print(f"{row.state.value} {row.key}\n  {row.path}")
        if row.manifest is None:
            print(f"  damaged: {row.damage}")
            continue
        for name, digest in row.manifest.key.components():
            print(f"  {name:<15} {digest}")
        print(f"  {'spec':<15} {row.manifest.spec.digest}")
        for record in row.manifest.files:
            flag = "x" if record.executable else "-"
            print(f"  {flag} {record.size:>12} {record.sha256[:16]} {record.path}")


_WRITERS = {"ls": _write_table, "show": _write_details}


def _write_json(rows: Iterable[EntryRow]) -> None:
    document = {"schema_version": SCHEMA, "entries": [_plain(row) for row in rows]}
    print(json.dumps(document, indent=2, sort_keys=True))


def _plain(row: EntryRow) -> dict[str, object]:
    plain: dict[str, object] = {
        "path": row.path,
        "environment": row.environment,
        "key": row.key,
        "state": row.state.value,
        "size": row.size,
        "damage": row.damage,
    }
    if row.manifest is not None:
        spec = row.manifest.spec
        plain["components"] = {name: digest.hex for name, digest in row.manifest.key.components()}
        plain["spec"] = {
            "digest": spec.digest.hex,
            "build_kind": spec.build_kind,
            "cpu_level": spec.cpu_level,
            "execution": list(spec.execution),
            "required_files": list(spec.required_files),
        }
        plain["files"] = [record._asdict() for record in row.manifest.files]
    return plain


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
