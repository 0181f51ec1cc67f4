"""Text of kernels and orchestration; nothing here runs a tool or touches a file."""

from __future__ import annotations

from pypto.codegen.pto_text import without_locations
from pypto.codegen.sources import (
    ENTRY_SYMBOL,
    ExternSource,
    GeneratedSources,
    KernelSource,
    generate,
)

__all__ = [
    "ENTRY_SYMBOL",
    "ExternSource",
    "GeneratedSources",
    "KernelSource",
    "generate",
    "without_locations",
]
