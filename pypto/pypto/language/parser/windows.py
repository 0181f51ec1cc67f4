"""Calls that read or write a part of a tensor or of a tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pypto.ir.dtypes import INDEX
from pypto.ir.nodes import AtomicType, AttrValue, Const, Operand, TileType, Var
from pypto.ir.regions import load_attrs, slice_attrs, tile_slice_attrs
from pypto.ir.typing_rules import rank_of
from pypto.language import functions as pl
from pypto.language import shaping
from pypto.language.parser.diagnostics.exceptions import InvalidOperationError
from pypto.language.parser.frame import Frame
from pypto.language.parser.partial import (
    declared_shape,
    inside,
    shaped_on_core,
    smaller,
    starts_inside,
)
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.values import Value, is_tensor, is_tile, show_value
from pypto.language.parser.views import assign_part, extents_of, part_of_tensor


def _load(site: CallSite) -> Value:
    site.needs_core()
    tensor = site.tensor("tensor")
    offsets = site.indices("offsets")
    extents = site.bounded_ints("shapes")
    shape = _tile_shape(site, "shapes", tensor, extents)
    space = site.space("target_memory")
    valid = _valid_extents(site, tensor, offsets, shape)
    if declared_shape(site.frame, tensor) is not None:
        own = shape if rank_of(tensor) > 1 else shape[1:]
        offsets = starts_inside(site.frame, tensor, offsets, own, site.node)
    if not valid and extents != site.sequence("shapes"):
        valid = _last_two(site.indices("shapes"))
    attrs = load_attrs(shape, space, has_valid=bool(valid))
    return site.emit("tile.load", [tensor, *offsets, *valid], attrs)


def _valid_extents(
    site: CallSite, tensor: Var, offsets: list[Operand], shape: tuple[int, ...]
) -> list[Operand]:
    """The rows and columns to read by ``valid_shape`` or ``clamp``; none where all is read."""
    if site.values["valid_shape"] is not None:
        valid = site.indices("valid_shape")
        rank = rank_of(tensor)
        if len(valid) not in (2, rank):
            raise site.wrong("valid_shape", f"valid_shape needs {rank} extents, got {len(valid)}")
        valid = _last_two(valid)
        if declared_shape(site.frame, tensor) is None:
            return valid
        bounds = _clamped(site, tensor, offsets, shape)
        pairs = zip(valid, bounds, strict=True)
        return [smaller(site.frame, *pair, site.node) for pair in pairs]
    clamp = site.flag("clamp") or declared_shape(site.frame, tensor) is not None
    return _clamped(site, tensor, offsets, shape) if clamp else []


def _last_two(values: list[Operand]) -> list[Operand]:
    return values[-2:] if len(values) > 1 else [Const(1, INDEX), *values]


def _tile_shape(
    site: CallSite, parameter: str, tensor: Var, shape: tuple[int, ...]
) -> tuple[int, ...]:
    """The two extents of the tile that a region of a tensor becomes."""
    rank = rank_of(tensor)
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
    rank = rank_of(tensor)
    if len(offsets) != rank:
        raise site.wrong("offsets", f"needs {rank} offsets for {show_value(tensor)}")
    if rank == 1:
        return [Const(1, INDEX), *inside(site.frame, tensor, offsets, shape[1:], site.node)]
    return inside(site.frame, tensor, offsets, shape, site.node)


def _store(site: CallSite) -> Value:
    site.needs_core()
    tile, tensor = site.tile("tile"), site.tensor("output_tensor")
    if site.values["shapes"] is not None:
        shape = _tile_shape(site, "shapes", tensor, site.static_ints("shapes"))
        assert isinstance(tile.type, TileType)
        if shape != tile.type.shape:
            raise site.wrong(
                "shapes",
                f"shapes is a region of {list(shape)}, but the tile has {list(tile.type.shape)}",
                InvalidOperationError,
            )
    return store_tile(site.frame, tile, site.indices("offsets"), tensor, site)


def _atomicity(site: CallSite) -> dict[str, AttrValue]:
    """The attribute that ``atomic`` asks for; none for a store that overwrites."""
    atomic = site.values["atomic"]
    if not isinstance(atomic, AtomicType):
        raise site.wrong(
            "atomic", f"atomic must be pl.AtomicType.Add or None_, not {show_value(atomic)}"
        )
    return {} if atomic is AtomicType.None_ else {"atomic": atomic}


def store_tile(frame: Frame, tile: Var, offsets: list[Operand], tensor: Var, site: CallSite) -> Var:
    """Writes a tile into a tensor; the result names the tensor's memory."""
    result = site.emit("tile.store", [tile, *offsets, tensor], _atomicity(site))
    frame.values.record_write(result, tensor)
    return result


