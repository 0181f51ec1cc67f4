"""All benchmarks in turn, in one table.

    python tests/benchmarks/run.py --rows 1,3,4 --json

`--runs` replaces every benchmark's own number of measurements a side. `--peers` also measures the
other caches of `peers.py` that are installed, and says so on standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import cold_compile
import herd
import jit_cache_latency
import live_call
import lower_decoder
import paged_attention
import peers
import publish_entry
import remote_fetch
import simulated_execution
import toolchain_identity
import validate_entry
import whole_process
from measure import Comparison, report

# The rows of the table that each benchmark fills, how it runs, and how often if not told.
BENCHMARKS: tuple[tuple[tuple[str, ...], Callable[[int], list[Comparison]], int], ...] = (
    (("1", "3"), jit_cache_latency.rows, jit_cache_latency.RUNS),
    (("2",), validate_entry.compare, validate_entry.RUNS),
    (("4",), toolchain_identity.compare, toolchain_identity.RUNS),
    (("5",), whole_process.compare, whole_process.RUNS),
    (("6",), live_call.compare, live_call.RUNS),
    (("7",), publish_entry.compare, publish_entry.RUNS),
    (("8",), herd.compare, herd.RUNS),
    (("9",), cold_compile.compare, cold_compile.RUNS),
    (("10",), simulated_execution.compare, simulated_execution.RUNS),
    (("11",), remote_fetch.compare, remote_fetch.RUNS),
    (("12",), lower_decoder.compare, lower_decoder.RUNS),
    (("13",), paged_attention.compare, paged_attention.RUNS),
)
_KNOWN = frozenset(row for rows, _, _ in BENCHMARKS for row in rows)


def _rows(text: str) -> frozenset[str]:
    chosen = frozenset(text.split(","))
    if unknown := chosen.difference(_KNOWN):
        raise argparse.ArgumentTypeError(
            f"no row {min(unknown)!r}; there are {', '.join(sorted(_KNOWN, key=int))}"
        )
    return chosen


def main() -> None:
    """Run as a script."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=_rows, default=_KNOWN, help="such as 1,3,4")
    options.add_argument("--runs", type=int, help="measurements a side")
    options.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options.add_argument("--output", type=Path, help="also write the JSON to this file")
    options.add_argument("--peers", action="store_true", help="other caches beside rows 1 and 3")
    chosen = options.parse_args()
    done = []
    for rows, compare, runs in BENCHMARKS:
        if chosen.rows.intersection(rows):
            sys.stderr.write(f"row {' and '.join(rows)} ...\n")
            found = compare(chosen.runs or runs)
            done += [comparison for comparison in found if comparison.row in chosen.rows]
    beside = peers.lines(peers.RUNS, sys.stderr.write) if chosen.peers else []
    report(sorted(done, key=lambda comparison: int(comparison.row)), chosen)
    # Not with the JSON: they are of other programs, and mostly of none.
    sys.stderr.write("".join(f"{line}\n" for line in beside))


if __name__ == "__main__":
    main()
