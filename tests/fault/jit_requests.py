"""Requests for one kernel, each as if it were the first one of its process."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pypto

_KERNELS = """
import pypto.language as pl


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64])
        out = pl.store(pl.mul(tile, 2.0), [0, 0], out)
    return out
"""


class Requests:
    """Asks through a new module each time, so that no compiled object is live."""

    def __init__(self, top: Path) -> None:
        self._module = top / "fault_kernels.py"
        self._module.write_text(_KERNELS)

    def ask(self, root: Path, how: str, **policy: Any) -> tuple[Any, dict[str, Any]]:
        """What `compile` or `warmup` gives, and what it added to the counters.

        `policy`: further fields of the CacheConfig.
        """
        spec = importlib.util.spec_from_file_location("fault_kernels", self._module)
        module = importlib.util.module_from_spec(spec)
        sys.modules["fault_kernels"] = module
        spec.loader.exec_module(module)
        before = asdict(pypto.cache_stats())
        pypto.configure_cache(pypto.CacheConfig(enabled=True, root=root, **policy))
        try:
            compiled = getattr(module.kernel, how)()
        finally:
            pypto.configure_cache(None)
        after = asdict(pypto.cache_stats())
        del before["last_bypass_reason"], before["last_remote_error"]
        return compiled, {name: after[name] - value for name, value in before.items()}
