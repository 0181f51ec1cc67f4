"""Calls that allocate, move and reinterpret data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from pypto.ir.dtypes import INDEX
from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import (
    AttrValue,
    Const,
    DynDim,
    Operand,
    TensorType,
    TileType,
    Var,
)
from pypto.language import computation
from pypto.language import functions as pl
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserTypeError,
)
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import extent_symbol, index_operand, tensor_extent
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.slices import needs_core
from pypto.language.parser.values import Value, is_number, is_tile, literal, show_value
from pypto.language.parser.views import part_of_tensor


def _load(site: CallSite) -> Value:
    site.needs_core()
    tensor = site.tensor("tensor")
    offsets = site.indices("offsets")
    shape = _tile_shape(site, "shapes", tensor)
    attrs: dict[str, AttrValue] = {
        "shape": shape,
        "space": site.space("target_memory"),
        "has_valid": False,
    }
    operands: list[Operand] = [tensor, *offsets]
    valid = _valid_extents(site, tensor, offsets, shape)
    if valid:
        operands += valid
        attrs["has_valid"] = True
    return site.emit("tile.load", operands, attrs)


def _valid_extents(
    site: CallSite, tensor: Var, offsets: list[Operand], shape: tuple[int, ...]
) -> list[Operand]:
    """The rows and columns to read by ``valid_shape`` or ``clamp``; none where all is read."""
    if site.values["valid_shape"] is not None:
        valid = site.indices("valid_shape")
        rank = _rank(tensor)
        if len(valid) not in (2, rank):
            raise site.wrong("valid_shape", f"valid_shape needs {rank} extents, got {len(valid)}")
        return _last_two(valid)
    return _clamped(site, tensor, offsets, shape) if site.flag("clamp") else []


def _rank(tensor: Var) -> int:
    assert isinstance(tensor.type, TensorType)
    return len(tensor.type.shape)


def _last_two(values: list[Operand]) -> list[Operand]:
    return values[-2:] if len(values) > 1 else [Const(1, INDEX), *values]


def _tile_shape(site: CallSite, parameter: str, tensor: Var) -> tuple[int, ...]:
    """The two extents of the tile that a region of a tensor becomes."""
    shape = site.static_ints(parameter)
    rank = _rank(tensor)
    if len(shape) != rank and not (rank > 2 and len(shape) == 2):
        raise site.wrong(
            parameter,
            f"{parameter} needs {rank} extents for {show_value(tensor)}, got {len(shape)}",
            InvalidOperationError,
        )
    if rank == 1:
        return (1, *shape)
    if any(extent != 1 for extent in shape[:-2]):
        raise site.wrong(
            parameter,
            f"a tile has two dimensions, so all but the last two extents must be 1: {list(shape)}",
            InvalidOperationError,
        )
    return shape[-2:]


def _clamped(
    site: CallSite, tensor: Var, offsets: list[Operand], shape: tuple[int, ...]
) -> list[Operand]:
    """How much of a region lies inside the tensor."""
    frame, rank = site.frame, _rank(tensor)
    assert isinstance(tensor.type, TensorType)
    if len(offsets) != rank:
        raise site.wrong("offsets", f"needs {rank} offsets for {show_value(tensor)}")
    valid: list[Operand] = [] if rank > 1 else [Const(1, INDEX)]
    for axis in range(max(0, rank - 2), rank):
        size = shape[axis - rank + 2] if rank > 1 else shape[1]
        dim, offset = tensor.type.shape[axis], offsets[axis]
        if isinstance(dim, int) and isinstance(offset, Const):
            inside = max(0, min(size, dim - int(offset.value)))
            valid.append(Const(inside, INDEX))
            continue
        extent = tensor_extent(frame, tensor, axis, site.node) if isinstance(dim, DynDim) else None
        limit = extent or Const(dim if isinstance(dim, int) else 0, INDEX)
        rest = frame.emit("scalar.sub", [limit, offset], site.node)
        bounded = frame.emit("scalar.min", [rest, Const(size, INDEX)], site.node)
        valid.append(frame.emit("scalar.max", [bounded, Const(0, INDEX)], site.node, hint="valid"))
    return valid


def _store(site: CallSite) -> Value:
    site.needs_core()
    tile, tensor = site.tile("tile"), site.tensor("output_tensor")
    if site.values["shapes"] is not None:
        shape = _tile_shape(site, "shapes", tensor)
        assert isinstance(tile.type, TileType)
        if shape != tile.type.shape:
            raise site.wrong(
                "shapes",
                f"shapes is a region of {list(shape)}, but the tile has {list(tile.type.shape)}",
                InvalidOperationError,
            )
    return store_tile(site.frame, tile, site.indices("offsets"), tensor, site)


def store_tile(frame: Frame, tile: Var, offsets: list[Operand], tensor: Var, site: CallSite) -> Var:
    """Writes a tile into a tensor; the result names the tensor's memory."""
    result = site.emit("tile.store", [tile, *offsets, tensor])
    alias(frame, result, tensor)
    frame.values.written.add(tensor)
    return result


