"""Just-in-time kernels: decorators, and the resolution of a request to an artifact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction, jit
    from pypto.jit.statistics import CacheStats

__all__ = ["CacheStats", "JITFunction", "jit"]

# Loaded at first use: `python -m pypto.jit stat` needs no compiler.
_PLACES = {
    "CacheStats": "pypto.jit.statistics",
    "JITFunction": "pypto.jit.decorator",
    "jit": "pypto.jit.decorator",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(place), name)
    globals()[name] = value
    return value
