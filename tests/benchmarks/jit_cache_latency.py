"""First READY hits in fresh processes, beside the floor of a validating cache.

Every measured child asks a filled store for two kernels. It has to report a READY hit for each,
with no build and no bypass; the interval begins before the first request, so it holds the first
capture of the toolchain's identity, and ends when the kernel's libraries are loaded and it can be
called. Start-up of the interpreter, imports, tensors and execution are outside it. The second
kernel's interval is the next hit; its target is half of what Triton takes for its own hit, which
validates nothing, and that is 2.5 times the floor of a repeated hit on the same machine.

    python tests/benchmarks/jit_cache_latency.py --cache-root ROOT --runs 5 --output latency.json
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Comparison, parser, report

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
HERE = Path(__file__).resolve().parent


def child(root: Path) -> None:
    """One process: two requests, timed; prints JSON."""
    import pypto
    import torch
    from pypto.backend import BackendType, ExecutionMode
    from pypto.runtime import RunConfig
    from sample_kernels import add, scale

    config = RunConfig(
        arch=BackendType.Ascend910B,
        execution_mode=ExecutionMode.SIM,
        cache_config=pypto.CacheConfig(enabled=True, root=root),
    )
    a, out = torch.ones(64, 64), torch.empty(64, 64)
    begin = time.perf_counter()
    add.warmup(a, a, out, config=config).load()
    first = time.perf_counter()
    scale.warmup(a, 2.0, out, config=config).load()
    second = time.perf_counter()
    stats = pypto.cache_stats()
    add(a, a, out, config=config)
    if not bool((out == 2).all()):
        raise SystemExit("the kernel gave a wrong result")
    sys.stdout.write(
        json.dumps(
            {
                "first_s": first - begin,
                "next_s": second - first,
                "ready_hits": stats.ready_hits,
                "builds": stats.generation_builds + stats.binary_builds,
                "bypasses": stats.bypasses,
                "reason": stats.last_bypass_reason,
            }
        )
        + "\n"
    )


@functools.cache
def _environ() -> dict[str, str]:
    """The children's: their modules are compiled once, as those of an installation are."""
    bytecode = tempfile.mkdtemp(prefix="bytecode-")
    atexit.register(shutil.rmtree, bytecode, ignore_errors=True)
    inherited = {name: os.environ[name] for name in os.environ if name != _NO_BYTECODE}
    return {**inherited, "PYTHONPYCACHEPREFIX": bytecode}


def _run(*arguments: str) -> dict[str, float]:
    # A directory of its own: private builds go to the working directory's build_output.
    with tempfile.TemporaryDirectory() as cwd:
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env=_environ(),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return dict(json.loads(result.stdout))


def measured(root: Path) -> dict[str, float]:
    """One child that has to be served from the store alone."""
    row = _run(__file__, "--child", str(root))
    if row["ready_hits"] != 2 or row["builds"] or row["bypasses"]:
        raise SystemExit(f"a measured process was not served from the store: {row}")
    return row


def compare(root: Path, runs: int) -> list[Comparison]:
    """Fill the store, then measure both sides in turn."""
    _run(__file__, "--child", str(root))
    with tempfile.TemporaryDirectory() as scratch:
        entry = f"{scratch}/entry"
        subprocess.run([sys.executable, str(HERE / "floor.py"), "make", entry], check=True)
        ours, base = [], []
        for _ in range(runs):
            base.append(_run(str(HERE / "floor.py"), "hit", entry))
            ours.append(measured(root))

    def middle(side: list[dict[str, float]], name: str) -> float:
        return statistics.median(row[name] for row in side)

    return [
        Comparison(
            "1",
            "first READY hit, new process",
            middle(ours, "first_s"),
            "floor, first hit",
            middle(base, "first_s"),
            runs,
            5.0,
        ),
        Comparison(
            "3",
            "next kernel's READY hit",
            middle(ours, "next_s"),
            "floor, repeated hit",
            middle(base, "repeat_s"),
            runs,
            2.5,
        ),
    ]


def rows(runs: int) -> list[Comparison]:
    """Rows 1 and 3, with a store of their own."""
    with tempfile.TemporaryDirectory() as scratch:
        return compare(Path(scratch) / "root", runs)


RUNS = 9


def main() -> None:
    """Run as a script."""
    options = parser(__doc__, RUNS)
    options.add_argument("--cache-root", type=Path, help="a store to fill and to read")
    options.add_argument("--child", type=Path, help="internal: one measured process")
    chosen = options.parse_args()
    if chosen.child is not None:
        child(chosen.child)
        return
    if chosen.cache_root is not None:
        report(compare(chosen.cache_root.resolve(), chosen.runs), chosen)
        return
    report(rows(chosen.runs), chosen)


if __name__ == "__main__":
    main()
