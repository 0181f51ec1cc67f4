"""Calls that compare, choose and convert elements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from pypto.ir.dtypes import BOOL, DataType
from pypto.ir.nodes import AttrValue, Const, TensorType, TileType, Var
from pypto.ir.typing_rules import CAST_MODES, COMPARISONS, is_whole
from pypto.language import computation as pl
from pypto.language.parser.elementwise import (
    broadcast,
    element,
    elementwise,
    family,
    is_shaped,
    promoted,
)
from pypto.language.parser.scalars import coerce, named_scalar, scalar_operand
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.values import (
    Value,
    is_number,
    is_scalar,
    natural_dtype,
    show_value,
)

# What a comparison becomes when its sides are exchanged.
_MIRRORED = (0, 1, 4, 5, 2, 3)


def _cmp(site: CallSite) -> Value:
    left, right, kind = site.values["lhs"], site.values["rhs"], site.values["cmp_type"]
    if not is_whole(kind) or not 0 <= kind < len(COMPARISONS):
        numbers = ", ".join(f"{number} {name}" for number, name in enumerate(COMPARISONS))
        raise site.wrong("cmp_type", f"cmp_type must be one of {numbers}, not {show_value(kind)}")
    if is_scalar(left) and is_scalar(right):
        name = COMPARISONS[kind]
        return named_scalar(site.frame, name, left, right, site.node, site.name, site.hint)
    if is_scalar(left) and is_shaped(right):
        left, right, kind = right, left, _MIRRORED[kind]
    attrs: dict[str, AttrValue] = {"cmp_type": kind}
    return elementwise(site.frame, "cmp", left, right, site.node, site.hint, attrs)


def _sel(site: CallSite) -> Value:
    frame, mask = site.frame, site.shaped("mask")
    left, right = site.values["lhs"], site.values["rhs"]
    if is_number(left) and is_scalar(right):
        left = _everywhere(site, mask, left)
    if is_shaped(left) and is_shaped(right):
        left, right = promoted(frame, left, right, site.node)
        mask, left, right = broadcast(frame, (mask, left, right), site.node)
        return site.emit(f"{family(mask)}.sel", [mask, left, right])
    if is_shaped(left):
        mask, left = broadcast(frame, (mask, left), site.node)
        return _with_scalar(site, "sels", mask, left, right, "rhs")
    if is_shaped(right):
        mask, right = broadcast(frame, (mask, right), site.node)
        return _with_scalar(site, "rsels", mask, right, left, "lhs")
    raise site.wrong("lhs", f"lhs must be a tile, a tensor or a number, not {show_value(left)}")


def _with_scalar(
    site: CallSite, form: str, mask: Var, shaped: Var, scalar: Value, parameter: str
) -> Value:
    at, what = site.at(parameter), f"the scalar beside {show_value(shaped)}"
    operand = scalar_operand(site.frame, scalar, at, what)
    typed = coerce(site.frame, operand, element(shaped), at, what)
    return site.emit(f"{family(mask)}.{form}", [mask, shaped, typed])


def _everywhere(site: CallSite, mask: Var, value: bool | int | float) -> Var:
    """A number in the shape of a mask, in the type that the other side has or the number's own."""
    assert isinstance(mask.type, TileType | TensorType)
    other, dtype = site.values["rhs"], natural_dtype(value)
    if isinstance(other, Var):
        dtype = other.type.dtype
    elif is_number(other) and isinstance(other, float):
        dtype, value = natural_dtype(other), float(value)
    shape = tuple(extent for extent in mask.type.shape if isinstance(extent, int))
    attrs: dict[str, AttrValue] = {"shape": shape, "dtype": dtype, "value": value}
    return site.frame.emit(f"{family(mask)}.full", [], site.node, attrs=attrs)


def _mode(site: CallSite) -> str | None:
    mode = site.values["mode"]
    if is_whole(mode) and 0 <= mode < len(CAST_MODES):
        return CAST_MODES[mode]
    if isinstance(mode, str) and mode in CAST_MODES:
        return mode
    if mode is None and not is_shaped(site.values["x"]):
        return None
    raise site.wrong(
        "mode",
        f"unknown mode {show_value(mode)}; use one of {', '.join(CAST_MODES)}, or its number from "
        f"0 to {len(CAST_MODES) - 1}",
    )


def _cast(site: CallSite) -> Value:
    value, dtype, mode = site.values["x"], site.dtype("target_type"), _mode(site)
    if is_shaped(value):
        operand = site.shaped("x")
        assert mode is not None
        return site.emit(f"{family(operand)}.cast", [operand], {"dtype": dtype, "mode": mode})
    scalar = scalar_operand(site.frame, value, site.at("x"), f"{site.name}: x")
    if is_number(scalar):
        return coerce(
            site.frame, _converted(site, scalar, dtype, mode), dtype, site.node, site.name
        )
    if dtype == BOOL:
        return named_scalar(site.frame, "ne", scalar, 0, site.node, site.name, site.hint)
    assert isinstance(scalar, Var | Const)
    attrs: dict[str, AttrValue] = {"dtype": dtype}
    return site.emit("scalar.cast", [scalar], attrs if mode is None else attrs | {"mode": mode})


def _converted(
    site: CallSite, number: bool | int | float, dtype: DataType, mode: str | None
) -> bool | int | float:
    """A number that is known now, whole where the type needs that."""
    if dtype.is_float or isinstance(number, int):
        return number != 0 if dtype == BOOL else number
    if dtype == BOOL:
        return number != 0
    if not math.isfinite(number):
        raise site.wrong("x", f"{number} has no counterpart in {dtype}")
    return _whole(number, mode or "trunc")


def _whole(number: float, mode: str) -> int:
    down = math.floor(number)
    if number == down:
        return down
    past = Fraction(number) - down - Fraction(1, 2)
    towards_zero = math.trunc(number)
    match mode:
        case "floor":
            return down
        case "ceil":
            return down + 1
        case "trunc":
            return towards_zero
        case "odd":
            return down if down % 2 else down + 1
        case "round" if past == 0:
            return down if number < 0 else down + 1
        case _ if past == 0:
            return down + down % 2
        case _:
            return down if past < 0 else down + 1


MASKS: Mapping[object, Handler] = MappingProxyType({pl.cmp: _cmp, pl.sel: _sel, pl.cast: _cast})
