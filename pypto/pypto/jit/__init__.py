"""Just-in-time kernels: decorators, and the resolution of a request to an artifact."""

from __future__ import annotations

from pypto.jit.decorator import JITFunction, jit
from pypto.jit.statistics import CacheStats

__all__ = ["CacheStats", "JITFunction", "jit"]
