"""What annotations and arguments of a kernel are made of.

Subscripting gives immutable values, which the parser reads: ``pl.Tensor[[16, 64], pl.FP32]`` is a
:class:`Tensor` with ``.shape`` and ``.dtype``; the bare class leaves both to the caller's tensor.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pypto.ir.dtypes import TASK_ID, DataType
from pypto.ir.nodes import Direction, MemorySpace, TensorLayout
from pypto.ir.typing_rules import is_whole


class Level(enum.Enum):
    """Where a ``pl.at`` block runs."""

    CORE_GROUP = "core_group"


class SplitMode(enum.Enum):
    """How ``pl.split`` divides vector work: which halves of a tile the two vector cores take."""

    NONE = "none"
    UP_DOWN = "up_down"
    LEFT_RIGHT = "left_right"


class PadValue(enum.Enum):
    """What lies outside the valid region of a padded tile."""

    null = "null"
    zero = "zero"
    max = "max"
    min = "min"


@dataclass(frozen=True, slots=True)
class DynVar:
    """An extent that is known only when the kernel runs. One object stands for one extent."""

    name: str
    limit: int | None = None

    def __repr__(self) -> str:
        limit = "" if self.limit is None else f", limit={self.limit}"
        return f"pl.dynamic({self.name!r}{limit})"


def dynamic(name: str, *, limit: int | None = None) -> DynVar:
    """An extent for annotations that is known only when the kernel runs.

    Tensors whose extents differ there share one compiled kernel. ``limit`` says that the extent is
    never larger. Raises :class:`ValueError` when ``name`` is not an identifier.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"pl.dynamic: {name!r} is not an identifier")
    if limit is not None and (not is_whole(limit) or limit < 1):
        raise ValueError(f"pl.dynamic: limit must be a positive int, not {limit!r}")
    return DynVar(name, limit)


def _shape(what: str, shape: object) -> tuple[int | DynVar, ...]:
    if not isinstance(shape, list | tuple):
        raise TypeError(f"{what}: the shape must be a list such as [16, 64], not {shape!r}")
    for extent in shape:
        if isinstance(extent, bool) or not isinstance(extent, int | DynVar):
            raise TypeError(f"{what}: extent {extent!r} is neither an int nor a pl.dynamic")
        if isinstance(extent, int) and extent < 1:
            raise ValueError(f"{what}: extent {extent} is not positive")
    return tuple(shape)


def _dtype(what: str, dtype: object) -> DataType:
    if not isinstance(dtype, DataType):
        raise TypeError(f"{what}: {dtype!r} is not an element type such as pl.FP32")
    return dtype


def _items(what: str, params: object, least: int, most: int) -> tuple[object, ...]:
    items = params if isinstance(params, tuple) else (params,)
    if not least <= len(items) <= most:
        raise TypeError(f"{what} takes [shape, dtype], such as {what}[[16, 64], pl.FP32]")
    return items


@dataclass(frozen=True, slots=True, init=False)
class TensorView:
    """How a tensor of a program lies in memory; for functions of ``pl.program`` alone.

    ``stride`` gives the distance, in elements, of neighbours along each axis, from the outermost
    to the innermost one; ``None`` is a run-time value. ``adjacent`` says less: how many of the last
    axes are stored without gaps. ``valid_shape`` is all of the tensor.
    """

    stride: tuple[int | DynVar | None, ...] | None
    layout: TensorLayout
    valid_shape: tuple[int | DynVar, ...] | None
    adjacent: int | None

    def __init__(
        self,
        *,
        stride: Sequence[int | DynVar | None] | None = None,
        layout: TensorLayout = TensorLayout.ND,
        valid_shape: Sequence[int | DynVar] | None = None,
        adjacent: int | None = None,
    ) -> None:
        steps = None if stride is None else _strides(stride)
        if not isinstance(layout, TensorLayout):
            raise TypeError(f"pl.TensorView: layout {layout!r} is not one of pl.ND, pl.NZ, pl.DN")
        if adjacent is not None and (type(adjacent) is not int or adjacent < 0):
            raise ValueError(f"pl.TensorView: adjacent must be a number of axes, not {adjacent!r}")
        if adjacent is not None and steps is not None:
            raise TypeError("pl.TensorView: give stride or adjacent, not both")
        valid = None if valid_shape is None else _shape("pl.TensorView", valid_shape)
        for name, value in (
            ("stride", steps),
            ("layout", layout),
            ("valid_shape", valid),
            ("adjacent", adjacent),
        ):
            object.__setattr__(self, name, value)


