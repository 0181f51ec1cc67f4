"""``python -m pypto.jit stat``: what a root holds, from its manifests alone.

Imports no compiled code and no torch, takes no lock, repairs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TextIO

from pypto_store.listing import EntryRow, iterate_entries

REPORT_SCHEMA = 1

OK = 0
NO_ROOT = 2

_KEY_DIGITS = 12


def stat(root: str, out: TextIO, err: TextIO) -> int:
    """Run the command; gives the exit status."""
    try:
        rows = list(iterate_entries(root))
    except OSError as error:
        print(f"error: {root}: {error.strerror or error}", file=err)
        return NO_ROOT
    if out.isatty():
        _table(rows, out)
    else:
        print(json.dumps(_document(root, rows), indent=2), file=out)
    return OK


def _document(root: str, rows: Sequence[EntryRow]) -> dict[str, Any]:
    return {
        "schema_version": REPORT_SCHEMA,
        "root": root,
        "entries": [
            {
                "key": row.key,
                "environment": row.environment,
                "state": row.state.value,
                "path": row.path,
                "bytes": row.size,
                "files": row.files,
                "cpu_level": None if row.spec is None else row.spec.cpu_level,
                "execution": None if row.spec is None else list(row.spec.execution),
                "damage": row.damage,
            }
            for row in rows
        ],
        "totals": _totals(rows),
    }


def _totals(rows: Sequence[EntryRow]) -> dict[str, int]:
    return {
        "entries": len(rows),
        "generated": sum(row.state.value == "generated" for row in rows),
        "ready": sum(row.state.value == "ready" for row in rows),
        "damaged": sum(row.damage is not None for row in rows),
        "bytes": sum(row.size or 0 for row in rows),
    }


def _table(rows: Sequence[EntryRow], out: TextIO) -> None:
    print(f"{'state':<11}{'bytes':>10}{'files':>7}  {'cpu':<11}key", file=out)
    for row in rows:
        key = row.key[:_KEY_DIGITS]
        if row.damage is not None:
            print(f"{row.state.value:<11}{'damaged':>10}{'':>20}{key}  {row.damage}", file=out)
        else:
            level = (row.spec and row.spec.cpu_level) or ""
            print(f"{row.state.value:<11}{row.size:>10}{row.files:>7}  {level:<11}{key}", file=out)
    totals = _totals(rows)
    print(
        f"{totals['entries']} entries ({totals['generated']} generated, {totals['ready']} ready, "
        f"{totals['damaged']} damaged), {totals['bytes']} bytes declared",
        file=out,
    )
