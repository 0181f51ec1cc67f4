"""Calls that allocate, move and reinterpret whole tiles and tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import (
    AttrValue,
    Const,
    TensorType,
    Var,
)
from pypto.ir.typing_rules import is_whole
from pypto.language import functions as pl
from pypto.language import shaping
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserTypeError,
)
from pypto.language.parser.levels import works_on_tiles
from pypto.language.parser.partial import declared_shape
from pypto.language.parser.scalars import split_extents, tensor_extent
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.values import Value, is_number, is_tile, literal, show_value


def _move(site: CallSite) -> Value:
    site.needs_core()
    return site.emit("tile.move", [site.tile("tile")], {"space": site.space("target_memory")})


def _create_tensor(site: CallSite) -> Value:
    frame = site.frame
    if frame.on_core:
        raise frame.error(
            InvalidOperationError,
            site.node,
            f"{site.name}: a core cannot allocate global memory; create the tensor in the "
            "@pl.jit function, outside pl.at",
        )
    extents = split_extents(
        frame,
        site.sequence("shape"),
        site.at("shape"),
        lambda axis: f"{site.name}: shape[{axis}]",
    )
    attrs: dict[str, AttrValue] = {
        "shape": extents.shape,
        "symbols": extents.symbols,
        "dtype": site.dtype("dtype"),
    }
    if site.flag("manual_dep"):
        attrs["manual_dep"] = True
    if site.values["init_value"] is not None:
        attrs["init_value"] = _initial(site)
    result = site.emit("tensor.create", list(extents.sizes), attrs)
    frame.values.memory.add(result)
    return result


def _initial(site: CallSite) -> bool | int | float:
    """The number that all elements of a new tensor are."""
    value, dtype = site.values["init_value"], site.dtype("dtype")
    number = value.value if isinstance(value, Const) else value
    if not is_number(number):
        raise site.wrong(
            "init_value",
            "init_value must be a number known when the kernel is compiled, not "
            f"{show_value(value)}",
        )
    try:
        return literal(number, dtype).value
    except IrTypeError as error:
        raise site.wrong("init_value", f"init_value: {error}") from None


def _two_extents(site: CallSite) -> tuple[int, ...]:
    shape = site.static_ints("shape")
    if len(shape) != 2:
        raise site.wrong(
            "shape", f"a tile has two dimensions, but shape is {list(shape)}", InvalidOperationError
        )
    return shape


def _create_tile(site: CallSite) -> Value:
    site.needs_core()
    attrs: dict[str, AttrValue] = {
        "shape": _two_extents(site),
        "dtype": site.dtype("dtype"),
        "space": site.space("target_memory"),
    }
    return site.emit("tile.create", [], attrs)


def _full(site: CallSite) -> Value:
    site.needs_core()
    return (_full_tile if works_on_tiles(site.frame.region) else _full_tensor)(site)


def _full_tile(site: CallSite) -> Value:
    value, dtype = _number(site), site.dtype("dtype")
    attrs: dict[str, AttrValue] = {"shape": _two_extents(site), "dtype": dtype, "value": value}
    return site.emit("tile.full", [], attrs)


def _full_tensor(site: CallSite) -> Value:
    value, dtype = _number(site), site.dtype("dtype")
    shape = site.static_ints("shape")
    attrs: dict[str, AttrValue] = {"shape": shape, "dtype": dtype, "value": value}
    return site.emit("tensor.full", [], attrs)


def _number(site: CallSite) -> bool | int | float:
    """What fills a tile or a tensor-level value."""
    site.needs_core()
    value, dtype = site.values["value"], site.dtype("dtype")
    if isinstance(value, Const):
        value = value.value
    if not is_number(value):
        raise site.wrong(
            "value",
            f"value must be a number known when the kernel is compiled, not {show_value(value)}; "
            "for a run-time scalar use pl.add(pl.full(shape, dtype, 0), s)",
        )
    try:
        return literal(value, dtype).value
    except IrTypeError as error:
        raise site.wrong("value", str(error)) from None


def _dim(site: CallSite) -> Value:
    tensor, axis = site.tensor("tensor"), site.values["axis"]
    assert isinstance(tensor.type, TensorType)
    rank = len(tensor.type.shape)
    if not is_whole(axis):
        raise site.wrong("axis", f"axis must be an int, not {show_value(axis)}")
    if not -rank <= axis < rank:
        raise site.wrong(
            "axis", f"axis {axis} is out of range for {show_value(tensor)}", InvalidOperationError
        )
    dim = (declared_shape(site.frame, tensor) or tensor.type.shape)[axis % rank]
    return (
        dim if isinstance(dim, int) else tensor_extent(site.frame, tensor, axis % rank, site.node)
    )


def _reshape(site: CallSite) -> Value:
    value, shape = site.shaped("x"), list(site.sequence("shape"))
    if -1 in [extent for extent in shape if isinstance(extent, int)]:
        shape = _deduced(site, value, shape)
    for index, extent in enumerate(shape):
        if not is_whole(extent):
            raise site.wrong(
                "shape", f"shape[{index}] must be an int, not {show_value(extent)}", ParserTypeError
            )
    attrs: dict[str, AttrValue] = {"shape": tuple(shape)}  # type: ignore[dict-item]
    if is_tile(value):
        return site.emit("tile.reshape", [value], attrs)
    result = site.emit("tensor.reshape", [value], attrs)
    site.frame.values.record_name(result, value)
    return result


def _deduced(site: CallSite, value: Var, shape: list[Value]) -> list[Value]:
    known = [extent for extent in shape if isinstance(extent, int) and extent != -1]
    dims = value.type.shape  # type: ignore[union-attr]
    if (
        shape.count(-1) > 1
        or len(known) != len(shape) - 1
        or not all(isinstance(dim, int) for dim in dims)
    ):
        raise site.wrong("shape", f"cannot tell what -1 stands for in {shape}")
    total, rest = math.prod(dims), math.prod(known)
    if rest == 0 or total % rest:
        raise site.wrong(
            "shape",
            f"{total} elements do not divide into {shape}",
            InvalidOperationError,
        )
    return [total // rest if extent == -1 else extent for extent in shape]


MOVEMENT: Mapping[object, Handler] = MappingProxyType(
    {
        pl.move: _move,
        pl.create_tensor: _create_tensor,
        pl.create_tile: _create_tile,
        pl.full: _full,
        pl.full_tile: _full_tile,
        pl.full_tensor: _full_tensor,
        pl.dim: _dim,
        shaping.reshape: _reshape,
    }
)
