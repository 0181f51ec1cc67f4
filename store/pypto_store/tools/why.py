"""`why`: what made a key another key than its neighbours."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_store.layout import resolve
from pypto_store.listing import EntryRow
from pypto_store.tools.answer import Answer, CommandError, Status, Surroundings
from pypto_store.tools.comparison import (
    ComponentDifference,
    EvidenceShelf,
    InputDifference,
    KnownKey,
    compare,
    is_of_kernel,
    known_keys,
    nearest,
)
from pypto_store.tools.quantities import moment
from pypto_store.tools.selection import rows_of, rows_of_key
from pypto_store.tools.terminal import plain

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console

_NEAREST = 3
_KEY_DIGITS = 12
_NAMED = 10
_SHORT = 60  # characters that still read well on both sides of an arrow


@dataclass(frozen=True, slots=True)
class Comparison:
    """A key beside one other: what turned the other into it."""

    other: KnownKey
    components: tuple[ComponentDifference, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A key and its comparisons, the most telling first; none if there is nothing to compare."""

    key: KnownKey
    compared: tuple[Comparison, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One key, two keys, or a kernel."""
    parser.add_argument(
        "keys", metavar="KEY", nargs="*", help="one or two keys, or their beginnings"
    )
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        help="every key of a kernel (its name, or module:name), each beside an earlier one",
    )
    parser.add_argument(
        "--nearest",
        metavar="N",
        type=_positive,
        default=None,
        help=f"how many other keys to compare one key with (default: {_NEAREST})",
    )


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """What was asked, from manifests and evidence alone."""
    if bool(options.keys) == (options.kernel is not None) or len(options.keys) > 2:
        raise CommandError("why takes one key, two keys, or --kernel NAME; `ls` lists the keys")
    if options.nearest is not None and len(options.keys) != 1:
        raise CommandError("--nearest goes with one key")
    root = surroundings.root
    rows = list(rows_of(root))
    shelf = EvidenceShelf(resolve(root)[0])
    known = known_keys(rows, shelf)
    if options.kernel is not None:
        explanations = _of_kernel(options.kernel, known, shelf, root)
    elif len(options.keys) == 2:
        before, after = (_chosen(prefix, rows, known, root) for prefix in options.keys)
        comparison = Comparison(before, compare(before, after, shelf))
        explanations = [Explanation(after, (comparison,))]
    else:
        key = _chosen(options.keys[0], rows, known, root)
        others = [other for other in known if other is not key]
        explanations = [_explained(key, others, shelf, options.nearest or _NEAREST)]
    return Answer(
        {"explanations": [_document(item) for item in explanations]},
        lambda console: _paint(console, explanations),
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _chosen(
    prefix: str, rows: Sequence[EntryRow], known: Sequence[KnownKey], root: str
) -> KnownKey:
    name = rows_of_key(rows, prefix, root)[0].key
    for key in known:
        if key.key == name:
            return key
    raise CommandError(
        f"{root}: every entry of key {name} is damaged, so its components are not known; "
        "see `show` and `fsck`",
        Status.FOUND,
    )


def _of_kernel(
    name: str, known: Sequence[KnownKey], shelf: EvidenceShelf, root: str
) -> list[Explanation]:
    """Each key of a kernel beside the nearest that was published before it."""
    found = [key for key in known if is_of_kernel(key.subject, name)]
    if not found:
        raise CommandError(
            f"{root}: no evidence names a kernel {name!r}{_kernels(known)}", Status.FOUND
        )
    found.sort(key=lambda key: key.published or 0)
    return [_explained(key, found[:position], shelf, 1) for position, key in enumerate(found)]


def _kernels(known: Sequence[KnownKey]) -> str:
    names = sorted({key.subject for key in known if key.subject})
    if not names:
        return "; none is kept here"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"; it names {', '.join(names[:_NAMED])}{more}"


def _explained(
    key: KnownKey, others: Sequence[KnownKey], shelf: EvidenceShelf, count: int
) -> Explanation:
    chosen = nearest(key, others, shelf, count)
    return Explanation(
        key, tuple(Comparison(other, compare(other, key, shelf)) for other in chosen)
    )


# -- for machines


def _document(explanation: Explanation) -> dict[str, object]:
    return {
        **_key_document(explanation.key),
        "compared": [
            {
                **_key_document(comparison.other),
                "components": [_component_document(item) for item in comparison.components],
            }
            for comparison in explanation.compared
        ],
    }


def _key_document(key: KnownKey) -> dict[str, object]:
    return {
        "key": key.key,
        "kernel": key.subject or None,
        "states": sorted({state.value for state in key.states}),
        "published": None if key.published is None else _time(key.published).isoformat(),
    }


def _component_document(difference: ComponentDifference) -> dict[str, object]:
    return {
        "component": difference.component,
        "before": difference.before.hex,
        "after": difference.after.hex,
        "untold": difference.untold,
        "inputs": [
            {"of": item.of, "name": item.name, "before": item.before, "after": item.after}
            for item in difference.inputs
        ],
    }


def _time(nanoseconds: int) -> datetime:
    return moment(nanoseconds // 10**9)


# -- for people


def _paint(console: Console, explanations: Sequence[Explanation]) -> None:
    for position, explanation in enumerate(explanations):
        if position:
            console.print()
        console.print(plain(_described(explanation.key), "bold"))
        if not explanation.compared:
            console.print("  nothing to compare it with")
        for comparison in explanation.compared:
            console.print(plain(f"since {_described(comparison.other)}", indent=2))
            for difference in comparison.components:
                _paint_component(console, difference)


def _described(key: KnownKey) -> str:
    of = f" of {key.subject}" if key.subject else ""
    when = (
        "" if key.published is None else f", {_time(key.published).astimezone():%Y-%m-%d %H:%M:%S}"
    )
    return f"{key.key[:_KEY_DIGITS]}{of}{when}"


def _paint_component(console: Console, difference: ComponentDifference) -> None:
    console.print(plain(difference.component, "cyan", indent=4))
    if difference.untold is not None:
        console.print(plain(difference.untold, "yellow", indent=6))
    of = None
    for item in difference.inputs:
        if item.of and item.of != of:
            console.print(plain(item.of, indent=6))
        of = item.of
        for line, style in _lines(item):
            console.print(plain(line, style, indent=8))


def _lines(item: InputDifference) -> Iterator[tuple[str, str]]:
    before, after = item.before, item.after
    if before is None:
        yield from _one_side(f"{item.name}: added", after or "", "+", "green")
    elif after is None:
        yield from _one_side(f"{item.name}: removed", before, "-", "red")
    elif "\n" not in before + after and len(before + after) <= _SHORT:
        yield f"{item.name}: {before} -> {after}", ""
    else:
        yield f"{item.name}:", ""
        compared = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
        for number, line in enumerate(compared):
            if number >= 2:  # after the two lines that name files
                style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
                yield line, style


def _one_side(head: str, value: str, mark: str, style: str) -> Iterator[tuple[str, str]]:
    lines = value.splitlines() or [""]
    if len(lines) == 1 and len(value) <= _SHORT:
        yield f"{head}, {lines[0]}", style
        return
    yield head, ""
    for line in lines:
        yield f"{mark}{line}", style
