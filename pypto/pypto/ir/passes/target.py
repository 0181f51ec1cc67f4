"""What the passes have to know of the chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pypto.backend import LIMITS, BackendType
from pypto.ir.nodes import MemorySpace


@dataclass(frozen=True, slots=True)
class TargetLimits:
    """An architecture and the bytes that each on-chip memory space of a core has.

    ``row_bytes`` is the length of a row from which on transfers run at full speed.
    """

    arch: str
    capacity: Mapping[MemorySpace, int]
    row_bytes: int


def limits_of(backend: BackendType) -> TargetLimits:
    """The limits of an architecture."""
    limits = LIMITS[backend]
    capacity = {
        MemorySpace.Vec: limits.vec_bytes,
        MemorySpace.Mat: limits.mat_bytes,
        MemorySpace.Left: limits.left_bytes,
        MemorySpace.Right: limits.right_bytes,
        MemorySpace.Acc: limits.acc_bytes,
        MemorySpace.Bias: limits.bias_bytes,
    }
    return TargetLimits(backend.arch, MappingProxyType(capacity), limits.row_bytes)
