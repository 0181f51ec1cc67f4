"""Points a process at the kernel cache that its build made for it.

By environment variables, and so that the processes it starts use the cache as well. What pypto
reads them for is in docs/reference/configuration.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping

# Who sets one of these has decided what cache there is and which tools fill it.
DECIDING = (
    "PYPTO_CACHE",
    "PYPTO_CACHE_DIR",
    "PYPTO_CACHE_IDENTITY",
    "PYPTO_CACHE_READONLY",
    "PYPTO_TOOLCHAIN",
    "PYPTO_TOOL_PATH",
)


def use(
    directory: str,
    *,
    values: Mapping[str, str],
    paths: Mapping[str, str],
    environ: MutableMapping[str, str],
) -> bool:
    """Set the variables of a cache in `environ`, all or none; whether they are set now.

    `paths` are relative to `directory`. If the environment decides about caches in any way, it is
    left as it is: whoever starts a program has the last word. Call this before the first request.
    """
    if any(name in environ for name in DECIDING):
        return False
    environ.update(values)
    for name, path in paths.items():
        # In words alone: in runfiles a link may lead out of the tree that ".." is meant in.
        environ[name] = os.path.normpath(f"{directory}/{path}")
    return True
