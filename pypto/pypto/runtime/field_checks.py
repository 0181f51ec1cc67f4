"""Checks of single option values: each gives the value it was given, or says what it must be.

TypeError for a value of another kind, ValueError for one that the option cannot have; both begin
with the option's name.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

_Member = TypeVar("_Member", bound=enum.Enum)


def flag(name: str, value: object) -> bool:
    """A switch."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def integer(name: str, value: object, *, minimum: int) -> int:
    """A whole number that is at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return value


def level(name: str, value: object) -> int:
    """A level from 0; False and True are 0 and 1."""
    return int(value) if isinstance(value, bool) else integer(name, value, minimum=0)


def member(name: str, value: object, enumeration: type[_Member]) -> _Member:
    """A member of ``enumeration``."""
    if not isinstance(value, enumeration):
        known = ", ".join(f"{enumeration.__name__}.{item.name}" for item in enumeration)
        raise TypeError(f"{name} must be one of {known}, got {value!r}")
    return value


def directory(name: str, value: object) -> str | Path | None:
    """A path that is not empty, or None."""
    if value is None or isinstance(value, Path):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a path, got {value!r}")
    if not value:
        raise ValueError(f"{name} must not be empty; use None for no directory")
    return value


def names(name: str, value: object) -> frozenset[str] | None:
    """A collection of texts, as a set; None stays None."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a collection of names, got {value!r}")
    chosen = frozenset(value)
    for item in chosen:
        if not isinstance(item, str):
            raise TypeError(f"{name} must hold names, got {item!r}")
    return chosen


def tolerance(name: str, value: object) -> float:
    """A finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and not negative, got {value}")
    return float(value)
