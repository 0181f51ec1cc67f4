"""Just-in-time kernels: decorators, and the resolution of a request to an artifact."""

from __future__ import annotations
