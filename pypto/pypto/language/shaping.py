"""The functions of the kernel language that take parts, put together and turn round."""

from __future__ import annotations

from pypto.ir.nodes import AtomicType
from pypto.language.functions import Value, kernel_only
from pypto.language.markers import PadValue


@kernel_only
def reshape(x: Value, shape: Value) -> Value:
    """The same elements in row-major order under another shape."""


@kernel_only
def slice(
    x: Value,
    shape: Value,
    offset: Value,
    valid_shape: Value = None,
    drop_dims: Value = (),
    pad_value: Value = None,
    clamp: bool = False,
) -> Value:
    """A copy of the region of ``x`` at ``offset``; ``drop_dims`` lists axes of 1 to leave out.

    ``valid_shape`` limits what is read, as ``clamp`` does to what lies inside ``x``; the rest
    holds ``pad_value``. Extents are constants, offsets and ``valid_shape`` may be run-time values.
    Outside a core it is a part of the same memory, as ``x[a:b]`` is, and has no ``pad_value``.

    Without ``pad_value``, what was read is the valid region of the slice and of what is computed of
    it: what is around it is undefined until :func:`fillpad` fills it, reductions do not count it
    and stores do not write it. With ``pad_value``, a tensor's slice is filled and wholly valid. A
    tile's slice keeps what is valid in the tile as its valid region either way, in the same memory
    space.
    """


@kernel_only
def assemble(
    target: Value,
    source: Value,
    offset: Value,
    shape: Value = None,
    *,
    atomic: AtomicType = AtomicType.None_,
) -> Value:
    """Writes ``source`` into ``target`` at ``offset``; the result is the target.

    The target is a tensor and the source a tile or a tensor-level value, or both are tiles: then
    the source's valid region is written, also from Acc or Mat into a tile in Vec, and from Acc
    into one in Mat. ``shape`` is the region's where a tensor-level value has fewer axes than the
    tensor; if left out, it lacks the first ones. ``atomic`` is ``pl.store``'s, where the target is
    a tensor. On a core only.
    """


@kernel_only
def transpose(x: Value, axis1: int, axis2: int) -> Value:
    """Two axes exchanged, by number; negative ones count from the last."""


@kernel_only
def transpose_view(x: Value) -> Value:
    """The last two axes exchanged. A tile may be in Vec or in Mat, and stays there."""


@kernel_only
def fillpad(x: Value, pad_value: Value = PadValue.zero) -> Value:
    """``x`` with ``pad_value`` around its valid region; the result is wholly valid.

    ``pad_value`` is ``pl.PadValue.zero``, ``max`` or ``min`` (the largest and the smallest finite
    value), or 0, ``math.inf`` or ``-math.inf``, which mean the same.
    """


@kernel_only
def fillpad_expand(x: Value, shape: Value = None, pad_value: Value = PadValue.zero) -> Value:
    """``x`` in the upper left corner of ``shape``, with ``pad_value`` around its valid region.

    Without ``shape`` it is ``pl.fillpad``. No extent may shrink.
    """


@kernel_only
def set_validshape(x: Value, rows: Value, cols: Value) -> Value:
    """The same elements, of which the first ``rows`` and ``cols`` are valid, which may be run-time
    values."""


@kernel_only
def concat(a: Value, b: Value) -> Value:
    """The columns of ``a`` and ``b`` side by side."""
