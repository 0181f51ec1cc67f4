"""A call of a live kernel with three tensors, over its bound call (row 6).

The bound call is what the native layer does for the same tensors: submit, run, wait. What ours
adds is everything Python does before it: binding, guards, policy, the choice of the object, the
checks. The ratio compares that overhead with 5 microseconds.

Both sides run on one chip and wake its cores, so another process on the machine shows tenfold in a
call of a few microseconds: each side counts by its least disturbed batch of calls, not by the
median.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pypto
import torch
from measure import Comparison, parser, report, timed
from pypto.ir.dtypes import FP32
from pypto.runtime.chips import shared_chip
from pypto.runtime.options import RunOptions
from sample_kernels import add

RUNS = 30


def compare(runs: int) -> list[Comparison]:
    """Time the whole call and the bound call in turn; report the difference."""
    # Long batches: what a switch of sides costs is no part of a call.
    calls = 2000
    with tempfile.TemporaryDirectory() as scratch:
        pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path(scratch) / "root"))
        a, b, out = torch.ones(64, 64), torch.ones(64, 64), torch.empty(64, 64)
        add(a, b, out)
        compiled = add.compile(a, b, out)
        chip = shared_chip(RunOptions(platform="a2a3sim"))
        single = (out.nbytes, tuple(out.shape), FP32.code())
        bound = compiled.chip_callable.bind(chip, [single] * 3)
        addresses = (a.data_ptr(), b.data_ptr(), out.data_ptr())
        whole, bare = [], []
        for _ in range(runs):
            bare.append(timed(lambda: bound(*addresses), calls))
            whole.append(timed(lambda: add(a, b, out), calls))
        pypto.configure_cache(None)
    ours_s, base_s = min(whole), min(bare)
    return [
        Comparison("6", "live call over the bound call", ours_s - base_s, "5 us", 5e-6, runs, 1.0),
        Comparison(
            "6",
            "live call in all",
            ours_s,
            "bound call",
            base_s,
            runs,
            1.5,
        ),
    ]


if __name__ == "__main__":
    chosen = parser(__doc__, RUNS).parse_args()
    report(compare(chosen.runs), chosen)
