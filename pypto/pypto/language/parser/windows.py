"""Calls that read or write a part of a tensor or of a tile."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pypto.ir.dtypes import INDEX
from pypto.ir.nodes import AtomicType, AttrValue, Const, DynDim, Operand, TensorType, TileType, Var
from pypto.ir.regions import load_attrs, slice_attrs, tile_slice_attrs
from pypto.ir.typing_rules import rank_of
from pypto.language import functions as pl
from pypto.language import shaping
from pypto.language.parser.diagnostics.exceptions import InvalidOperationError
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import tensor_extent
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
        return _last_two(valid)
    return _clamped(site, tensor, offsets, shape) if site.flag("clamp") else []


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
    frame, rank = site.frame, rank_of(tensor)
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
    offsets = site.indices("offset")
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