def _strides(stride: object) -> tuple[int | DynVar | None, ...]:
    if not isinstance(stride, list | tuple):
        raise TypeError(f"pl.TensorView: stride must be a list such as [64, 1], not {stride!r}")
    for step in stride:
        if (
            step is not None
            and not isinstance(step, DynVar)
            and (type(step) is not int or step < 1)
        ):
            raise TypeError(
                f"pl.TensorView: stride {step!r} is neither a positive int, a pl.dynamic nor None"
            )
    return tuple(stride)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in global memory: ``pl.Tensor[[rows, cols], dtype]``, or bare ``pl.Tensor``.

    After these a ``pl.TensorLayout`` or a :class:`TensorView`, and a :class:`MemRef`.
    """

    shape: tuple[int | DynVar, ...]
    dtype: DataType
    layout: TensorLayout = TensorLayout.ND
    view: TensorView | None = None
    memref: MemRef | None = None

    def __class_getitem__(cls, params: object) -> Tensor:
        items = _items("pl.Tensor", params, 2, 4)
        shape = _shape("pl.Tensor", items[0])
        if not shape:
            raise TypeError("pl.Tensor: a tensor has at least one dimension")
        dtype = _dtype("pl.Tensor", items[1])
        rest: dict[str, object] = {}
        kinds = {TensorLayout: "layout", TensorView: "view", MemRef: "memref"}
        for item in items[2:]:
            kind = kinds.get(type(item))
            if kind is None or kind in rest or {kind, *rest} >= {"layout", "view"}:
                raise TypeError(
                    f"pl.Tensor: {item!r} is not one layout such as pl.NZ or one pl.TensorView, "
                    "and one pl.MemRef"
                )
            rest[kind] = item
        if isinstance(view := rest.get("view"), TensorView):
            rest["layout"] = view.layout
        return cls(shape, dtype, **rest)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class MemRef:
    """Where a tile lies: the offset in bytes in its memory space, as memory planning chose it."""

    addr: int

    def __post_init__(self) -> None:
        if isinstance(self.addr, bool) or not isinstance(self.addr, int) or self.addr < 0:
            raise ValueError(f"pl.MemRef: addr must be an offset in bytes, not {self.addr!r}")


@dataclass(frozen=True, slots=True, init=False)
class TileView:
    """What of a tile is valid: rows and columns, ``None`` where that is known only at run time."""

    valid_shape: tuple[int | None, int | None]

    def __init__(self, *, valid_shape: Sequence[int | None]) -> None:
        given = valid_shape if isinstance(valid_shape, list | tuple) else ()
        if len(given) != 2 or not all(extent is None or type(extent) is int for extent in given):
            raise TypeError(
                f"pl.TileView: valid_shape must be two extents, such as [16, None], not "
                f"{valid_shape!r}"
            )
        object.__setattr__(self, "valid_shape", tuple(given))


@dataclass(frozen=True, slots=True)
class Tile:
    """A two-dimensional on-chip tile, for local variables.

    ``pl.Tile[[rows, cols], dtype]``, and after these a :class:`MemRef`, a ``pl.MemorySpace`` and a
    :class:`TileView`, each of which may be left out. What is left out may be anything.
    """

    shape: tuple[int, int]
    dtype: DataType
    space: MemorySpace | None = None
    memref: MemRef | None = None
    view: TileView | None = None

    def __class_getitem__(cls, params: object) -> Tile:
        items = _items("pl.Tile", params, 2, 5)
        shape = _shape("pl.Tile", items[0])
        if len(shape) != 2 or not all(isinstance(extent, int) for extent in shape):
            raise TypeError("pl.Tile: a tile has two constant extents, such as [16, 64]")
        kinds = {MemorySpace: "space", MemRef: "memref", TileView: "view"}
        rest: dict[str, object] = {}
        for item in items[2:]:
            kind = kinds.get(type(item))
            if kind is None or kind in rest:
                raise TypeError(
                    f"pl.Tile: {item!r} is not one pl.MemRef, one pl.MemorySpace or one pl.TileView"
                )
            rest[kind] = item
        dtype = _dtype("pl.Tile", items[1])
        return cls(cast("tuple[int, int]", shape), dtype, **rest)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number that is given at each run: ``pl.Scalar[pl.INT32]``, or the bare ``pl.INT32``."""

    dtype: DataType

    def __class_getitem__(cls, dtype: object) -> Scalar:
        return cls(_dtype("pl.Scalar", dtype))


TaskId = Scalar(TASK_ID)


@dataclass(frozen=True, slots=True)
class Array:
    """``pl.Array[n, dtype]``: an array of scalars in orchestration code, for local variables."""

    size: int
    dtype: DataType

    def __class_getitem__(cls, params: object) -> Array:
        items = params if isinstance(params, tuple) else (params,)
        if len(items) != 2:
            raise TypeError("pl.Array takes [size, dtype], such as pl.Array[4, pl.TASK_ID]")
        size, dtype = items
        if not is_whole(size) or size < 1:
            raise TypeError(f"pl.Array: the size must be a positive int, not {size!r}")
        return cls(size, _dtype("pl.Array", dtype))


@dataclass(frozen=True, slots=True)
class Directed:
    """A tensor annotation with a direction."""

    direction: Direction
    inner: Tensor | type[Tensor]


def _directed(what: str, direction: Direction, inner: object) -> Directed:
    if inner is not Tensor and not isinstance(inner, Tensor):
        raise TypeError(f"{what}[...] takes a pl.Tensor, not {inner!r}")
    return Directed(direction, inner)


class Tuple:
    """``pl.Tuple[T1, T2]``: the annotation of a function that returns several values."""

    def __class_getitem__(cls, params: object) -> tuple[object, ...]:
        return params if isinstance(params, tuple) else (params,)


class Out:
    """``pl.Out[T]``: a tensor that the function only writes."""

    def __class_getitem__(cls, inner: object) -> Directed:
        return _directed("pl.Out", Direction.Out, inner)


class InOut:
    """``pl.InOut[T]``: a tensor that the function reads and writes."""

    def __class_getitem__(cls, inner: object) -> Directed:
        return _directed("pl.InOut", Direction.InOut, inner)


# The public name is part of the language, hence its lower case.
class constexpr:
    """Annotates a parameter whose value is fixed when the kernel is compiled, and part of its
    key: an int, float, bool, str, element type, enum member, or a list of those."""


# What a kernel's text may make of compile-time values, mostly in annotations.
VALUES: tuple[object, ...] = (dynamic, MemRef, TensorView, TileView)


@dataclass(frozen=True, slots=True)
class RunTime:
    """The type of :data:`RUNTIME`."""

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME = RunTime()
