"""The platform token and the two decisions packed into it.

=========  ============  ========
token      architecture  mode
=========  ============  ========
a2a3sim    Ascend910B    SIM
a2a3       Ascend910B    ONBOARD
a5sim      Ascend950     SIM
a5         Ascend950     ONBOARD
=========  ============  ========

Compilation reads the architecture alone, assembly the mode, a worker the whole token. Sidecars,
command lines and the SDK spell a target as its token; everything else holds a `Target`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


class BackendType(enum.Enum):
    """A chip architecture that code is generated for."""

    Ascend910B = "Ascend910B"
    Ascend950 = "Ascend950"

    @property
    def arch(self) -> str:
        """The architecture as platform tokens and ``.pto`` text spell it, such as ``"a2a3"``."""
        return _ARCH_TOKENS[self]


class ExecutionMode(enum.Enum):
    """Where binaries run: on the simulated chip of this process, or on a device."""

    SIM = "sim"
    ONBOARD = "onboard"


class RuntimeKind(enum.Enum):
    """How an orchestration function meets the scheduler.

    ``HOST_BUILD_GRAPH`` runs it to its end and then schedules the whole graph.
    ``TENSORMAP_AND_RINGBUFFER`` schedules while it runs, with bounded rings and back-pressure.
    """

    HOST_BUILD_GRAPH = "host_build_graph"
    TENSORMAP_AND_RINGBUFFER = "tensormap_and_ringbuffer"


DEFAULT_RUNTIME = RuntimeKind.TENSORMAP_AND_RINGBUFFER

_ARCH_TOKENS: Mapping[BackendType, str] = MappingProxyType(
    {BackendType.Ascend910B: "a2a3", BackendType.Ascend950: "a5"}
)
_MODE_SUFFIXES: Mapping[ExecutionMode, str] = MappingProxyType(
    {ExecutionMode.SIM: "sim", ExecutionMode.ONBOARD: ""}
)


@dataclass(frozen=True, slots=True)
class Target:
    """An architecture and an execution mode; ``token`` is their one-word spelling."""

    backend_type: BackendType
    mode: ExecutionMode

    @property
    def token(self) -> str:
        """The platform token, such as ``"a2a3sim"``."""
        return _TOKENS[self]


PLATFORMS: Mapping[str, Target] = MappingProxyType(
    {
        backend.arch + suffix: Target(backend, mode)
        for backend in BackendType
        for mode, suffix in _MODE_SUFFIXES.items()
    }
)
_TOKENS: Mapping[Target, str] = MappingProxyType(
    {target: token for token, target in PLATFORMS.items()}
)


def target_for(backend_type: BackendType, mode: ExecutionMode) -> Target:
    """The target of an architecture and a mode; TypeError unless both are enum members."""
    if not isinstance(backend_type, BackendType):
        names = ", ".join(f"BackendType.{member.name}" for member in BackendType)
        raise TypeError(f"arch must be one of {names}, got {backend_type!r}")
    if not isinstance(mode, ExecutionMode):
        names = ", ".join(f"ExecutionMode.{member.name}" for member in ExecutionMode)
        raise TypeError(f"execution_mode must be one of {names}, got {mode!r}")
    return Target(backend_type, mode)


def target_of(platform: str) -> Target:
    """The target that a platform token names; ValueError listing the tokens for any other."""
    target = PLATFORMS.get(platform) if isinstance(platform, str) else None
    if target is None:
        raise ValueError(
            f"unknown platform {platform!r}: expected one of {', '.join(sorted(PLATFORMS))}"
        )
    return target
