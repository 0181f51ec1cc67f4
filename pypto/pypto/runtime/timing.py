"""Timing the runs of an artifact."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.run_config import RunConfig


@dataclass(frozen=True, slots=True)
class BenchmarkStats:
    """Wall-clock times of single runs in nanoseconds, in the order they were made."""

    times_ns: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.times_ns:
            raise ValueError("a benchmark has at least one round")

    @property
    def rounds(self) -> int:
        """How many runs were timed."""
        return len(self.times_ns)

    @property
    def min_ns(self) -> int:
        """The fastest run."""
        return min(self.times_ns)

    @property
    def max_ns(self) -> int:
        """The slowest run."""
        return max(self.times_ns)

    @property
    def mean_ns(self) -> float:
        """The arithmetic mean."""
        return math.fsum(self.times_ns) / len(self.times_ns)

    @property
    def median_ns(self) -> float:
        """The value with as many runs below as above."""
        ordered = sorted(self.times_ns)
        middle = len(ordered) // 2
        if len(ordered) % 2:
            return float(ordered[middle])
        return (ordered[middle - 1] + ordered[middle]) / 2


def benchmark(
    compiled: CompiledProgram,
    args: Sequence[Any],
    *,
    rounds: int = 100,
    warmup: int = 1,
    config: RunConfig | None = None,
) -> BenchmarkStats:
    """Run ``compiled`` in place ``warmup`` times and then ``rounds`` times under the clock.

    Building and loading are over before the first run that counts. ValueError unless ``rounds``
    is positive and ``warmup`` not negative.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, got {rounds}")
    if warmup < 0:
        raise ValueError(f"warmup must not be negative, got {warmup}")
    call = compiled.dispatcher_for(config)
    arguments = tuple(args)
    for _ in range(warmup):
        call(arguments)
    times = []
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        call(arguments)
        times.append(time.perf_counter_ns() - begin)
    return BenchmarkStats(tuple(times))
