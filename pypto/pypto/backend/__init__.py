"""What a program is compiled for: architecture, execution mode, runtime and on-chip limits."""

from __future__ import annotations

from pypto.backend.limits import LIMITS, OnChipLimits
from pypto.backend.target import (
    DEFAULT_RUNTIME,
    PLATFORMS,
    BackendType,
    ExecutionMode,
    RuntimeKind,
    Target,
    target_for,
    target_of,
)

__all__ = [
    "DEFAULT_RUNTIME",
    "LIMITS",
    "PLATFORMS",
    "BackendType",
    "ExecutionMode",
    "OnChipLimits",
    "RuntimeKind",
    "Target",
    "target_for",
    "target_of",
]
