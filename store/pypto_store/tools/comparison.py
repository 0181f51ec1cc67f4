"""What makes two keys two: the components that differ, and which input of each."""

from __future__ import annotations

import contextlib
import heapq
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pypto_store.digest import Digest
from pypto_store.evidence import EvidenceError, EvidenceRecord, load
from pypto_store.keys import State
from pypto_store.layout import Layout
from pypto_store.listing import EntryRow
from pypto_store.paths import MANIFEST_NAME

# How many keys are looked at input by input, after all were looked at component by component.
_CLOSELY = 64


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One key of a root, from its undamaged entries.

    subject: the kernel, "" if nothing tells it. published: nanoseconds since the epoch, None if the
    file system does not say; a hint for people and never more.
    """

    key: str
    environment: str
    components: Mapping[str, Digest]
    states: tuple[State, ...]
    subject: str
    published: int | None


@dataclass(frozen=True, slots=True)
class InputDifference:
    """One input that differs; None on the side that does not have it."""

    of: str
    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ComponentDifference:
    """One component that differs. `untold` says why its inputs are not told, if they are not."""

    component: str
    before: Digest
    after: Digest
    inputs: tuple[InputDifference, ...]
    untold: str | None


class EvidenceShelf:
    """The evidence of a root, each record read once."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._records: dict[Digest, EvidenceRecord | str] = {}

    def of(self, digest: Digest) -> EvidenceRecord | str:
        """The record of a component, or why there is none to read."""
        found = self._records.get(digest)
        if found is None:
            try:
                found = load(self._layout, digest) or "no evidence is kept of it"
            except EvidenceError as error:
                found = f"its evidence is damaged ({error})"
            except OSError as error:
                found = f"its evidence cannot be read ({error.strerror or error})"
            self._records[digest] = found
        return found

    def subject(self, source: Digest) -> str:
        """The kernel that a source component is of, or ""."""
        found = self.of(source)
        return found.subject if isinstance(found, EvidenceRecord) else ""

    def kernel(self, row: EntryRow) -> str:
        """The kernel that an entry is of, or ""."""
        return "" if row.manifest is None else self.subject(row.manifest.key.source)


def known_keys(rows: Iterable[EntryRow], shelf: EvidenceShelf) -> list[KnownKey]:
    """Every key that has an entry with a readable manifest, in the order of the rows."""
    groups: dict[tuple[str, str], list[EntryRow]] = {}
    for row in rows:
        if row.manifest is not None:
            groups.setdefault((row.environment, row.key), []).append(row)
    found = []
    for (environment, key), group in groups.items():
        assert group[0].manifest is not None
        components = dict(group[0].manifest.key.components())
        times = [time for row in group if (time := _published(row)) is not None]
        found.append(
            KnownKey(
                key,
                environment,
                components,
                tuple(row.state for row in group),
                shelf.subject(components["source"]),
                min(times, default=None),
            )
        )
    return found


def _published(row: EntryRow) -> int | None:
    with contextlib.suppress(OSError):
        return os.stat(f"{row.path}/{MANIFEST_NAME}", follow_symlinks=False).st_mtime_ns
    return None


def is_of_kernel(subject: str, name: str) -> bool:
    """Whether `name` means the kernel `subject` ("module:qualname"), whole or by its last name."""
    dotted = subject.replace(":", ".")
    return bool(subject) and name in (
        subject,
        dotted,
        subject.rpartition(":")[2],
        dotted.rpartition(".")[2],
    )


def compare(
    before: KnownKey, after: KnownKey, shelf: EvidenceShelf
) -> tuple[ComponentDifference, ...]:
    """Every component that differs between two keys; none if they are one."""
    return tuple(
        _component(name, before.components[name], after.components[name], shelf)
        for name in _differing(before, after)
    )


def nearest(
    key: KnownKey, others: Iterable[KnownKey], shelf: EvidenceShelf, count: int
) -> Sequence[KnownKey]:
    """At most `count` of the others, those that differ least first.

    The same kernel is nearer than another, then fewer components, then fewer inputs, then what
    was published later.
    """

    def roughly(other: KnownKey) -> tuple[bool, int, int]:
        return (
            other.subject != key.subject,
            len(_differing(other, key)),
            -(other.published or 0),
        )

    def closely(other: KnownKey) -> tuple[bool, int, int, int]:
        unlike, components, age = roughly(other)
        inputs = sum(len(found.inputs) for found in compare(other, key, shelf))
        return (unlike, components, inputs, age)

    candidates = heapq.nsmallest(max(_CLOSELY, count), others, key=roughly)
    return heapq.nsmallest(count, candidates, key=closely)


def _differing(one: KnownKey, other: KnownKey) -> list[str]:
    return [name for name in one.components if one.components[name] != other.components[name]]


def _component(
    name: str, before: Digest, after: Digest, shelf: EvidenceShelf
) -> ComponentDifference:
    old, new = shelf.of(before), shelf.of(after)
    if isinstance(old, str) or isinstance(new, str):
        reasons = [
            f"{side}: {found}"
            for side, found in (("before", old), ("after", new))
            if isinstance(found, str)
        ]
        return ComponentDifference(name, before, after, (), "; ".join(reasons))
    inputs = tuple(input_differences(old, new))
    untold = None if inputs else "no readable input differs: the rules of its digest changed"
    return ComponentDifference(name, before, after, inputs, untold)


def input_differences(old: EvidenceRecord, new: EvidenceRecord) -> Iterable[InputDifference]:
    """What two records of one component say differently."""
    before = {(item.of, item.name): item.value for item in old.inputs}
    after = {(item.of, item.name): item.value for item in new.inputs}
    for of, name in {**after, **before}:
        values = before.get((of, name)), after.get((of, name))
        if values[0] != values[1]:
            yield InputDifference(of, name, *values)
