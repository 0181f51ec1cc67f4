"""How an entry reads in the JSON of every command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypto_store.listing import EntryRow


def entry_document(row: EntryRow, kernel: str = "") -> dict[str, object]:
    """All that the manifest says, but for the single files; sizes are in bytes.

    kernel: what the evidence names, "" if nothing does.
    """
    document: dict[str, object] = {
        "path": row.path,
        "environment": row.environment,
        "key": row.key,
        "kernel": kernel or None,
        "state": row.state.value,
        "size": row.size,
        "file_count": row.files,
        "damage": row.damage,
        "components": None,
        "spec": None,
    }
    if row.manifest is not None:
        spec = row.manifest.spec
        document["components"] = {
            name: digest.hex for name, digest in row.manifest.key.components()
        }
        document["spec"] = {
            "digest": spec.digest.hex,
            "build_kind": spec.build_kind,
            "cpu_level": spec.cpu_level,
            "execution": list(spec.execution),
            "required_files": list(spec.required_files),
        }
    return document


def files_document(row: EntryRow) -> list[dict[str, object]]:
    """The inventory, empty where the manifest is damaged."""
    return [] if row.manifest is None else [record._asdict() for record in row.manifest.files]
