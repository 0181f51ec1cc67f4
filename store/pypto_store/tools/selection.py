"""Choosing keys of a root by the beginning of their digest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pypto_store.listing import EntryRow, iterate_entries
from pypto_store.tools.answer import CommandError, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = re.compile(r"[0-9a-f]{1,64}")
_NAMED = 10


def rows_of(root: str) -> Iterator[EntryRow]:
    """Every slot of the root; CommandError if it cannot be read."""
    try:
        yield from iterate_entries(root)
    except OSError as error:
        # The marker's own complaint has no errno and says all of it.
        told = f"{root}: {error.strerror}" if error.strerror else str(error)
        raise CommandError(f"{told}; name a store with --root") from None


def rows_of_key(rows: Iterable[EntryRow], prefix: str, root: str) -> Sequence[EntryRow]:
    """The slots of the one key that starts with `prefix`.

    CommandError if it cannot be one, if no key starts so, or if several do, which it names.
    """
    if _PREFIX.fullmatch(prefix) is None:
        raise CommandError(
            f"{prefix!r} is not the beginning of a key, which is 64 lower-case hexadecimal digits; "
            "`ls` lists the keys",
        )
    found = [row for row in rows if row.key.startswith(prefix)]
    keys = sorted({row.key for row in found})
    if not keys:
        raise CommandError(
            f"{root}: no key starts with {prefix!r}; `ls` lists the keys", Status.FOUND
        )
    if len(keys) > 1:
        named = "".join(f"\n  {key}" for key in keys[:_NAMED])
        more = f"\n  and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
        raise CommandError(
            f"{root}: {len(keys)} keys start with {prefix!r}; "
            f"give more digits of one of{named}{more}",
            Status.FOUND,
        )
    return found
