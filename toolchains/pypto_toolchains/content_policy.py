"""The `content` identity policy."""

from __future__ import annotations

from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identity import IdentityRequest, ToolchainIdentity


class ContentPolicy:
    """Not there yet: every request goes on without persistence."""

    def capture(self, request: IdentityRequest) -> ToolchainIdentity | Unavailable:
        """As IdentityPolicy has it."""
        return Unavailable(
            "toolchain", f"the {request.namespace.policy!r} identity policy is not available yet"
        )

    def validate(self, request: IdentityRequest) -> str | None:
        """As IdentityPolicy has it."""
        return None
