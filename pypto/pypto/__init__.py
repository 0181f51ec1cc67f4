"""pypto: tile kernels, compiled just in time into content-addressed artifacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.jit.session import cache_stats, configure_cache
    from pypto.jit.statistics import CacheStats
    from pypto_store import CacheConfig, RemoteConfig, TlsConfig

__version__ = "0.1.0"

__all__ = [
    "CacheConfig",
    "CacheStats",
    "RemoteConfig",
    "TlsConfig",
    "__version__",
    "cache_stats",
    "configure_cache",
]

# Loaded at first use: a tool that reads a cache root needs no compiler.
_PLACES = {
    "CacheConfig": "pypto_store",
    "CacheStats": "pypto.jit.statistics",
    "RemoteConfig": "pypto_store",
    "TlsConfig": "pypto_store",
    "cache_stats": "pypto.jit.session",
    "configure_cache": "pypto.jit.session",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(place), name)
    globals()[name] = value
    return value
