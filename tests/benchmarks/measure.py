"""Timing two sides in one run, and printing them with their ratio.

Machines drift by a factor of two or three between runs, so an absolute figure says little. Every
benchmark here interleaves its own side with a base and reports the ratio of medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row: both sides in seconds (medians), how often each ran, and what is aimed at."""

    row: str
    what: str
    ours_s: float
    base: str
    base_s: float
    runs: int
    target: float

    @property
    def ratio(self) -> float:
        """Ours over the base."""
        return self.ours_s / self.base_s


def interleave(
    ours: Callable[[], float], base: Callable[[], float], runs: int
) -> tuple[float, float]:
    """Medians of both sides; each callable returns the seconds that it measured."""
    left, right = [], []
    for turn in range(runs):
        # The side that goes first changes, so that neither always finds warmed caches.
        for side in (left, right) if turn % 2 else (right, left):
            side.append(ours() if side is left else base())
    return statistics.median(left), statistics.median(right)


def timed(action: Callable[[], object], repeats: int = 1) -> float:
    """Seconds that one ``action()`` takes, averaged over ``repeats``."""
    begin = time.perf_counter()
    for _ in range(repeats):
        action()
    return (time.perf_counter() - begin) / repeats


def _seconds(value: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def table(rows: Sequence[Comparison]) -> str:
    """A table of at most 100 columns."""
    lines = [f"{'row':<4}{'what':<31}{'ours':>9}  {'base':<25}{'base':>9}{'ratio':>7}{'target':>8}"]
    lines += [
        f"{row.row:<4}{row.what[:30]:<31}{_seconds(row.ours_s):>9}  {row.base[:24]:<25}"
        f"{_seconds(row.base_s):>9}{row.ratio:>7.2f}{row.target:>8.2f}"
        for row in rows
    ]
    return "\n".join(lines)


def as_json(rows: Sequence[Comparison]) -> str:
    """The rows as JSON, with their ratios."""
    return json.dumps([asdict(row) | {"ratio": row.ratio} for row in rows], indent=1)


def parser(description: str | None, runs: int) -> argparse.ArgumentParser:
    """The options that every benchmark takes."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--runs", type=int, default=runs, help="measurements a side (%(default)s)")
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    made.add_argument("--output", type=Path, help="also write the JSON to this file")
    return made


def report(rows: Sequence[Comparison], options: argparse.Namespace) -> None:
    """Print the rows as asked."""
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(as_json(rows) + "\n", encoding="utf-8")
    sys.stdout.write((as_json(rows) if options.json else table(rows)) + "\n")
