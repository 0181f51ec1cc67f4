"""Types as annotations, and the names that a program's text gives to run-time extents."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence

from pypto.ir.nodes import (
    ArrayType,
    DynDim,
    MemorySpace,
    ScalarType,
    TensorLayout,
    TensorType,
    TileType,
    Type,
)

# Names that the text itself needs.
RESERVED = frozenset({"pl", "self", "float", *keyword.kwlist})


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """A name near ``name`` that Python accepts and that is not taken."""
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    if not text or text[0].isdigit() or keyword.iskeyword(text):
        text = f"_{text}"
    base, count = text, 0
    while text in taken:
        count += 1
        text = f"{base}_{count}"
    return text


class Extents:
    """The names of run-time extents in one text, each declared with ``pl.dynamic``."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._names: dict[DynDim, str] = {}

    def name(self, extent: DynDim) -> str:
        """The name of an extent; a new one is declared."""
        if extent not in self._names:
            self._names[extent] = identifier(extent.symbol, self._taken)
            self._taken.add(self._names[extent])
        return self._names[extent]

    @property
    def names(self) -> frozenset[str]:
        """The names that are declared."""
        return frozenset(self._names.values())

    def declarations(self) -> list[str]:
        """The lines that declare them."""
        return [
            f'{name} = pl.dynamic("{name}"'
            + (")" if extent.limit is None else f", limit={extent.limit})")
            for extent, name in self._names.items()
        ]


def print_type(type_: Type, extents: Extents | None = None, address: int | None = None) -> str:
    """The text of a type, as an annotation; ``address`` is a tile's place in its memory space."""
    if isinstance(type_, ScalarType):
        return f"pl.Scalar[{type_.dtype!r}]"
    if isinstance(type_, ArrayType):
        return f"pl.Array[{type_.size}, {type_.dtype!r}]"
    if isinstance(type_, TensorType):
        return _tensor(type_, Extents(RESERVED) if extents is None else extents)
    return _tile(type_, address)


def _tensor(type_: TensorType, extents: Extents) -> str:
    shape = [extents.name(d) if isinstance(d, DynDim) else str(d) for d in type_.shape]
    text = f"[{', '.join(shape)}], {type_.dtype!r}"
    if type_.layout is not TensorLayout.ND:
        text += f", pl.{type_.layout.name}"
    elif type_.adjacent is not None:
        text += f", pl.TensorView(adjacent={type_.adjacent})"
    return f"pl.Tensor[{text}]"


def _tile(type_: TileType, address: int | None) -> str:
    text = f"{_extents(type_.shape)}, {type_.dtype!r}"
    if address is not None:
        text += f", pl.MemRef({address})"
    if type_.space is not MemorySpace.Vec:
        text += f", pl.Mem.{type_.space.name}"
    if type_.valid != type_.shape:
        text += f", pl.TileView(valid_shape={_extents(type_.valid)})"
    return f"pl.Tile[{text}]"


def _extents(shape: Sequence[int | None]) -> str:
    return f"[{', '.join(str(extent) for extent in shape)}]"
