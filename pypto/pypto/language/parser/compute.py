"""Calls that compute."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from pypto.ir.dtypes import BOOL
from pypto.ir.nodes import AttrValue, Const, Operand, Var
from pypto.ir.typing_rules import CAST_MODES
from pypto.language import computation as pl
from pypto.language.parser.diagnostics.exceptions import InvalidOperationError
from pypto.language.parser.elementwise import (
    element,
    elementwise,
    family,
    is_shaped,
    matrix_product,
    promoted,
    with_scalar,
)
from pypto.language.parser.scalars import (
    absolute_scalar,
    coerce,
    fold,
    named_scalar,
    scalar_operand,
)
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


def _factor(site: CallSite, parameter: str, flag: str) -> Var:
    """A factor of a product, transposed if its flag says so."""
    factor = site.shaped(parameter)
    if not site.flag(flag):
        return factor
    if is_tile(factor):
        raise site.wrong(flag, f"{flag} exists for tensors only; load the tile transposed instead")
    return site.emit("tensor.transpose", [factor])


def _matmul(site: CallSite) -> Value:
    left, right = _factor(site, "lhs", "a_trans"), _factor(site, "rhs", "b_trans")
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
    left, right = _factor(site, "lhs", "a_trans"), _factor(site, "rhs", "b_trans")
    operands: list[Operand] = [acc, left, right]
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
    if dtype == BOOL:
        if is_number(scalar):
            return bool(scalar)
        return named_scalar(site.frame, "ne", scalar, 0, site.node, site.name, site.hint)
    if is_number(scalar):
        number = fold(site.frame, int, (scalar,), site.node, site.name) if dtype.is_int else scalar
        assert is_number(number)
        return coerce(site.frame, number, dtype, site.node, site.name)
    assert isinstance(scalar, Var | Const)
    return site.emit("scalar.cast", [scalar], {"dtype": dtype})


def _transpose(site: CallSite) -> Value:
    operand = site.shaped("x")
    rank = len(operand.type.shape)  # type: ignore[union-attr]
    for parameter in ("axis1", "axis2"):
        axis = site.values[parameter]
        if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
            raise site.wrong(
                parameter, f"{parameter} must be an axis of {show_value(operand)}, not {axis}"
            )
    first, second = (int(site.values[p]) % rank for p in ("axis1", "axis2"))  # type: ignore[call-overload]
    if first == second:
        return operand
    operands: list[Operand] = [operand]
    if site.values["tmp_tile"] is not None:
        operands.append(site.tile("tmp_tile"))
    return site.emit(f"{family(operand)}.transpose", operands)


def _fillpad(site: CallSite) -> Value:
    operand = site.shaped("x")
    return site.emit(f"{family(operand)}.fillpad", [operand], {"pad": site.pad("pad_value")})


def _concat(site: CallSite) -> Value:
    left, right = site.shaped("a"), site.shaped("b")
    return site.emit(f"{family(left)}.concat", [left, right])


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
        pl.matmul: _matmul,
        pl.matmul_acc: _matmul_acc,
        pl.cast: _cast,
        pl.transpose: _transpose,
        pl.fillpad: _fillpad,
        pl.concat: _concat,
    }
)
