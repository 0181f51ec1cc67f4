"""A cold compile of a one-kernel program to READY, beside one run of g++ (row 9).

The base compiles the kernel source that ours generated with `g++ -O2 -shared` and the same include
directories, without anything else. Ours parses, lowers, assembles, compiles the kernel and the
orchestration, and publishes both entries.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Comparison, parser, report

HERE = Path(__file__).resolve().parent
RUNS = 7


def child(root: Path) -> None:
    """One cold compile in a fresh process; prints its seconds."""
    import pypto
    from pypto.backend import BackendType, ExecutionMode
    from pypto.runtime import RunConfig
    from sample_kernels import add

    config = RunConfig(
        arch=BackendType.Ascend910B,
        execution_mode=ExecutionMode.SIM,
        cache_config=pypto.CacheConfig(enabled=True, root=root),
    )
    begin = time.perf_counter()
    add.warmup(config=config)
    seconds = time.perf_counter() - begin
    stats = pypto.cache_stats()
    if (stats.generation_builds, stats.binary_builds) != (1, 1) or stats.bypasses:
        raise SystemExit(f"this was no cold compile to READY: {stats}")
    sys.stdout.write(json.dumps(seconds) + "\n")


def _base(root: Path, library: Path) -> float:
    import pypto

    (source,) = root.glob("artifacts/v1/*/*/generated/kernels/aiv/*.cpp")
    include = Path(pypto.__file__).parent / "_sdk" / "include"
    command = ["g++", "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{include}", str(source), "-o"]
    begin = time.perf_counter()
    subprocess.run([*command, str(library)], check=True)
    return time.perf_counter() - begin


def compare(runs: int) -> list[Comparison]:
    """Time both sides in turn, ours always in a new process with an empty store."""
    ours, base = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch) / "root"
            result = subprocess.run(
                [sys.executable, __file__, "--child", str(root)],
                cwd=HERE,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            ours.append(float(json.loads(result.stdout)))
            base.append(_base(root, Path(scratch) / "base.so"))
    return [
        Comparison(
            "9",
            "cold compile, one kernel, to READY",
            statistics.median(ours),
            "g++ -O2 -shared of it",
            statistics.median(base),
            runs,
            3.0,
        )
    ]


def main() -> None:
    """Run as a script."""
    options = parser(__doc__, RUNS)
    options.add_argument("--child", type=Path, help="internal: one cold compile")
    chosen = options.parse_args()
    if chosen.child is not None:
        child(chosen.child)
        return
    report(compare(chosen.runs), chosen)


if __name__ == "__main__":
    main()
