"""What random programs are made of: choices, element types, names and bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

T = TypeVar("T")

LIMIT = 8
# Whole numbers of this magnitude and all smaller ones are exact.
EXACT = {"FP32": 2**24, "FP16": 2**11, "BF16": 2**8}
MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")


@dataclass(frozen=True)
class Expression:
    """Text, and the largest magnitude of its values (of floats)."""

    text: str
    bound: int = LIMIT


@dataclass(frozen=True)
class Name:
    """A variable of a tile or a tensor-level value."""

    text: str
    dtype: str


@dataclass
class Source:
    """What expressions can be made of at one place of a program."""

    shape: tuple[int, int]
    names: list[Name]
    counters: list[str] = field(default_factory=list)
    # Gives the text of a part of a tensor in global memory, or None if there is none of that type.
    load: Callable[[str], str | None] = lambda dtype: None
    tensors: bool = False
    helper: str = ""
    # Scalars that are not negative and known when the program runs.
    scalars: tuple[str, ...] = ()


class Chooser:
    """Choices, all of them as likely."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) < percent


def is_float(dtype: str) -> bool:
    return dtype in EXACT


def is_signed(dtype: str) -> bool:
    return is_float(dtype) or dtype.startswith("INT")


def literal(dtype: str, value: int) -> str:
    """A number that the type has, as near to `value` as it gets."""
    if dtype == "BOOL":
        return str(value > 0)
    if is_float(dtype):
        return f"{value}.0"
    return str(value if is_signed(dtype) else abs(value))


def clamped(dtype: str, e: Expression) -> Expression:
    """`e` in `-LIMIT..LIMIT`."""
    if dtype == "BOOL":
        return e
    low = literal(dtype, -LIMIT) if is_signed(dtype) else "0"
    return Expression(f"pl.minimum(pl.maximum({e.text}, {low}), {literal(dtype, LIMIT)})")
