"""The type of a part of a tensor that names the same memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto.ir.errors import IrTypeError
from pypto.ir.memory_rules import axis_tensor, check_tensor_type
from pypto.ir.nodes import (
    AttrValue,
    Dim,
    DynDim,
    Operand,
    TensorLayout,
    TensorType,
    Type,
)
from pypto.ir.regions import check_region, show_tuple
from pypto.ir.typing_rules import show_type


def tensor_view(operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """A part of a tensor without the axes to drop.

    The operands are the tensor, an offset for each of its axes, and an extent for each ``None``
    of ``attrs["shape"]``; ``attrs["symbols"]`` names those extents.
    """
    tensor = axis_tensor(operands)
    shape, symbols, drop = attrs["shape"], attrs["symbols"], attrs["drop"]
    assert isinstance(shape, tuple) and isinstance(symbols, tuple) and isinstance(drop, tuple)
    rank = len(tensor.shape)
    if tensor.layout is not TensorLayout.ND:
        raise IrTypeError(
            f"a part of a tensor in layout {tensor.layout.name} is no tensor; pass the whole one "
            "and load the part from it"
        )
    if len(shape) != rank:
        raise IrTypeError(f"needs {rank} extents for a {show_type(tensor)}, got {len(shape)}")
    offsets, sizes = operands[1 : rank + 1], operands[rank + 1 :]
    if len(sizes) != len(symbols) or shape.count(None) != len(symbols):
        raise IrTypeError("needs one operand for each extent that is not a constant")
    static = tuple(extent if isinstance(extent, int) else None for extent in shape)
    check_region(tensor, offsets, static, "takes")
    extents = _extents(tensor, static, symbols)
    for axis in drop:
        if not isinstance(axis, int) or not 0 <= axis < rank or extents[axis] != 1:
            raise IrTypeError(f"cannot drop axis {axis} of a part of {show_tuple(shape)}")
    kept = [axis for axis in range(rank) if axis not in drop]
    part = check_tensor_type([extents[axis] for axis in kept], tensor.dtype)
    adjacent = _adjacent(tensor, extents)
    count = sum(axis >= rank - adjacent for axis in kept)
    return TensorType(part.shape, part.dtype, tensor.layout, None if count == len(kept) else count)


def _extents(
    tensor: TensorType, shape: Sequence[int | None], symbols: Sequence[object]
) -> tuple[Dim, ...]:
    names = iter(symbols)
    extents: list[Dim] = []
    for extent, whole in zip(shape, tensor.shape, strict=True):
        if extent is not None:
            extents.append(extent)
            continue
        symbol = next(names)
        assert isinstance(symbol, str)
        if isinstance(whole, DynDim) and whole.symbol == symbol:
            extents.append(whole)
        else:
            extents.append(DynDim(symbol, whole if isinstance(whole, int) else whole.limit))
    return tuple(extents)


def _adjacent(tensor: TensorType, extents: Sequence[Dim]) -> int:
    """How many of the last axes of a part are stored without gaps."""
    rank, count, whole = len(extents), 0, True
    known = rank if tensor.adjacent is None else tensor.adjacent
    for axis in reversed(range(rank)):
        # The stride of an axis of one element does not matter.
        if extents[axis] != 1 and (axis < rank - known or not whole):
            break
        count += 1
        # Past an axis that is cut, one step further out jumps over what was left away.
        whole = whole and extents[axis] == tensor.shape[axis]
    return count


def extent_fits(wanted: Dim, given: Dim) -> bool:
    """Whether an extent may be passed for a parameter's.

    The orchestration sees to it at run time where only then the extent is known. A constant takes
    what the caller computes, but no dimension with a name.
    """
    if isinstance(wanted, DynDim) or isinstance(given, int):
        return isinstance(wanted, DynDim) or wanted == given
    return not given.symbol.isidentifier()