def alias(frame: Frame, result: Var, tensor: Var) -> None:
    """Records that ``result`` names the memory of ``tensor``."""
    frame.values.aliases[result] = tensor


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
    shape: list[int | None] = []
    symbols: list[str] = []
    operands: list[Operand] = []
    at = site.at("shape")
    for index, extent in enumerate(site.sequence("shape")):
        if is_number(extent) and not isinstance(extent, bool | float):
            shape.append(extent)
            continue
        operand = index_operand(frame, extent, at, f"{site.name}: shape[{index}]")
        if isinstance(operand, Const):
            shape.append(int(operand.value))
            continue
        shape.append(None)
        operands.append(operand)
        symbols.append(extent_symbol(frame, operand, extent))
    attrs: dict[str, AttrValue] = {
        "shape": tuple(shape),
        "symbols": tuple(symbols),
        "dtype": site.dtype("dtype"),
    }
    result = site.emit("tensor.create", operands, attrs)
    frame.values.memory.add(result)
    return result


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
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise site.wrong("axis", f"axis must be an int, not {show_value(axis)}")
    if not -rank <= axis < rank:
        raise site.wrong(
            "axis", f"axis {axis} is out of range for {show_value(tensor)}", InvalidOperationError
        )
    dim = tensor.type.shape[axis % rank]
    return (
        dim if isinstance(dim, int) else tensor_extent(site.frame, tensor, axis % rank, site.node)
    )


def _reshape(site: CallSite) -> Value:
    value, shape = site.shaped("x"), list(site.sequence("shape"))
    if -1 in [extent for extent in shape if isinstance(extent, int)]:
        shape = _deduced(site, value, shape)
    for index, extent in enumerate(shape):
        if isinstance(extent, bool) or not isinstance(extent, int):
            raise site.wrong(
                "shape", f"shape[{index}] must be an int, not {show_value(extent)}", ParserTypeError
            )
    attrs: dict[str, AttrValue] = {"shape": tuple(shape)}  # type: ignore[dict-item]
    if is_tile(value):
        return site.emit("tile.reshape", [value], attrs)
    result = site.emit("tensor.reshape", [value], attrs)
    alias(site.frame, result, value)
    return result


def _assemble(site: CallSite) -> Value:
    frame, target, source = site.frame, site.tensor("target"), site.shaped("source")
    needs_core(frame, site.node, f"{site.name}: a part of {show_value(target)}")
    offsets = site.indices("offset")
    if is_tile(source):
        return store_tile(frame, source, offsets, target, site)
    shape = source.type.shape  # type: ignore[union-attr]
    region = (1,) * (_rank(target) - len(shape)) + shape
    if not all(isinstance(extent, int) for extent in region):
        raise site.wrong("source", f"{show_value(source)} has extents known at run time only")
    attrs: dict[str, AttrValue] = {"shape": region}
    result = site.emit("tensor.assemble", [target, *offsets, source], attrs)
    alias(frame, result, target)
    frame.values.written.add(target)
    return result


def _slice(site: CallSite) -> Value:
    if not site.frame.on_core:
        return _view(site)
    tensor, shape = site.tensor("x"), site.static_ints("shape")
    drop, offsets = site.static_ints("drop_dims"), site.indices("offset")
    valid = _valid_extents(site, tensor, offsets, _tile_shape(site, "shape", tensor))
    attrs: dict[str, AttrValue] = {
        "shape": (1,) * (_rank(tensor) - len(shape)) + shape,
        "drop": tuple(axis % len(shape) if -len(shape) <= axis else axis for axis in drop),
        "has_valid": bool(valid),
        "pad": site.pad("pad_value"),
    }
    return site.emit("tensor.slice", [tensor, *offsets, *valid], attrs)


def _view(site: CallSite) -> Value:
    """``pl.slice`` outside a core: a part of the same memory."""
    tensor, rank = site.tensor("x"), _rank(site.tensor("x"))
    extents, offsets = site.sequence("shape"), site.sequence("offset")
    for parameter, items in (("shape", extents), ("offset", offsets)):
        if len(items) > rank or (parameter == "offset" and len(items) != rank):
            raise site.wrong(
                parameter,
                f"{parameter} needs {rank} entries for {show_value(tensor)}, got {len(items)}",
                InvalidOperationError,
            )
    if site.values["valid_shape"] is not None or site.flag("clamp"):
        what = "clamp" if site.flag("clamp") else "valid_shape"
        raise site.wrong(
            what,
            f"{what} says how much of a copy is filled, but outside a core a slice names a part "
            "of the same memory; give shape run-time extents, or slice inside pl.at",
        )
    drop = [axis + len(extents) * (axis < 0) for axis in site.static_ints("drop_dims")]
    lead = rank - len(extents)
    return part_of_tensor(
        site.frame,
        tensor,
        offsets,
        (1,) * lead + extents,
        [lead + axis for axis in drop],
        site.node,
        site.hint,
    )


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
        pl.load: _load,
        pl.store: _store,
        pl.move: _move,
        pl.create_tensor: _create_tensor,
        pl.create_tile: _create_tile,
        pl.full: _full,
        pl.full_tensor: _full_tensor,
        pl.dim: _dim,
        computation.slice: _slice,
        computation.assemble: _assemble,
        computation.reshape: _reshape,
    }
)
