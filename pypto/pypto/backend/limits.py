"""Bytes of on-chip memory a core has, by architecture.

The simulated chip's own table in the SDK must agree; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pypto.backend.target import BackendType

_KIB = 1024


@dataclass(frozen=True, slots=True)
class OnChipLimits:
    """Sizes in bytes of the regions that tiles live in, one field a memory space.

    ``row_bytes`` is the length of a row from which on a transfer to or from global memory runs
    at full speed.
    """

    vec_bytes: int
    mat_bytes: int
    left_bytes: int
    right_bytes: int
    acc_bytes: int
    bias_bytes: int
    row_bytes: int


LIMITS: Mapping[BackendType, OnChipLimits] = MappingProxyType(
    {
        BackendType.Ascend910B: OnChipLimits(
            vec_bytes=192 * _KIB,
            mat_bytes=512 * _KIB,
            left_bytes=64 * _KIB,
            right_bytes=64 * _KIB,
            acc_bytes=128 * _KIB,
            bias_bytes=1 * _KIB,
            row_bytes=512,
        ),
        BackendType.Ascend950: OnChipLimits(
            vec_bytes=256 * _KIB,
            mat_bytes=512 * _KIB,
            left_bytes=64 * _KIB,
            right_bytes=64 * _KIB,
            acc_bytes=256 * _KIB,
            bias_bytes=4 * _KIB,
            row_bytes=128,
        ),
    }
)
