"""Eight processes ask for one missing kernel at once (row 8).

Counts compiles over all of them, and measures how long after the publication the last waiter has
its kernel. The base of the ratio is 20 ms.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Comparison, parser, report

HERE = Path(__file__).resolve().parent
RUNS = 10
PROCESSES = 8


def child(root: Path) -> None:
    """Wait for the starting line, ask, print when it was ready and what was built."""
    import pypto
    import torch
    from pypto.backend import BackendType, ExecutionMode
    from pypto.runtime import RunConfig
    from sample_kernels import add

    config = RunConfig(
        arch=BackendType.Ascend910B,
        execution_mode=ExecutionMode.SIM,
        cache_config=pypto.CacheConfig(enabled=True, root=root),
    )
    a, out = torch.ones(64, 64), torch.empty(64, 64)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    add.warmup(a, a, out, config=config)
    done = time.monotonic()
    stats = pypto.cache_stats()
    sys.stdout.write(
        json.dumps([done, stats.generation_builds, stats.binary_builds, stats.bypasses]) + "\n"
    )


def trial(root: Path) -> tuple[int, int, float]:
    """Generation builds, binary builds, and seconds from the first finish to the last."""
    children = [
        subprocess.Popen(
            [sys.executable, __file__, "--child", str(root)],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    rows = []
    for process in children:
        assert process.stdout is not None
        process.stdout.readline()
    for process in children:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in children:
        output, _ = process.communicate()
        if process.returncode:
            raise SystemExit("a process failed")
        rows.append(json.loads(output))
    if any(row[3] for row in rows):
        raise SystemExit("a process went without the store")
    finished = [row[0] for row in rows]
    # The builder is the first to return: publication is its last step.
    return sum(row[1] for row in rows), sum(row[2] for row in rows), max(finished) - min(finished)


def compare(runs: int) -> list[Comparison]:
    """Run the trials."""
    delays = []
    for index in range(runs):
        with tempfile.TemporaryDirectory() as scratch:
            generated, binaries, delay = trial(Path(scratch) / "root")
        if (generated, binaries) != (1, 1):
            raise SystemExit(f"trial {index}: {generated} generations, {binaries} binary builds")
        delays.append(delay)
        if sys.stderr.isatty():
            sys.stderr.write(f"\rtrial {index + 1} of {runs}")
    if os.environ.get("TERM") and sys.stderr.isatty():
        sys.stderr.write("\n")
    return [
        Comparison(
            "8",
            f"herd of {PROCESSES}: last waiter after first",
            statistics.median(delays),
            "20 ms (1 compile each trial)",
            0.020,
            runs,
            1.0,
        )
    ]


def main() -> None:
    """Run as a script."""
    options = parser(__doc__, RUNS)
    options.add_argument("--child", type=Path, help="internal: one of the processes")
    chosen = options.parse_args()
    if chosen.child is not None:
        child(chosen.child)
        return
    report(compare(chosen.runs), chosen)


if __name__ == "__main__":
    main()
