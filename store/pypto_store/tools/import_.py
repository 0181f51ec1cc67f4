"""`import`: the entries of a bundle into a store. The bundle is read as if an enemy had made it."""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pypto_store.bundle.faults import BundleError, CodecMissing
from pypto_store.bundle.unpacking import Contents, Delivery, Fate, unpack
from pypto_store.layout import resolve
from pypto_store.locks import LockUnavailable
from pypto_store.removal import remove_tree
from pypto_store.store import ArtifactStore
from pypto_store.tools.answer import Answer, CommandError, Status, Surroundings
from pypto_store.tools.terminal import plain, size_text

if TYPE_CHECKING:
    from rich.console import Console

STREAM = "-"
_STANDARD_INPUT = 0
_LIMIT = 16 * 1024**3
_LOCK_SECONDS = 60.0
_SIZE = re.compile(r"([0-9]{1,18})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_KEY_DIGITS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle and what it may take."""
    parser.add_argument("bundle", metavar="FILE", help="the bundle; - is standard input")
    parser.add_argument(
        "--max-size",
        metavar="SIZE",
        type=_size,
        default=_LIMIT,
        help="refuse entries of more than this together, as 500M or 40G (default: 16G)",
    )
    parser.add_argument(
        "--scratch",
        metavar="DIRECTORY",
        help="where contents are unpacked before the store sees them (default: $TMPDIR or /tmp)",
    )


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """Read the whole bundle, then publish what the store does not have."""
    resolve(surroundings.root)  # refuses a root of another layout before anything is read
    try:
        with _scratch(options.scratch, surroundings) as scratch:
            contents = _read(options, surroundings, scratch)
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


@contextmanager
def _scratch(given: str | None, surroundings: Surroundings) -> Iterator[str]:
    """A directory of our own outside the store, removed afterwards."""
    parent = surroundings.temporary
    if given is not None:
        parent = os.path.join(surroundings.cwd, given)
    root = os.path.realpath(surroundings.root)
    if f"{os.path.realpath(parent)}/".startswith(f"{root}/"):
        raise CommandError(f"{parent} lies in the store itself; name another with --scratch")
    directory = tempfile.mkdtemp(prefix="pypto-import-", dir=parent)
    try:
        yield directory
    finally:
        remove_tree(directory)


def _read(options: argparse.Namespace, surroundings: Surroundings, scratch: str) -> Contents:
    directory = f"{scratch}/contents"
    os.mkdir(directory, 0o700)
    told = "reading the bundle"
    with (
        _source(options.bundle, surroundings.cwd) as (source, size),
        surroundings.progress.of_bytes(told, size) as advance,
    ):
        return unpack(source, directory, options.max_size, advance)


@contextmanager
def _source(given: str, cwd: str) -> Iterator[tuple[BinaryIO, int]]:
    """The bundle and its size in bytes, 0 where that is not known."""
    if given == STREAM:
        with open(_STANDARD_INPUT, "rb", closefd=False) as stream:
            yield stream, 0
        return
    with open(os.path.join(cwd, given), "rb") as file:
        yield file, os.fstat(file.fileno()).st_size


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


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 500M or 40G")
    return int(found[1]) << 10 * " KMGT".index(found[2].upper() or " ")


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
