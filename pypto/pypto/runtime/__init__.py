"""Running compiled programs: configuration, artifacts, workers."""

from __future__ import annotations

from pypto.runtime.options import CompileOptions, DfxOptions
from pypto.runtime.run_config import RunConfig

__all__ = ["CompileOptions", "DfxOptions", "RunConfig"]
