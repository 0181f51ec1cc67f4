"""The environment that tools get: a process's own, or one that is declared.

What a user's shell happens to say (PATH, LD_LIBRARY_PATH, CPATH, ...) decides which compiler is
found and what it makes. Whoever ships compiled kernels wants the same answer in the build that
made them and in every program that uses them, whoever starts it: both say where tools are, and
then nothing else that may change them is handed on.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from pypto_toolchains.environment import EnvironmentRegistry
from pypto_toolchains.identity import described_toolchain

TOOL_PATH_VARIABLE = "PYPTO_TOOL_PATH"

# These change what this very process does, so that no declaration about tools can undo them.
_OF_THE_PROCESS = frozenset({"LD_AUDIT", "LD_PRELOAD", "PYTHONHOME", "PYTHONOPTIMIZE"})


def environment_of_tools(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment that tools are searched with, identified under and started in.

    Without ``PYPTO_TOOL_PATH`` it is `environ`. With it, the value is their ``PATH``, and no
    other variable that may change what a tool produces is left. Raises ValueError for a value
    that is not a list of absolute directories: it would mean another thing in each directory.

    With a hermetic toolchain, what is left is known to change nothing, or to select a tool, which
    its policy refuses. Raises ValueError as `described_toolchain` does.
    """
    if described_toolchain(environ) is not None:
        harmless = _harmless()
        return {name: value for name, value in environ.items() if name in harmless}
    declared = environ.get(TOOL_PATH_VARIABLE)
    if declared is None:
        return environ
    for entry in declared.split(":"):
        if not entry.startswith("/"):
            raise ValueError(
                f"{TOOL_PATH_VARIABLE}={declared!r} must be a list of absolute directories, "
                f"and {entry!r} is none; correct it or unset it"
            )
    dropped = _dropped()
    kept = {name: value for name, value in environ.items() if name not in dropped}
    return {**kept, "PATH": declared}


@functools.cache
def _dropped() -> frozenset[str]:
    return frozenset(EnvironmentRegistry.load().semantic) - _OF_THE_PROCESS


@functools.cache
def _harmless() -> frozenset[str]:
    registry = EnvironmentRegistry.load()
    return frozenset(registry.classes) - frozenset(registry.semantic)
