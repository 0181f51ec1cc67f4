"""A test that is itself started with the cache: its first request is answered from it."""

from __future__ import annotations

import os
import sys

import pypto
from serving_kernels import normalise


def main() -> int:
    """Ask for a kernel; 0 if it was ready."""
    assert os.path.basename(sys.argv[0]) == os.path.basename(__file__), "no launcher is left"
    assert sys.argv[1:] == ["one argument", "--another"]
    normalise.warmup()
    stats = pypto.cache_stats()
    assert stats.ready_hits == 1, stats
    assert stats.binary_builds == 0, stats
    return 0


if __name__ == "__main__":
    sys.exit(main())
