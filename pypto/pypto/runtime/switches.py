"""Switches of the environment: variables that turn something off."""

from __future__ import annotations

from collections.abc import Mapping

_OFF = frozenset({"0", "false", "no"})


def switched_on(environ: Mapping[str, str], variable: str) -> bool:
    """Whether a switch of the environment is not turned off; 0, false and no do, in any case."""
    return environ.get(variable, "").lower() not in _OFF
