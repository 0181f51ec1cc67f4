"""Compile two kernels once, then use them from a second process without compiling anything.

The first process compiles a softmax and a matmul for the simulated chip with the persistent cache
on, runs them on torch tensors and compares the results with torch. It then starts a fresh process
that asks for the same kernels and has to find complete binaries: no build, no other program run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pypto
import pypto.language as pl
import torch
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import RunConfig

ROWS, COLS, BAND = 96, 128, 16
M, K, N = 64, 256, 64
K_STEP = 64


@pl.jit
def softmax(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    """Row-wise softmax, a band of rows at a time."""
    for row in pl.range(0, ROWS, BAND):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="softmax_band"):
            band = pl.load(x, [row, 0], [BAND, COLS])
            scratch = pl.create_tile([BAND, COLS], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            shifted = pl.row_expand_sub(band, pl.row_max(band, scratch))
            weights = pl.exp(shifted)
            total = pl.row_sum(weights, scratch)
            out = pl.store(pl.row_expand_div(weights, total), [row, 0], out)
    return out


@pl.jit
def matmul(
    a: pl.Tensor[[M, K], pl.FP32],
    b: pl.Tensor[[K, N], pl.FP32],
    out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    """A matrix product, accumulated over slices of the inner dimension."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="matmul_block"):
        left = pl.load(a, [0, 0], [M, K_STEP], target_memory=pl.Mem.Mat)
        right = pl.load(b, [0, 0], [K_STEP, N], target_memory=pl.Mem.Mat)
        total = pl.matmul(left, right)
        for k in pl.range(K_STEP, K, K_STEP):
            left = pl.load(a, [0, k], [M, K_STEP], target_memory=pl.Mem.Mat)
            right = pl.load(b, [k, 0], [K_STEP, N], target_memory=pl.Mem.Mat)
            total = pl.matmul_acc(total, left, right)
        out = pl.store(total, [0, 0], out)
    return out


@dataclass(frozen=True)
class Report:
    """What one process saw: time to a ready kernel by name, counters, keys, programs started."""

    milliseconds: dict[str, float]
    counters: dict[str, int]
    keys: dict[str, str]
    programs_started: list[str]


def run_kernels() -> Report:
    """Get both kernels ready, run them, compare with torch."""
    started: list[str] = []
    sys.addaudithook(
        lambda event, detail: (
            started.append(str(detail[0]))
            if event in {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"}
            else None
        )
    )
    config = RunConfig(arch=BackendType.Ascend910B, execution_mode=ExecutionMode.SIM)
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(ROWS, COLS, generator=generator)
    a = torch.randn(M, K, generator=generator)
    b = torch.randn(K, N, generator=generator)
    milliseconds: dict[str, float] = {}
    keys: dict[str, str] = {}
    for kernel, inputs, expected in (
        (softmax, (x,), torch.softmax(x, dim=1)),
        (matmul, (a, b), a @ b),
    ):
        out = torch.empty_like(expected)
        begin = time.perf_counter()
        prepared = kernel.warmup(*inputs, out, config=config)
        milliseconds[kernel.__name__] = (time.perf_counter() - begin) * 1e3
        keys[kernel.__name__] = prepared.artifact_key or "private"
        kernel(*inputs, out, config=config)
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)
    stats = asdict(pypto.cache_stats())
    if stats["last_bypass_reason"] is not None:
        raise SystemExit(f"the cache was not used: {stats['last_bypass_reason']}")
    names = ("requests", "ready_hits", "misses", "generation_builds", "binary_builds")
    return Report(milliseconds, {name: stats[name] for name in names}, keys, started)


def second_process(root: Path, work: Path) -> Report:
    """Run this file again in a fresh interpreter, on the store that the first process filled."""
    result = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--child", str(root)],
        cwd=work,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if result.returncode:
        raise SystemExit(f"the second process failed with status {result.returncode}")
    return Report(**json.loads(result.stdout.splitlines()[-1]))


def check_second(first: Report, second: Report) -> None:
    """Stop with a message unless the second process was served from the store alone."""
    if second.keys != first.keys:
        raise SystemExit(f"the two processes disagree on the keys: {first.keys} {second.keys}")
    counters = second.counters
    builds = counters["generation_builds"] + counters["binary_builds"]
    if counters["ready_hits"] != len(second.keys) or builds or second.programs_started:
        raise SystemExit(f"the second process was not served from the store: {second}")


def print_table(first: Report, second: Report) -> None:
    """A row a kernel, then the counters of both processes."""
    print(f"{'kernel':<10}{'cold ms':>10}{'READY ms':>10}{'ratio':>8}  key")
    for name, key in second.keys.items():
        cold, ready = first.milliseconds[name], second.milliseconds[name]
        print(f"{name:<10}{cold:>10.1f}{ready:>10.2f}{cold / ready:>7.0f}x  {key[:16]}…")
    print()
    print(f"{'counter':<20}{'first':>8}{'second':>8}")
    for name, value in first.counters.items():
        print(f"{name:<20}{value:>8}{second.counters[name]:>8}")
    begun = (len(first.programs_started), len(second.programs_started))
    print(f"{'programs started':<20}{begun[0]:>8}{begun[1]:>8}")


def main() -> None:
    """Run as the first process, or with ``--child ROOT`` as the second."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--child", type=Path, metavar="ROOT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        pypto.configure_cache(pypto.CacheConfig(enabled=True, root=options.child))
        print(json.dumps(asdict(run_kernels())))
        return
    with tempfile.TemporaryDirectory(prefix="pypto-quickstart-") as scratch:
        work = Path(scratch)
        os.chdir(work)
        root = work / "kernel-cache"
        pypto.configure_cache(pypto.CacheConfig(enabled=True, root=root))
        print("compiling softmax and matmul for a2a3sim …", flush=True)
        first = run_kernels()
        print("results agree with torch; asking for the same kernels in a fresh process …\n")
        second = second_process(root, work)
        check_second(first, second)
        print_table(first, second)


if __name__ == "__main__":
    main()