def _slice(site: CallSite) -> Value:
    source = site.shaped("x")
    if is_tile(source):
        return _tile_slice(site, source)
    return _tensor_slice(site, source) if site.frame.on_core else _view(site, source)


def _tensor_slice(site: CallSite, tensor: Var) -> Value:
    shape = site.static_ints("shape")
    drop, offsets = site.static_ints("drop_dims"), site.indices("offset")
    valid = _valid_extents(site, tensor, offsets, _tile_shape(site, "shape", tensor, shape))
    if declared_shape(site.frame, tensor) is not None:
        offsets = starts_inside(site.frame, tensor, offsets, shape, site.node)
    attrs = slice_attrs(
        (1,) * (rank_of(tensor) - len(shape)) + shape,
        drop=tuple(axis % len(shape) if -len(shape) <= axis else axis for axis in drop),
        has_valid=bool(valid),
        pad="" if site.values["pad_value"] is None else site.pad("pad_value"),
    )
    return site.emit("tensor.slice", [tensor, *offsets, *valid], attrs)


def _view(site: CallSite, tensor: Var) -> Value:
    """``pl.slice`` outside a core: a part of the same memory."""
    extents, offsets, rank = site.sequence("shape"), site.sequence("offset"), rank_of(tensor)
    for parameter, items in (("shape", extents), ("offset", offsets)):
        if len(items) > rank or (parameter == "offset" and len(items) != rank):
            raise site.wrong(
                parameter,
                f"{parameter} needs {rank} entries for {show_value(tensor)}, got {len(items)}",
                InvalidOperationError,
            )
    if site.values["pad_value"] is not None:
        raise site.wrong(
            "pad_value",
            "pad_value fills a copy, but outside a core a slice names a part of the same memory; "
            "slice inside pl.at, or fill what is loaded of the part with pl.fillpad",
        )
    drop = [axis + len(extents) * (axis < 0) for axis in site.static_ints("drop_dims")]
    lead = rank - len(extents)
    drop, extents = [lead + axis for axis in drop], (1,) * lead + extents
    partly = site.values["valid_shape"] is not None or site.flag("clamp")
    if partly or declared_shape(site.frame, tensor) is not None:
        return _partly_valid_view(site, tensor, extents, drop)
    return part_of_tensor(site.frame, tensor, offsets, extents, drop, site.node, site.hint)


def _partly_valid_view(
    site: CallSite, tensor: Var, extents: Sequence[Value], drop: Sequence[int]
) -> Value:
    """The memory of what is valid, remembered with the extents that were asked for."""
    frame, rank = site.frame, rank_of(tensor)
    shape: list[int] = []
    for index, extent in enumerate(extents):
        if isinstance(extent, bool) or not isinstance(extent, int):
            raise site.wrong(
                "shape",
                f"shape[{index}] must be an int known when the kernel is compiled, as only a part "
                f"of it is valid, but is {show_value(extent)}",
            )
        shape.append(extent)
    offsets: list[Operand] = site.indices("offset")
    valid: list[Operand] = [Const(extent, INDEX) for extent in shape]
    if site.values["valid_shape"] is not None:
        given = site.indices("valid_shape")
        if len(given) > rank:
            raise site.wrong("valid_shape", f"valid_shape needs {rank} extents, got {len(given)}")
        valid[rank - len(given) :] = given
        for axis, (bound, extent) in enumerate(zip(valid, shape, strict=True)):
            if isinstance(bound, Const) and not 0 <= bound.value <= extent:
                raise site.wrong(
                    "valid_shape",
                    f"valid_shape[{axis - rank + len(given)}] is {bound.value}, outside 0 to "
                    f"{extent}",
                )
    if site.flag("clamp") or declared_shape(frame, tensor) is not None:
        bounds = inside(frame, tensor, offsets, shape, site.node)
        pairs = zip(valid, bounds, strict=True)
        valid = [smaller(frame, *pair, site.node) for pair in pairs]
        offsets = starts_inside(frame, tensor, offsets, shape, site.node)
    part = part_of_tensor(frame, tensor, offsets, valid, drop, site.node, site.hint)
    frame.values.declared[part] = tuple(e for axis, e in enumerate(shape) if axis not in drop)
    return part


