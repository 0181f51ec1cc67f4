"""Who compiles: running tools, and the identity of every tool that takes part in a build."""

from __future__ import annotations
