"""Calls on matrices as a whole: products, transposition, padding."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pypto.ir.nodes import AttrValue, Operand, Var
from pypto.ir.typing_rules import is_whole, rank_of
from pypto.language import computation as pl
from pypto.language import shaping
from pypto.language.parser.elementwise import element, family, matrix_product
from pypto.language.parser.scalars import condition_operand
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.values import Value, is_tile, show_value


def _factor(site: CallSite, parameter: str, flag: str) -> Var:
    """A factor of a product, its last two axes exchanged if its flag says so."""
    factor = site.shaped(parameter)
    if not site.flag(flag):
        return factor
    if is_tile(factor):
        raise site.wrong(flag, f"{flag} exists for tensors only; use pl.transpose_view on a tile")
    rank = rank_of(factor)
    if rank < 2:
        raise site.wrong(parameter, f"{parameter} has no two axes: it is {show_value(factor)}")
    attrs: dict[str, AttrValue] = {"axis1": rank - 2, "axis2": rank - 1}
    return site.frame.emit("tensor.transpose", [factor], site.node, hint=factor.name, attrs=attrs)


def _matmul(site: CallSite) -> Value:
    left, right = _factor(site, "lhs", "a_trans"), _factor(site, "rhs", "b_trans")
    # The order of elements in memory is the compiler's; nothing here reads it.
    if site.flag("c_matrix_nz") and is_tile(left):
        raise site.wrong(
            "c_matrix_nz", "c_matrix_nz exists for tensors only; a product of tiles is in boxes"
        )
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
    start = condition_operand(site.frame, site.values["init_cond"], site.at("init_cond"))
    name, operands = "matmul_acc", list[Operand]((acc, left, right))
    if isinstance(start, bool):
        if start:
            name, operands = "matmul", [left, right]
    else:
        name, operands = "matmul_init", [acc, start, left, right]
    result = site.emit(f"{family(acc)}.{name}", operands)
    if result.type.dtype != element(acc) or result.type != acc.type:
        raise site.wrong("acc", f"acc must be {show_value(result)}, but is {show_value(acc)}")
    site.frame.values.products.add(result)
    return result


def _axis(site: CallSite, parameter: str, operand: Var) -> int:
    axis, rank = site.values[parameter], rank_of(operand)
    if not is_whole(axis) or not -rank <= axis < rank:
        raise site.wrong(
            parameter, f"{parameter} must be an axis of {show_value(operand)}, not {axis}"
        )
    return axis % rank


def _transpose(site: CallSite) -> Value:
    operand = site.shaped("x")
    first, second = sorted(_axis(site, parameter, operand) for parameter in ("axis1", "axis2"))
    if first == second:
        return operand
    attrs: dict[str, AttrValue] = {"axis1": first, "axis2": second}
    return site.emit(f"{family(operand)}.transpose", [operand], attrs)


def _transpose_view(site: CallSite) -> Value:
    operand, rank = site.shaped("x"), rank_of(site.shaped("x"))
    if is_tile(operand):
        return site.emit("tile.transpose_view", [operand])
    if rank < 2:
        raise site.wrong("x", f"x has no two axes: it is {show_value(operand)}")
    return site.emit("tensor.transpose", [operand], {"axis1": rank - 2, "axis2": rank - 1})


def _fillpad(site: CallSite) -> Value:
    operand = site.shaped("x")
    return site.emit(f"{family(operand)}.fillpad", [operand], {"pad": site.pad("pad_value")})


def _fillpad_expand(site: CallSite) -> Value:
    operand = site.shaped("x")
    if site.values["shape"] is None:
        return _fillpad(site)
    attrs: dict[str, AttrValue] = {
        "shape": site.static_ints("shape"),
        "pad": site.pad("pad_value"),
    }
    return site.emit(f"{family(operand)}.fillpad_expand", [operand], attrs)


def _set_validshape(site: CallSite) -> Value:
    operand = site.shaped("x")
    bounds = [site.index(parameter) for parameter in ("rows", "cols")]
    return site.emit(f"{family(operand)}.set_validshape", [operand, *bounds])


def _concat(site: CallSite) -> Value:
    left, right = site.shaped("a"), site.shaped("b")
    return site.emit(f"{family(left)}.concat", [left, right])


MATRICES: Mapping[object, Handler] = MappingProxyType(
    {
        pl.matmul: _matmul,
        pl.matmul_acc: _matmul_acc,
        shaping.transpose: _transpose,
        shaping.transpose_view: _transpose_view,
        shaping.fillpad: _fillpad,
        shaping.fillpad_expand: _fillpad_expand,
        shaping.set_validshape: _set_validshape,
        shaping.concat: _concat,
    }
)
