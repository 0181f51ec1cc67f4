"""A serving program whose kernels the build has compiled: it answers a request, and says how.

As Bazel's target it finds all kernels ready and compiles nothing. As a plain program it works as
well, and compiles them first.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import pypto
import torch
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import RunConfig
from serving_kernels import ROWS, WIDTH, gate, normalise, project

CONFIG = RunConfig(arch=BackendType.Ascend910B, execution_mode=ExecutionMode.SIM)
COUNTERS = (
    "requests",
    "ready_hits",
    "generated_hits",
    "misses",
    "bypasses",
    "last_bypass_reason",
    "storage_errors",
    "invalid_entries",
    "generation_builds",
    "binary_builds",
)


def serve(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The answer to one request: softmax(x) @ weights, gated by softmax(x)."""
    attention, projected, answer = (torch.empty(ROWS, WIDTH) for _ in range(3))
    normalise(x, attention, config=CONFIG)
    project(attention, weights, projected, config=CONFIG)
    gate(attention, projected, answer, config=CONFIG)
    return answer


def main() -> None:
    """Serve one request, and print what the cache did for it."""
    started: list[str] = []
    sys.addaudithook(
        lambda event, detail: (
            started.append(str(detail[0]))
            if event in {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"}
            else None
        )
    )
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(ROWS, WIDTH, generator=generator)
    weights = torch.randn(WIDTH, WIDTH, generator=generator)
    attention = torch.softmax(x, dim=1)
    torch.testing.assert_close(
        serve(x, weights), attention * (attention @ weights), rtol=1e-4, atol=1e-4
    )
    stats = asdict(pypto.cache_stats())
    report = {name: stats[name] for name in COUNTERS} | {"programs_started": started}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
