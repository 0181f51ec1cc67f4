"""`import`: the entries of a bundle into a store. The bundle is read as if an enemy had made it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_store.bundle.faults import BundleError, CodecMissing
from pypto_store.bundle.unpacking import Contents, Delivery, Fate
from pypto_store.layout import resolve
from pypto_store.locks import LockUnavailable
from pypto_store.store import ArtifactStore
from pypto_store.tools import bundle_input
from pypto_store.tools.answer import Answer, CommandError, Status, Surroundings
from pypto_store.tools.bundle_input import read_bundle, scratch_directory
from pypto_store.tools.terminal import plain, size_text

if TYPE_CHECKING:
    from rich.console import Console

_LOCK_SECONDS = 60.0
_KEY_DIGITS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle and what it may take."""
    parser.add_argument("bundle", metavar="FILE", help="the bundle; - is standard input")
    bundle_input.add_arguments(parser)


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """Read the whole bundle, then publish what the store does not have."""
    resolve(surroundings.root)  # refuses a root of another layout before anything is read
    try:
        with scratch_directory(options.scratch, surroundings, "pypto-import-") as scratch:
            contents = read_bundle(options.bundle, options.max_size, surroundings, scratch)
            deliveries, kept = _deliver(contents, surroundings, scratch)
    except (BundleError, CodecMissing) as error:
        raise CommandError(f"{options.bundle}: {error}") from None
    document = {
        "bundle": options.bundle,
        "entries": [_document(delivery) for delivery in deliveries],
        "counts": {fate.value: _count(deliveries, fate) for fate in Fate},
        "content_size": sum(blob.size for blob in contents.index.blobs),
        "shared_size": sum(delivery.shared_bytes for delivery in deliveries),
        "evidence_records": kept,
    }
    troubled = any(delivery.fate in (Fate.DAMAGED, Fate.FAILED) for delivery in deliveries)
    return Answer(
        document,
        lambda console: _paint(console, deliveries),
        Status.FOUND if troubled else Status.OK,
    )


def _deliver(
    contents: Contents, surroundings: Surroundings, scratch: str
) -> tuple[list[Delivery], int]:
    store = ArtifactStore(Path(surroundings.root), lock_timeout=_LOCK_SECONDS)
    try:
        # Keeps nothing, but makes this process a writer: a cleaning that has the store for itself
        # would otherwise be waited for anew with every entry.
        store.keep_evidence(())
    except LockUnavailable as error:
        in_use = error.__cause__ is None
        raise CommandError(str(error), Status.IN_USE if in_use else Status.UNUSABLE) from None
    entries = contents.index.entries
    deliveries = []
    total = sum(manifest.payload_size for manifest in entries)
    with surroundings.progress.of_bytes("importing", total) as advance:
        for manifest in entries:
            deliveries.append(contents.deliver(store, manifest, f"{scratch}/private"))
            advance(manifest.payload_size)
    return deliveries, _keep_evidence(contents, store)


def _keep_evidence(contents: Contents, store: ArtifactStore) -> int:
    """How many explanations are in the store now; losing one is no failure of the import."""
    records = contents.index.records
    if not records:
        return 0
    with suppress(LockUnavailable, OSError):
        store.keep_evidence(contents.evidence(record) for record in records)
        return len(records)
    return 0


def _count(deliveries: Sequence[Delivery], fate: Fate) -> int:
    return sum(delivery.fate is fate for delivery in deliveries)


def _document(delivery: Delivery) -> dict[str, object]:
    manifest = delivery.manifest
    return {
        "key": manifest.key.digest.hex,
        "state": manifest.spec.state.value,
        "spec": manifest.spec.digest.hex,
        "size": manifest.payload_size,
        "fate": delivery.fate.value,
        "reason": delivery.reason or None,
    }


def _paint(console: Console, deliveries: Sequence[Delivery]) -> None:
    told = ", ".join(
        f"{count} {fate.value}" for fate in Fate if (count := _count(deliveries, fate))
    )
    total = sum(delivery.manifest.payload_size for delivery in deliveries)
    console.print(f"{len(deliveries)} entries, {size_text(total)}: {told or 'nothing to do'}")
    for delivery in deliveries:
        if delivery.reason:
            key = delivery.manifest.key.digest.hex[:_KEY_DIGITS]
            state = delivery.manifest.spec.state.value
            told = f"{key} {state} {delivery.fate.value}: {delivery.reason}"
            console.print(plain(told, "red"), soft_wrap=True)
