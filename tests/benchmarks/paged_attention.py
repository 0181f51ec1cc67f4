"""Row 13: attention over a paged cache of 4 sequences of 8,192 tokens.

    python tests/benchmarks/paged_attention.py

Ours is a call of the documentation's example on the simulated chip, compiled before: 16 heads of 64
in bf16, pages of 64 tokens, four tasks a page. The base is the same by torch on one thread. The
result is compared with torch's in every run, and a difference ends it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pypto
import torch
from measure import Comparison, interleave, parser, report, timed
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import RunConfig

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

from examples.paged_attention import HEAD, HEADS, attention, inputs, paged_attention

RUNS = 3
LENGTHS = [8192] * 4


def compare(runs: int) -> list[Comparison]:
    """Call both `runs` times."""
    config = RunConfig(arch=BackendType.Ascend910B, execution_mode=ExecutionMode.SIM)
    arguments = inputs(LENGTHS)
    out = torch.empty(len(LENGTHS) * HEADS, HEAD)

    def ours() -> float:
        seconds = timed(lambda: paged_attention(*arguments, out, config=config))
        torch.testing.assert_close(out, attention(*arguments), rtol=1e-2, atol=1e-2)
        return seconds

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path(scratch) / "root"))
            paged_attention.warmup(*arguments, out, config=config)
            seconds, base = interleave(ours, lambda: timed(lambda: attention(*arguments)), runs)
    finally:
        pypto.configure_cache(None)
        torch.set_num_threads(threads)
    return [
        Comparison(
            "13", "4 sequences of 8,192 tokens", seconds, "torch, one thread", base, runs, 5.0
        )
    ]


def main() -> None:
    """Run as a script."""
    options = parser(__doc__, RUNS).parse_args()
    report(compare(options.runs), options)


if __name__ == "__main__":
    main()
