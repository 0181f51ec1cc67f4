"""pypto: tile kernels, compiled just in time into content-addressed artifacts."""

from __future__ import annotations

from pypto.jit.session import cache_stats, configure_cache
from pypto.jit.statistics import CacheStats
from pypto_store import CacheConfig

__version__ = "0.1.0"

__all__ = ["CacheConfig", "CacheStats", "__version__", "cache_stats", "configure_cache"]