def _tile_slice(site: CallSite, tile: Var) -> Value:
    shape, drop = site.static_ints("shape"), site.static_ints("drop_dims")
    if len(shape) != 2:
        raise site.wrong("shape", f"a tile has two dimensions, but shape is {list(shape)}")
    valid = [] if site.values["valid_shape"] is None else site.indices("valid_shape")
    if len(valid) not in (0, 2):
        raise site.wrong("valid_shape", f"valid_shape needs 2 extents, got {len(valid)}")
    attrs = tile_slice_attrs(
        shape,
        has_valid=bool(valid),
        pad="" if site.values["pad_value"] is None else site.pad("pad_value"),
        clamp=site.flag("clamp"),
    )
    result = site.emit("tile.slice", [tile, *site.indices("offset"), *valid], attrs)
    for axis in drop:
        if not -2 <= axis < 2 or shape[axis] != 1:
            raise site.wrong("drop_dims", f"cannot drop axis {axis} of a region of {list(shape)}")
    # What is left of a tile is a row.
    if shape[0] != 1 and drop:
        result = site.emit("tile.reshape", [result], {"shape": (1, shape[0])})
    return result


def _assemble(site: CallSite) -> Value:
    target, source = site.shaped("target"), site.shaped("source")
    if is_tensor(target):
        return _into_tensor(site, target, source)
    if is_tensor(source):
        raise site.wrong(
            "source", f"cannot write {show_value(source)} into a tile; load it with pl.load"
        )
    if _atomicity(site):
        raise site.wrong("atomic", "a tile is one core's, so nothing is atomic about writing it")
    return site.emit("tile.assemble", [target, *site.indices("offset"), source])


def _into_tensor(site: CallSite, target: Var, source: Var) -> Value:
    frame = site.frame
    if is_tile(source):
        site.needs_core()
        return store_tile(frame, source, site.indices("offset"), target, site)
    if not frame.on_core:
        return _into_part(site, target, source)
    offsets, source = site.indices("offset"), shaped_on_core(frame, source, site.at("source"))
    shape = source.type.shape  # type: ignore[union-attr]
    region = (1,) * (rank_of(target) - len(shape)) + shape
    if site.values["shape"] is not None:
        region = site.static_ints("shape")
    if not all(isinstance(extent, int) for extent in region):
        raise site.wrong("source", f"{show_value(source)} has extents known at run time only")
    attrs: dict[str, AttrValue] = {"shape": region, **_atomicity(site)}
    result = site.emit("tensor.assemble", [target, *offsets, source], attrs)
    frame.values.record_write(result, target)
    return result


def _into_part(site: CallSite, target: Var, source: Var) -> Value:
    """``pl.assemble`` outside a core."""
    frame, offsets, rank = site.frame, site.sequence("offset"), rank_of(target)
    lead = rank - rank_of(source)
    if len(offsets) != rank or lead < 0:
        raise site.wrong(
            "offset",
            f"offset needs {rank} entries for {show_value(target)}, got {len(offsets)}, and the "
            f"source, {show_value(source)}, at most as many dimensions",
            InvalidOperationError,
        )
    extents: list[Value] = [1] * lead + extents_of(frame, source, site.node)
    part = part_of_tensor(frame, target, offsets, extents, range(lead), site.node, target.name)
    assign_part(frame, part, source, site.node)
    return target


WINDOWS: Mapping[object, Handler] = MappingProxyType(
    {
        pl.load: _load,
        pl.store: _store,
        shaping.slice: _slice,
        shaping.assemble: _assemble,
    }
)
