"""Running a build directory again after its files were edited.

``replay`` is a module that can be called and run; see `pypto.runtime.debug.replay`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.runtime.debug.edited import invalidate_binary_cache, rebuild_kernel_cpp_from_pto

__all__ = ["invalidate_binary_cache", "rebuild_kernel_cpp_from_pto"]


# Every compile imports this package for the script that it writes, and needs nothing else of it.
def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("pypto.runtime.debug.edited"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
