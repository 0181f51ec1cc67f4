"""`push`: entries of a store, or of a bundle, to a remote, and onto a list there."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_store.bundle.faults import BundleError, CodecMissing
from pypto_store.entry import Entry
from pypto_store.layout import resolve
from pypto_store.remote.collections import DEFAULT_NAME
from pypto_store.tools import bundle_input, remote_options
from pypto_store.tools.answer import Answer, CommandError, Status, Surroundings
from pypto_store.tools.bundle_input import read_bundle, scratch_directory
from pypto_store.tools.comparison import EvidenceShelf, is_of_kernel
from pypto_store.tools.fates import Carried, counts, painter
from pypto_store.tools.pushing import Parcel, Push, PushFate, push, refuse_unsigned
from pypto_store.tools.remote_options import opened, remote_of
from pypto_store.tools.selection import add_choice, chosen_rows, key_starting, rows_of
from pypto_store.tools.terminal import size_text

if TYPE_CHECKING:
    from pypto_store.bundle.unpacking import Contents
    from pypto_store.listing import EntryRow
    from pypto_store.manifest import Manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to send, where to, and under which name to list it."""
    parser.add_argument(
        "--as",
        dest="name",
        metavar="NAME",
        default=DEFAULT_NAME,
        help=f"the list that `pull` finds the entries by (default: {DEFAULT_NAME})",
    )
    chosen = parser.add_argument_group("what to send (default: every entry)")
    add_choice(chosen)
    remote_options.add_arguments(parser, signs=True)
    bundle_input.add_arguments(parser.add_argument_group("with --bundle"))


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """Send what is chosen and the remote has not, then list it."""
    if options.keys and options.kernel is not None:
        raise CommandError("say what to send by keys or by --kernel NAME, not by both")
    config = remote_of(options, surroundings)
    refuse_unsigned(config)
    with _parcels(options, surroundings) as (parcels, damaged), opened(config) as remote:
        done = push(parcels, remote, options.name, surroundings.progress)
    carried = [*done.carried, *damaged]
    document = {
        "remote": config.shown_url,
        "bundle": options.bundle,
        **push_document(done, carried),
    }
    return Answer(
        document,
        painter(carried, PushFate, _lines(done)),
        Status.FOUND if damaged or done.troubled else Status.OK,
        complaint="" if done.stopped is None else done.stopped.reason,
    )


def push_document(done: Push, carried: Sequence[Carried[PushFate]]) -> dict[str, object]:
    """How it reads in JSON."""
    return {
        "counts": counts(carried, PushFate),
        "bytes_sent": done.bytes_sent,
        "entries": [item.document() for item in carried],
        "collection": None if done.update is None else done.update.document(),
        "stopped": None if done.stopped is None else done.stopped.reason,
        "left": 0 if done.stopped is None else done.stopped.left,
    }


def _lines(done: Push) -> list[str]:
    lines = [f"sent {size_text(done.bytes_sent)}"]
    update = done.update
    if update is not None:
        signed = ", signed" if update.signed else ""
        lines.append(
            f"collection {update.name}: {update.entries} entries, {update.added} new{signed}"
        )
        if update.replaced:
            lines.append(f"the list that was there is not used any more: {update.replaced}")
    return lines


@contextmanager
def _parcels(
    options: argparse.Namespace, surroundings: Surroundings
) -> Iterator[tuple[list[Parcel], list[Carried[PushFate]]]]:
    """What is chosen of the store or of the bundle, and what is no entry at all."""
    if options.bundle is None:
        yield _of_store(options.keys, options.kernel, surroundings.root)
        return
    try:
        with scratch_directory(options.scratch, surroundings, "pypto-push-") as scratch:
            contents = read_bundle(options.bundle, options.max_size, surroundings, scratch)
            yield _of_bundle(options, contents, scratch), []
    except (BundleError, CodecMissing) as error:
        raise CommandError(f"{options.bundle}: {error}") from None


def _of_store(
    keys: Sequence[str], kernel: str | None, root: str
) -> tuple[list[Parcel], list[Carried[PushFate]]]:
    rows: Sequence[EntryRow] = list(rows_of(root))
    shelf = EvidenceShelf(resolve(root)[0])
    if keys or kernel is not None:
        rows = chosen_rows(rows, keys, kernel, shelf, root)
    if not rows:
        raise CommandError(f"{root}: no entry to send", Status.FOUND)
    return parcels_of(rows, shelf)


def parcels_of(
    rows: Iterable[EntryRow], shelf: EvidenceShelf
) -> tuple[list[Parcel], list[Carried[PushFate]]]:
    """The rows as entries to send, and the fate of those whose manifest is damaged."""
    parcels: list[Parcel] = []
    damaged: list[Carried[PushFate]] = []
    for row in rows:
        if row.manifest is not None:
            parcels.append(Parcel(Entry(row.path, row.manifest), shelf.kernel(row)))
            continue
        reason = row.damage or "it has no manifest"
        state = row.state.value
        damaged.append(Carried(row.key, state, None, None, 0, "", PushFate.DAMAGED, reason))
    return parcels, damaged


def _of_bundle(options: argparse.Namespace, contents: Contents, scratch: str) -> list[Parcel]:
    """The chosen entries of a bundle, laid out as a store has them."""
    kernels = {
        record.digest: contents.evidence(record).subject for record in contents.index.records
    }
    manifests: Sequence[Manifest] = contents.index.entries
    if options.keys:
        digests = [manifest.key.digest.hex for manifest in manifests]
        remedy = "name one that is in it"
        chosen = {
            key_starting(digests, prefix, options.bundle, remedy=remedy) for prefix in options.keys
        }
        manifests = [manifest for manifest in manifests if manifest.key.digest.hex in chosen]
    named = [(manifest, kernels.get(manifest.key.source.hex, "")) for manifest in manifests]
    if options.kernel is not None:
        named = [item for item in named if is_of_kernel(item[1], options.kernel)]
    if not named:
        told = "is empty" if options.kernel is None else f"names no kernel {options.kernel!r}"
        raise CommandError(f"{options.bundle}: the bundle {told}", Status.FOUND)
    parcels = []
    for number, (manifest, kernel) in enumerate(named):
        directory = f"{scratch}/{number}"
        os.mkdir(directory, 0o700)
        contents.builder(manifest)(Path(directory))
        parcels.append(Parcel(Entry(directory, manifest), kernel))
    return parcels
