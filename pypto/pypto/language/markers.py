"""What annotations and arguments of a kernel are made of.

Subscripting gives immutable values, which the parser reads: ``pl.Tensor[[16, 64], pl.FP32]`` is a
:class:`Tensor` with ``.shape`` and ``.dtype``; the bare class leaves both to the caller's tensor.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar, cast

from pypto.ir.dtypes import DataType
from pypto.ir.nodes import Direction, MemorySpace, TensorLayout


class Level(enum.Enum):
    """Where a ``pl.at`` block runs."""

    CORE_GROUP = "core_group"


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

    def __repr__(self) -> str:
        return f"pl.dynamic({self.name!r})"


def dynamic(name: str) -> DynVar:
    """An extent for annotations that is known only when the kernel runs.

    Tensors whose extents differ there share one compiled kernel. Raises :class:`ValueError` when
    ``name`` is not an identifier.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"pl.dynamic: {name!r} is not an identifier")
    return DynVar(name)


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


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in global memory: ``pl.Tensor[[rows, cols], dtype]``, or bare ``pl.Tensor``."""

    shape: tuple[int | DynVar, ...]
    dtype: DataType
    layout: TensorLayout = TensorLayout.ND
    memref: ClassVar[None] = None

    def __class_getitem__(cls, params: object) -> Tensor:
        items = _items("pl.Tensor", params, 2, 3)
        if len(items) == 3 and items[2] is not TensorLayout.ND:
            raise TypeError(f"pl.Tensor: layout {items[2]!r} is not supported; leave it out")
        shape = _shape("pl.Tensor", items[0])
        if not shape:
            raise TypeError("pl.Tensor: a tensor has at least one dimension")
        return cls(shape, _dtype("pl.Tensor", items[1]))


@dataclass(frozen=True, slots=True)
class Tile:
    """A two-dimensional on-chip tile: ``pl.Tile[[rows, cols], dtype]``, for local variables."""

    shape: tuple[int, int]
    dtype: DataType
    space: MemorySpace | None = None

    def __class_getitem__(cls, params: object) -> Tile:
        items = _items("pl.Tile", params, 2, 3)
        shape = _shape("pl.Tile", items[0])
        if len(shape) != 2 or not all(isinstance(extent, int) for extent in shape):
            raise TypeError("pl.Tile: a tile has two constant extents, such as [16, 64]")
        if len(items) == 3 and not isinstance(items[2], MemorySpace):
            raise TypeError(f"pl.Tile: {items[2]!r} is not a pl.MemorySpace")
        space = cast("MemorySpace", items[2]) if len(items) == 3 else None
        return cls(cast("tuple[int, int]", shape), _dtype("pl.Tile", items[1]), space)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number that is given at each run: ``pl.Scalar[pl.INT32]``, or the bare ``pl.INT32``."""

    dtype: DataType

    def __class_getitem__(cls, dtype: object) -> Scalar:
        return cls(_dtype("pl.Scalar", dtype))


@dataclass(frozen=True, slots=True)
class Directed:
    """A tensor annotation with a direction."""

    direction: Direction
    inner: Tensor | type[Tensor]


def _directed(what: str, direction: Direction, inner: object) -> Directed:
    if inner is not Tensor and not isinstance(inner, Tensor):
        raise TypeError(f"{what}[...] takes a pl.Tensor, not {inner!r}")
    return Directed(direction, inner)


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


@dataclass(frozen=True, slots=True)
class RunTime:
    """The type of :data:`RUNTIME`."""

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME = RunTime()
