"""Choosing entries of a root: by the beginning of their key, or by their kernel."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pypto_store.listing import EntryRow, iterate_entries
from pypto_store.outcomes import reason_of
from pypto_store.tools.answer import CommandError, Status
from pypto_store.tools.comparison import EvidenceShelf, is_of_kernel
from pypto_store.validation import SlotFault, open_slot, validate_payload

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pypto_store.manifest import Manifest

_PREFIX = re.compile(r"[0-9a-f]{1,64}")
_NAMED = 10
_LISTED = "`ls` lists the keys"


def add_choice(group: argparse._ArgumentGroup) -> None:
    """Arguments that choose entries, as `chosen_rows` takes them."""
    group.add_argument(
        "keys", metavar="KEY", nargs="*", default=[], help="keys, or enough of their first digits"
    )
    group.add_argument("--kernel", metavar="NAME", help="all keys of the kernel of that name")


def rows_of(root: str) -> Iterator[EntryRow]:
    """Every slot of the root; CommandError if it cannot be read."""
    try:
        yield from iterate_entries(root)
    except OSError as error:
        # The marker's own complaint has no errno and says all of it.
        told = f"{root}: {error.strerror}" if error.strerror else str(error)
        raise CommandError(f"{told}; name a store with --root") from None


def rows_of_key(rows: Iterable[EntryRow], prefix: str, root: str) -> Sequence[EntryRow]:
    """The slots of the one key that starts with `prefix`; CommandError as `key_starting` has it."""
    rows = list(rows)
    key = key_starting((row.key for row in rows), prefix, root)
    return [row for row in rows if row.key == key]


def key_starting(keys: Iterable[str], prefix: str, place: str, *, remedy: str = _LISTED) -> str:
    """The one of the keys at `place` that starts with `prefix`.

    CommandError if it cannot be one, if no key starts so, or if several do, which it names.
    remedy: how the keys of the place are found out.
    """
    if _PREFIX.fullmatch(prefix) is None:
        raise CommandError(
            f"{prefix!r} is not the beginning of a key, which is 64 lower-case hexadecimal digits; "
            f"{remedy}",
        )
    found = sorted({key for key in keys if key.startswith(prefix)})
    if not found:
        raise CommandError(f"{place}: no key starts with {prefix!r}; {remedy}", Status.FOUND)
    if len(found) > 1:
        named = "".join(f"\n  {key}" for key in found[:_NAMED])
        more = f"\n  and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise CommandError(
            f"{place}: {len(found)} keys start with {prefix!r}; "
            f"give more digits of one of{named}{more}",
            Status.FOUND,
        )
    return found[0]


def chosen_rows(
    rows: Sequence[EntryRow],
    keys: Iterable[str],
    kernel: str | None,
    shelf: EvidenceShelf,
    root: str,
) -> list[EntryRow]:
    """The slots of a kernel, or those of the keys that start so where none is named.

    CommandError for what no slot is of, and for what is no beginning of one key.
    """
    if kernel is None:
        chosen = {rows_of_key(rows, prefix, root)[0].key for prefix in keys}
        return [row for row in rows if row.key in chosen]
    found = [row for row in rows if is_of_kernel(shelf.kernel(row), kernel)]
    if not found:
        raise CommandError(
            f"{root}: no entry is known to be of a kernel {kernel!r}; {_LISTED}",
            Status.FOUND,
        )
    return found


def payload_fault(slot: str, manifest: Manifest) -> str | None:
    """What is wrong with the payload of an entry whose manifest was read; reads all of it.

    Not a lookup, which would count as a use of the entry.
    """
    try:
        descriptor = open_slot(slot)
        if descriptor is None:
            return "it is gone"
        try:
            validate_payload(descriptor, manifest.files)
        finally:
            os.close(descriptor)
    except SlotFault as fault:
        return fault.reason
    except OSError as error:
        return reason_of(error)
    return None
