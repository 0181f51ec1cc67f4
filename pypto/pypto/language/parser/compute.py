"""Calls that compute."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from pypto.ir.nodes import Operand
from pypto.ir.ops import OPS
from pypto.language import computation as pl
from pypto.language.parser.diagnostics.exceptions import InvalidOperationError
from pypto.language.parser.elementwise import (
    elementwise,
    family,
    is_shaped,
    promoted,
    with_scalar,
)
from pypto.language.parser.scalars import absolute_scalar, fold, named_scalar, scalar_operand
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.values import Value, is_number, is_scalar, is_tile, show_value

_FOLDED: Mapping[str, object] = MappingProxyType(
    {
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "div": operator.truediv,
        "maximum": max,
        "minimum": min,
    }
)


def _elementwise(name: str, site: CallSite) -> Value:
    left, right = site.values["lhs"], site.values["rhs"]
    if is_number(left) and is_number(right):
        return fold(site.frame, _FOLDED[name], (left, right), site.node, site.name)
    if is_scalar(left) and is_scalar(right):
        of_scalars = OPS[f"tile.{name}"].of_scalars
        return named_scalar(site.frame, of_scalars, left, right, site.node, site.name, site.hint)
    for parameter, value in (("lhs", left), ("rhs", right)):
        if not is_shaped(value) and not is_scalar(value):
            raise site.wrong(
                parameter,
                f"{parameter} must be a tile, a tensor or a scalar, not {show_value(value)}",
            )
    return elementwise(site.frame, name, left, right, site.node, site.hint)


def _extreme(name: str, site: CallSite) -> Value:
    left, right = site.values["lhs"], site.values["rhs"]
    if is_shaped(left) or is_shaped(right):
        return _elementwise(f"{name}imum", site)
    if is_number(left) and is_number(right):
        return min(left, right) if name == "min" else max(left, right)
    lhs = scalar_operand(site.frame, left, site.at("lhs"), f"{site.name}: lhs")
    rhs = scalar_operand(site.frame, right, site.at("rhs"), f"{site.name}: rhs")
    return named_scalar(site.frame, name, lhs, rhs, site.node, site.name, site.hint)


def _unary(name: str, site: CallSite) -> Value:
    value = site.values["x"]
    if name in ("neg", "abs") and is_scalar(value):
        return _scalar_unary(name, site)
    operand = site.shaped("x")
    return site.emit(f"{family(operand)}.{name}", [operand])


def _scalar_unary(name: str, site: CallSite) -> Value:
    value = site.values["x"]
    if is_number(value):
        return -value if name == "neg" else abs(value)
    scalar = scalar_operand(site.frame, value, site.at("x"), f"{site.name}: x")
    if name == "abs":
        return absolute_scalar(site.frame, scalar, site.node, site.name, site.hint)
    return named_scalar(site.frame, "sub", 0, scalar, site.node, site.name, site.hint)


def _pair(name: str, site: CallSite) -> Value:
    return elementwise(
        site.frame, name, site.values["lhs"], site.values["rhs"], site.node, site.hint
    )


def _leaky(site: CallSite) -> Value:
    return with_scalar(
        site.frame, "lrelu", site.shaped("x"), site.values["slope"], site.node, site.hint
    )


def _prelu(site: CallSite) -> Value:
    x, slope, scratch = site.shaped("x"), site.shaped("slope"), site.values["tmp_tile"]
    operands: list[Operand] = [x, slope]
    if scratch is not None:
        operands.append(site.tile("tmp_tile"))
    return site.emit(f"{family(x)}.prelu", operands)


def _col_reduce(name: str, site: CallSite) -> Value:
    operand = site.shaped("x")
    if site.values.get("tmp_tile") is not None:
        site.tile("tmp_tile")  # the instruction needs none
    return site.emit(f"{family(operand)}.{name}", [operand])


def _row_reduce(name: str, site: CallSite) -> Value:
    operand, scratch = site.shaped("x"), site.values["tmp_tile"]
    if not is_tile(operand):
        if scratch is not None:
            raise site.wrong(
                "tmp_tile", "takes no scratch tile when it works on a tensor; leave it out"
            )
        return site.emit(f"tensor.{name}", [operand])
    if scratch is None and "tmp_tile" in site.nodes:
        return site.emit(f"tile.{name}", [operand])  # said to be the compiler's affair
    if scratch is None:
        raise site.frame.error(
            InvalidOperationError,
            site.node,
            f"{site.name}: needs a scratch tile when it works on a tile, as its second argument: "
            "tmp = pl.create_tile(shape, dtype=...) with the shape and dtype of the first",
        )
    return site.emit(f"tile.{name}", [operand, site.tile("tmp_tile")])


_REPEATS = ("row_expand", "col_expand")


def _expand(name: str, site: CallSite) -> Value:
    full, vector = site.shaped("target" if name in _REPEATS else "x"), site.shaped("v")
    if name not in _REPEATS:
        full, vector = promoted(site.frame, full, vector, site.node)
    return site.emit(f"{family(full)}.{name}", [full, vector])


_ELEMENTWISE = (pl.add, pl.sub, pl.mul, pl.div, pl.maximum, pl.minimum)
_PAIRS = (pl.fmod, pl.and_, pl.or_, pl.xor, pl.shl, pl.shr)
_UNARY = (
    pl.exp,
    pl.log,
    pl.sqrt,
    pl.rsqrt,
    pl.recip,
    pl.sin,
    pl.cos,
    pl.relu,
    pl.neg,
    pl.abs,
    pl.not_,
)
_ROW_REDUCE = (pl.row_max, pl.row_min, pl.row_sum, pl.row_prod)
_COL_REDUCE = (pl.col_max, pl.col_min, pl.col_sum, pl.col_prod)
_EXPAND = (
    pl.row_expand,
    pl.row_expand_add,
    pl.row_expand_sub,
    pl.row_expand_mul,
    pl.row_expand_div,
    pl.row_expand_max,
    pl.row_expand_min,
    pl.row_expand_expdif,
    pl.col_expand,
    pl.col_expand_add,
    pl.col_expand_sub,
    pl.col_expand_mul,
    pl.col_expand_div,
    pl.col_expand_max,
    pl.col_expand_min,
)

COMPUTE: Mapping[object, Handler] = MappingProxyType(
    {
        **{f: partial(_elementwise, f.__name__) for f in _ELEMENTWISE},
        **{f: partial(_extreme, f.__name__) for f in (pl.min, pl.max)},
        **{f: partial(_unary, f.__name__) for f in _UNARY},
        **{f: partial(_pair, f.__name__) for f in _PAIRS},
        **{f: partial(_row_reduce, f.__name__) for f in _ROW_REDUCE},
        **{f: partial(_col_reduce, f.__name__) for f in _COL_REDUCE},
        **{f: partial(_expand, f.__name__) for f in _EXPAND},
        pl.lrelu: _leaky,
        pl.prelu: _prelu,
    }
)
