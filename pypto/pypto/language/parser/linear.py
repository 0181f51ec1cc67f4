"""Distances between run-time indices that are known when the kernel is compiled.

``i * 16`` and ``(i + 1) * 16`` are 16 apart whatever ``i`` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pypto.ir.nodes import Const, Op, Operand, ScalarType, Var


@dataclass(frozen=True, slots=True)
class _Linear:
    """A constant and multiples of variables."""

    constant: int
    factors: Mapping[Var, int]

    def plus(self, other: _Linear, times: int = 1) -> _Linear:
        factors = dict(self.factors)
        for var, factor in other.factors.items():
            factors[var] = factors.get(var, 0) + factor * times
        kept = {var: factor for var, factor in factors.items() if factor}
        return _Linear(self.constant + other.constant * times, MappingProxyType(kept))

    def times(self, factor: int) -> _Linear:
        return _Linear(0, MappingProxyType({})).plus(self, factor)


def constant_distance(
    definitions: Mapping[Var, Op], start: Operand, stop: Operand, twins: Mapping[Var, Var]
) -> int | None:
    """``stop - start``, or ``None`` where it depends on values of the run.

    ``definitions`` says how scalars were computed, ``twins`` which of them equal another one.
    """
    known = _Known(definitions, twins)
    distance = known.linear(stop).plus(known.linear(start), -1)
    return None if distance.factors else distance.constant


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of scalars: how they were computed, and which equal another one."""

    definitions: Mapping[Var, Op]
    twins: Mapping[Var, Var]

    def linear(self, operand: Operand) -> _Linear:
        """A scalar as multiples of those that were not computed from others."""
        if isinstance(operand, Const):
            return _Linear(int(operand.value), MappingProxyType({}))
        operand = self.twins.get(operand, operand)
        op = self.definitions.get(operand)
        if op is not None:
            sides = op.operands
            match op.op:
                case "scalar.add" | "scalar.sub":
                    left, right = (self.linear(side) for side in sides)
                    return left.plus(right, 1 if op.op == "scalar.add" else -1)
                case "scalar.mul":
                    left, right = (self.linear(side) for side in sides)
                    if not left.factors:
                        return right.times(left.constant)
                    if not right.factors:
                        return left.times(right.constant)
                case "scalar.neg":
                    return self.linear(sides[0]).times(-1)
                case "scalar.cast" if _widens(sides[0], operand):
                    return self.linear(sides[0])
                case _:
                    pass
        return _Linear(0, MappingProxyType({operand: 1}))


def _widens(source: Operand, result: Var) -> bool:
    """Whether computing before a conversion or after it makes no difference to a region.

    Where 32 bits wrap, one of the region's ends is past every extent; fewer may wrap inside.
    """
    return (
        isinstance(source, Var)
        and isinstance(source.type, ScalarType)
        and isinstance(result.type, ScalarType)
        and source.type.dtype.is_int
        and 32 <= source.type.dtype.bits <= result.type.dtype.bits
    )
