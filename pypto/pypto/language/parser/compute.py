"""Calls that compute."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from pypto.ir.nodes import AttrValue, Const, Operand, Var
from pypto.ir.typing_rules import CAST_MODES
from pypto.language import functions as pl
from pypto.language.parser.diagnostics.exceptions import InvalidOperationError
from pypto.language.parser.elementwise import (
    element,
    elementwise,
    family,
    is_shaped,
    matrix_product,
    promoted,
)
from pypto.language.parser.scalars import coerce, fold, named_scalar, scalar_operand
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.values import Value, is_number, is_scalar, is_tile, show_value

_SCALAR_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "add": "add",
        "sub": "sub",
        "mul": "mul",
        "div": "truediv",
        "maximum": "max",
        "minimum": "min",
    }
)

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
        return named_scalar(
            site.frame, _SCALAR_NAMES[name], left, right, site.node, site.name, site.hint
        )
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
        raise site.wrong("lhs", f"works on scalars; for tiles and tensors use pl.{name}imum")
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
    negative = named_scalar(site.frame, "sub", 0, scalar, site.node, site.name, site.hint)
    if name == "neg":
        return negative
    return named_scalar(site.frame, "max", scalar, negative, site.node, site.name, site.hint)


def _row_reduce(name: str, site: CallSite) -> Value:
    operand, scratch = site.shaped("x"), site.values["tmp_tile"]
    if not is_tile(operand):
        if scratch is not None:
            raise site.wrong(
                "tmp_tile", "takes no scratch tile when it works on a tensor; leave it out"
            )
        return site.emit(f"tensor.{name}", [operand])
    if scratch is None:
        raise site.frame.error(
            InvalidOperationError,
            site.node,
            f"{site.name}: needs a scratch tile when it works on a tile, as its second argument: "
            "tmp = pl.create_tile(shape, dtype=...) with the shape and dtype of the first",
        )
    return site.emit(f"tile.{name}", [operand, site.tile("tmp_tile")])


def _expand(name: str, site: CallSite) -> Value:
    full, vector = site.shaped("target" if name == "col_expand" else "x"), site.shaped("v")
    if name != "col_expand":
        full, vector = promoted(site.frame, full, vector, site.node)
    return site.emit(f"{family(full)}.{name}", [full, vector])


def _matmul(site: CallSite) -> Value:
    left, right = site.shaped("lhs"), site.shaped("rhs")
    out_dtype = site.values["out_dtype"]
    result = matrix_product(site.frame, left, right, site.node, site.hint)
    if out_dtype is None or element(result) == site.dtype("out_dtype"):
        return result
    if is_tile(result):
        raise site.wrong(
            "out_dtype",
            f"a product of tiles is accumulated in {element(result)}; leave out_dtype out, "
            "pl.store narrows fp32 to fp16 or bf16",
        )
    attrs: dict[str, AttrValue] = {"dtype": site.dtype("out_dtype"), "mode": "rint"}
    return site.emit("tensor.cast", [result], attrs)


def _matmul_acc(site: CallSite) -> Value:
    acc = site.shaped("acc")
    operands: list[Operand] = [acc, site.shaped("lhs"), site.shaped("rhs")]
    result = site.emit(f"{family(acc)}.matmul_acc", operands)
    site.frame.values.products.add(result)
    return result


def _cast(site: CallSite) -> Value:
    value, dtype, mode = site.values["x"], site.dtype("target_type"), site.values["mode"]
    if isinstance(mode, int) and not isinstance(mode, bool) and 0 <= mode < len(CAST_MODES):
        mode = CAST_MODES[mode]
    if mode not in CAST_MODES:
        raise site.wrong(
            "mode", f"unknown mode {show_value(mode)}; use one of {', '.join(CAST_MODES)}"
        )
    assert isinstance(mode, str)
    if is_shaped(value):
        operand = site.shaped("x")
        return site.emit(f"{family(operand)}.cast", [operand], {"dtype": dtype, "mode": mode})
    scalar = scalar_operand(site.frame, value, site.at("x"), f"{site.name}: x")
    if is_number(scalar):
        number = fold(site.frame, int, (scalar,), site.node, site.name) if dtype.is_int else scalar
        assert is_number(number)
        return coerce(site.frame, number, dtype, site.node, site.name)
    assert isinstance(scalar, Var | Const)
    return site.emit("scalar.cast", [scalar], {"dtype": dtype})


def _concat(site: CallSite) -> Value:
    left, right = site.shaped("a"), site.shaped("b")
    return site.emit(f"{family(left)}.concat", [left, right])


_ELEMENTWISE = (pl.add, pl.sub, pl.mul, pl.div, pl.maximum, pl.minimum)
_UNARY = (pl.exp, pl.log, pl.sqrt, pl.rsqrt, pl.recip, pl.relu, pl.neg, pl.abs)
_REDUCE = (pl.row_max, pl.row_min, pl.row_sum)
_EXPAND = (
    pl.row_expand_add,
    pl.row_expand_sub,
    pl.row_expand_mul,
    pl.row_expand_div,
    pl.col_expand,
    pl.col_expand_add,
    pl.col_expand_sub,
    pl.col_expand_mul,
    pl.col_expand_div,
)

COMPUTE: Mapping[object, Handler] = MappingProxyType(
    {
        **{f: partial(_elementwise, f.__name__) for f in _ELEMENTWISE},
        **{f: partial(_extreme, f.__name__) for f in (pl.min, pl.max)},
        **{f: partial(_unary, f.__name__) for f in _UNARY},
        **{f: partial(_row_reduce, f.__name__) for f in _REDUCE},
        **{f: partial(_expand, f.__name__) for f in _EXPAND},
        pl.matmul: _matmul,
        pl.matmul_acc: _matmul_acc,
        pl.cast: _cast,
        pl.concat: _concat,
    }
)
