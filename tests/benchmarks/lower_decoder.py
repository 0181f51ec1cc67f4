"""Row 12: lowering a decoder of 32 layers, each of which is spliced in on its own.

    python tests/benchmarks/lower_decoder.py

Ours is parsing and every pass for 32 layers, of inline functions of several modules; the base is 32
times the same for one. A ratio above one is what grows faster than the program. Nothing is
generated, assembled or run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pypto.language as pl
from measure import Comparison, interleave, parser, report, timed

# The layer is that of the tests of whole programs.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e" / "programs"))

from decoder.layer import layer
from decoder.sizes import BATCH, HEAD, HIDDEN, INTER, KV_HIDDEN, MAX_TOKENS

RUNS = 3
LAYERS = 32
CACHE = BATCH * MAX_TOKENS


def decoder(layers: int) -> Any:
    """A kernel of so many layers, whose weights lie one below the other."""

    @pl.jit
    def decode(
        x: pl.Tensor[[BATCH, HIDDEN], pl.FP32],
        attention_gamma: pl.Tensor[[layers, HIDDEN], pl.FP32],
        q_weight: pl.Tensor[[layers * HIDDEN, HIDDEN], pl.BF16],
        k_weight: pl.Tensor[[layers * HIDDEN, KV_HIDDEN], pl.BF16],
        v_weight: pl.Tensor[[layers * HIDDEN, KV_HIDDEN], pl.BF16],
        o_weight: pl.Tensor[[layers * HIDDEN, HIDDEN], pl.BF16],
        ffn_gamma: pl.Tensor[[layers, HIDDEN], pl.FP32],
        gate_weight: pl.Tensor[[layers * HIDDEN, INTER], pl.BF16],
        up_weight: pl.Tensor[[layers * HIDDEN, INTER], pl.BF16],
        down_weight: pl.Tensor[[layers * INTER, HIDDEN], pl.BF16],
        cos: pl.Tensor[[BATCH, HEAD // 2], pl.FP32],
        sin: pl.Tensor[[BATCH, HEAD // 2], pl.FP32],
        positions: pl.Tensor[[BATCH], pl.INT32],
        k_cache: pl.Tensor[[layers * CACHE, KV_HIDDEN], pl.BF16],
        v_cache: pl.Tensor[[layers * CACHE, KV_HIDDEN], pl.BF16],
        out: pl.Out[pl.Tensor[[BATCH, HIDDEN], pl.FP32]],
    ):
        states = pl.create_tensor([(layers + 1) * BATCH, HIDDEN], dtype=pl.FP32)
        states[0:BATCH, :] = x
        for n in pl.unroll(layers):
            layer(
                states[n * BATCH : (n + 1) * BATCH, :],
                attention_gamma[n : n + 1, :],
                q_weight[n * HIDDEN : (n + 1) * HIDDEN, :],
                k_weight[n * HIDDEN : (n + 1) * HIDDEN, :],
                v_weight[n * HIDDEN : (n + 1) * HIDDEN, :],
                o_weight[n * HIDDEN : (n + 1) * HIDDEN, :],
                ffn_gamma[n : n + 1, :],
                gate_weight[n * HIDDEN : (n + 1) * HIDDEN, :],
                up_weight[n * HIDDEN : (n + 1) * HIDDEN, :],
                down_weight[n * INTER : (n + 1) * INTER, :],
                cos,
                sin,
                positions,
                k_cache[n * CACHE : (n + 1) * CACHE, :],
                v_cache[n * CACHE : (n + 1) * CACHE, :],
                states[(n + 1) * BATCH : (n + 2) * BATCH, :],
            )
        out[:, :] = states[layers * BATCH : (layers + 1) * BATCH, :]
        return out

    return decode


def compare(runs: int) -> list[Comparison]:
    """Lower both `runs` times."""
    many, one = decoder(LAYERS), decoder(1)
    ours, base = interleave(lambda: timed(many.lower), lambda: LAYERS * timed(one.lower), runs)
    what = f"{len(many.lower().functions)} kernels of {LAYERS} layers"
    return [Comparison("12", what, ours, f"{LAYERS} x one layer", base, runs, 2.0)]


def main() -> None:
    """Run as a script."""
    options = parser(__doc__, RUNS).parse_args()
    report(compare(options.runs), options)


if __name__ == "__main__":
    main()
