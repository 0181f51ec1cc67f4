"""What all kernels of a process share: counters, policy, toolchain, and the resolver over them."""

from __future__ import annotations

import time

from pypto.jit.module_text import ModuleTexts
from pypto.jit.policy import PolicyLevels
from pypto.jit.remembered import TextMemory
from pypto.jit.resolve import Resolver
from pypto.jit.statistics import CacheStats, Statistics
from pypto.jit.toolchain import Toolchain
from pypto_store import CacheConfig

STATISTICS = Statistics()
LEVELS = PolicyLevels()
TEXTS = ModuleTexts()
MEMORY = TextMemory()
TOOLCHAIN = Toolchain()
RESOLVER = Resolver(
    statistics=STATISTICS,
    levels=LEVELS,
    toolchain=TOOLCHAIN,
    clock=time.perf_counter_ns,
    memory=MEMORY,
)


def configure_cache(config: CacheConfig | None) -> None:
    """Set this process's cache policy; None lets the environment and the defaults decide again.

    It holds for requests made from now on: one that is under way keeps the policy it captured.
    Counters and files stay as they are.
    """
    LEVELS.configure(config)


def flush_remotes(timeout: float) -> bool:
    """Wait for uploads in the background; whether all are done.

    timeout: seconds, for each remote. A process that ends in the usual way waits by itself.
    """
    return RESOLVER.flush_remotes(timeout)


def cache_stats() -> CacheStats:
    """The counters of this process as they are now; reads no disk and resets nothing."""
    return STATISTICS.snapshot()
