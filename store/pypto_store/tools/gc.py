"""`gc`: keep a store within limits, and remove what nothing needs."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pypto_store import crash_points
from pypto_store.tools.answer import Answer, CommandError, Status, Surroundings
from pypto_store.tools.cleaning import Limits, Plan, carry_out, plan
from pypto_store.tools.comparison import is_of_kernel
from pypto_store.tools.exclusive import marked_layout, sole_user
from pypto_store.tools.quantities import duration, moment, size
from pypto_store.tools.stock import StoredKey, take_stock
from pypto_store.tools.terminal import plain, size_text, table

if TYPE_CHECKING:
    from rich.console import Console

_KEY_DIGITS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The limits, and whether to act."""
    parser.add_argument(
        "--max-size",
        metavar="SIZE",
        type=size,
        help="drop what was not used for longest until the store has this size, such as 10G",
    )
    parser.add_argument(
        "--max-age",
        metavar="TIME",
        type=duration,
        help="drop what was not used for this long, such as 30d or 12h",
    )
    parser.add_argument(
        "--keep",
        metavar="NAME",
        action="append",
        default=[],
        help="never drop this key (or its beginning) or this kernel; may be given several times",
    )
    parser.add_argument(
        "--delete", action="store_true", help="do it; without, only say what would go"
    )


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """The plan, carried out if asked. Without limits only what no entry needs goes."""
    layout = marked_layout(surroundings.root)
    with contextlib.ExitStack() as stack:
        if options.delete:
            stack.enter_context(sole_user(layout, "no --delete, to see what would go"))
            crash_points.reach("gc.locked")
        stock = take_stock(layout, surroundings.progress)
        limits = Limits(options.max_size, options.max_age, _kept(options.keep, stock.keys))
        decided = plan(stock, limits, surroundings.now)
        if options.delete:
            carry_out(layout, decided, surroundings.progress)
    return Answer(
        _document(decided, options),
        lambda console: _paint(console, decided, options),
        Status.FOUND if decided.over else Status.OK,
    )


def _kept(names: Iterable[str], keys: Iterable[StoredKey]) -> frozenset[str]:
    """The keys that `names` mean; CommandError for one that means none, a misspelling perhaps."""
    known = list(keys)
    kept: set[str] = set()
    for name in names:
        found = {
            key.key for key in known if key.key.startswith(name) or is_of_kernel(key.kernel, name)
        }
        if not name or not found:
            raise CommandError(
                f"--keep {name}: no key or kernel is called so; `ls` lists them", Status.FOUND
            )
        kept |= found
    return frozenset(kept)


def _document(decided: Plan, options: argparse.Namespace) -> dict[str, object]:
    return {
        "dry_run": not options.delete,
        "limits": {
            "max_size": options.max_size,
            "max_age": options.max_age,
            "keep": options.keep,
        },
        "before": decided.before,
        "after": decided.after,
        "over": decided.over,
        "kept": len(decided.stock.keys) - len(decided.dropped),
        "dropped": [
            {
                "key": dropped.key.key,
                "environment": dropped.key.environment,
                "kernel": dropped.key.kernel or None,
                "used": moment(dropped.key.used).isoformat(timespec="seconds"),
                "frees": dropped.frees,
                "reason": dropped.reason.value,
            }
            for dropped in decided.dropped
        ],
        "blobs": len(decided.blobs),
        "evidence": len(decided.evidence),
        "records": len(decided.records),
        "leftovers": decided.leftovers,
    }


def _paint(console: Console, decided: Plan, options: argparse.Namespace) -> None:
    if decided.dropped:
        listing = table("key", "kernel", "last used", "frees", "limit", right=("frees",))
        for dropped in decided.dropped:
            listing.add_row(
                dropped.key.key[:_KEY_DIGITS],
                plain(dropped.key.kernel),
                f"{moment(dropped.key.used).astimezone():%Y-%m-%d %H:%M}",
                size_text(dropped.frees),
                dropped.reason.value,
            )
        console.print(listing)
    verb = "dropped" if options.delete else "to drop"
    kept = len(decided.stock.keys) - len(decided.dropped)
    console.print(f"{len(decided.dropped)} keys {verb}, {kept} kept")
    console.print(
        f"beside them {len(decided.blobs)} blobs, {len(decided.evidence)} records of evidence, "
        f"{len(decided.records)} of tools, {decided.leftovers} leftovers"
    )
    console.print(f"{size_text(decided.before)} before, {size_text(decided.after)} after")
    if decided.over:
        console.print(
            plain(f"what is kept is {size_text(decided.over)} larger than the limit", "yellow")
        )
    if not options.delete:
        console.print("nothing was removed; --delete does it")
