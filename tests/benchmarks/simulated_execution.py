"""Running a kernel on the simulated chip, beside torch on one thread (row 10).

Each kernel is one task, so that one core computes as one thread of torch does. Both sides write
into a tensor that exists, and the results are compared before anything is timed. Every call is
timed by itself: one that other programs interrupt would spoil an average, but not a median.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pypto
import torch
from execution_kernels import COLS, ROWS, SIDE, fused, matmul, softmax
from measure import Comparison, interleave, parser, report, timed

RUNS = 75


def _torch_softmax(x: torch.Tensor, out: torch.Tensor) -> None:
    torch.softmax(x, dim=1, out=out)


def _torch_matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    torch.matmul(a, b, out=out)


def _torch_fused(x: torch.Tensor, gate: torch.Tensor, out: torch.Tensor) -> None:
    torch.mul(torch.nn.functional.silu(x), gate, out=out)


_CASES: tuple[tuple[str, Callable[..., object], Callable[..., None], tuple[int, int], int], ...] = (
    # what, ours, torch's, the shape of every tensor, inputs
    (f"softmax {ROWS}x{COLS}", softmax, _torch_softmax, (ROWS, COLS), 1),
    (f"matmul {SIDE}", matmul, _torch_matmul, (SIDE, SIDE), 2),
    (f"silu(x) * gate {ROWS}x{COLS}", fused, _torch_fused, (ROWS, COLS), 2),
)


def compare(runs: int) -> list[Comparison]:
    """Time each kernel's call and torch's in turn."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(10)
    done = []
    try:
        with tempfile.TemporaryDirectory() as scratch:
            pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path(scratch) / "root"))
            for what, kernel, base, shape, inputs in _CASES:
                given = [torch.randn(shape, generator=generator) for _ in range(inputs)]
                ours_out, base_out = torch.zeros(shape), torch.zeros(shape)
                ours = (kernel, (*given, ours_out))
                theirs = (base, (*given, base_out))
                for function, arguments in (ours, theirs):
                    function(*arguments)
                torch.testing.assert_close(ours_out, base_out, rtol=1e-4, atol=1e-4)
                ours_s, base_s = interleave(
                    lambda side=ours: timed(lambda: side[0](*side[1])),
                    lambda side=theirs: timed(lambda: side[0](*side[1])),
                    runs,
                )
                done.append(Comparison("10", what, ours_s, "torch, one thread", base_s, runs, 4.0))
    finally:
        pypto.configure_cache(None)
        torch.set_num_threads(threads)
    return done


if __name__ == "__main__":
    chosen = parser(__doc__, RUNS).parse_args()
    report(compare(chosen.runs), chosen)
