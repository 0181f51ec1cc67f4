"""Which of the SDK's CPU levels this machine's processor supports.

A level is named, never "native", so that a binary says what it needs and runs on every machine
that has it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

BASE_LEVELS: Mapping[str, str] = MappingProxyType(
    {"x86_64": "x86-64", "aarch64": "armv8-a", "arm64": "armv8-a"}
)

_V3 = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
# Best first; the flags as /proc/cpuinfo spells them, which it lists only if the kernel enabled
# them.
_X86_LEVELS: tuple[tuple[str, frozenset[str]], ...] = (("x86-64-v4", _V4), ("x86-64-v3", _V3))

_FIRST_PROCESSOR_BYTES = 8192


def best_level(machine: str, flags: Iterable[str]) -> str:
    """The highest level of a processor; ValueError for a machine that has none."""
    base = BASE_LEVELS.get(machine)
    if base is None:
        raise ValueError(
            f"no CPU level for machine {machine!r}: expected {', '.join(sorted(BASE_LEVELS))}"
        )
    present = frozenset(flags)
    if base == "x86-64":
        for level, needed in _X86_LEVELS:
            if needed <= present:
                return level
    return base


def compiles_for(level: str, machine: str) -> bool:
    """Whether host compilers of a machine (as uname has it) make binaries of a level.

    They do for every level of its architecture, whatever its processor can run.
    """
    base = BASE_LEVELS.get(machine)
    return base is not None and (level == base or level.startswith(f"{base}-"))


def levels_up_to(level: str) -> tuple[str, ...]:
    """The levels whose binaries a processor of `level` runs, best first."""
    above_base = [name for name, _ in _X86_LEVELS]
    if level not in above_base:
        return (level,)
    return (*above_base[above_base.index(level) :], BASE_LEVELS["x86_64"])


def host_level() -> str:
    """The highest level of the processor that runs this process."""
    return _native_level() or best_level(os.uname().machine, cpu_flags())


def _native_level() -> str | None:
    # Asking the processor takes a thousandth of what the kernel takes to write its file.
    try:
        from pypto._native import x86_level
    except ImportError:
        return None
    return x86_level()


def cpu_flags() -> frozenset[str]:
    """The features of the processors as the kernel spells those it enabled."""
    # One processor's entry is enough: Linux enables features for all of them alike.
    try:
        with Path("/proc/cpuinfo").open("rb", buffering=0) as file:
            head = file.read(_FIRST_PROCESSOR_BYTES)
    except OSError:
        return frozenset()
    for line in head.split(b"\n"):
        if line.startswith((b"flags", b"Features")):
            return frozenset(line.partition(b":")[2].decode("ascii", "replace").split())
    return frozenset()
