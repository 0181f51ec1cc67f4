"""`fsck`: read everything below a root, and put aside what is damaged."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from pypto_store.tools.answer import Answer, CommandError, Status, Surroundings
from pypto_store.tools.exclusive import marked_layout, sole_user
from pypto_store.tools.inspection import Counts, Finding, Inspection, Verdict
from pypto_store.tools.quarantine import Quarantine
from pypto_store.tools.terminal import plain, size_text

if TYPE_CHECKING:
    from rich.console import Console

# What a finding is, and where it was put, if it was.
_Result = tuple[Finding, "str | None"]
_STYLES = {
    Verdict.DAMAGED: "red",
    Verdict.UNREADABLE: "red",
    Verdict.LEFTOVER: "yellow",
    Verdict.FOREIGN: "dim",
}
_WRONG = frozenset({Verdict.DAMAGED, Verdict.UNREADABLE})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whether to act."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only report: takes no lock, writes nothing, and may run beside users of the store",
    )


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """Every finding; damage is moved aside, unless this is a dry run.

    Leftovers and foreign files stay where they are and are no reason for another exit status.
    """
    layout = marked_layout(surroundings.root)
    inspection = Inspection(layout)
    results: list[_Result] = []
    with contextlib.ExitStack() as stack:
        quarantine = None
        if not options.dry_run:
            stack.enter_context(sole_user(layout, "--dry-run"))
            quarantine = Quarantine(layout, surroundings.now)
        for finding in inspection.findings(surroundings.progress):
            results.append((finding, _put_aside(finding, quarantine)))
    wrong = any(finding.verdict in _WRONG for finding, _ in results)
    document = {
        "dry_run": options.dry_run,
        "checked": asdict(inspection.counts),
        "findings": [
            {
                "verdict": finding.verdict.value,
                "what": finding.what,
                "path": finding.path,
                "reason": finding.reason,
                "quarantined": place,
            }
            for finding, place in results
        ],
    }
    return Answer(
        document,
        lambda console: _paint(console, results, inspection.counts),
        Status.FOUND if wrong else Status.OK,
    )


def _put_aside(finding: Finding, quarantine: Quarantine | None) -> str | None:
    if quarantine is None or finding.verdict is not Verdict.DAMAGED:
        return None
    try:
        return quarantine.take(finding)
    except OSError as error:
        raise CommandError(
            f"{finding.path} is damaged ({finding.reason}) and cannot be put into quarantine: "
            f"{error.strerror or error}; make room or correct the permissions, and run it again"
        ) from error


def _paint(console: Console, results: Sequence[_Result], counts: Counts) -> None:
    for finding, place in results:
        style = _STYLES[finding.verdict]
        console.print(plain(f"{finding.verdict.value} {finding.what}: {finding.reason}", style))
        # Left to the terminal to wrap, so that it can be copied.
        console.print(plain(finding.path), soft_wrap=True)
        if place is not None:
            console.print(plain(f"moved to {place}"), soft_wrap=True)
    number = dict.fromkeys(Verdict, 0)
    for finding, _ in results:
        number[finding.verdict] += 1
    console.print(
        f"{counts.entries} entries, {counts.blobs} blobs and {counts.evidence} records of evidence "
        f"read, {size_text(counts.bytes)}"
    )
    console.print(", ".join(f"{count} {verdict.value}" for verdict, count in number.items()))
    if number[Verdict.LEFTOVER]:
        console.print("gc removes leftovers")
