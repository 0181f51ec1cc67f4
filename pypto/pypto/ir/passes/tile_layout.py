"""How a tile lies in on-chip memory: the one place that knows.

Vec tiles are plain: row-major, or column-major where there is a single column, which the row
operations read as one value a row. The other spaces are boxed: their elements lie in boxes of
16 x 32 bytes (Acc: 16 x 16), so physical extents are rounded up to whole boxes and the valid
region stays as the program says. Rows of a Vec tile need no padding: the instruction set has no
rule about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto.ir.dtypes import INT8, INT32
from pypto.ir.nodes import MemorySpace, TileType

ALIGNMENT = 32

_BOX = 16
# A row of int8 in a box holds 32 of them; an int32 accumulator has the extents of its factors.
_WIDE_BOX = 32
_WIDE = (INT8, INT32)


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of boxes (``blayout``), of elements in a box, and the bytes of a box."""

    blayout: str
    slayout: str
    fractal: int


_PLAIN = Layout("row_major", "none_box", 512)
_COLUMN = Layout("col_major", "none_box", 512)
_NZ = Layout("col_major", "row_major", 512)

_BOXED: Mapping[MemorySpace, Layout] = {
    MemorySpace.Mat: _NZ,
    MemorySpace.Left: Layout("row_major", "row_major", 512),
    MemorySpace.Right: Layout("row_major", "col_major", 512),
    MemorySpace.Acc: Layout("col_major", "row_major", 1024),
}
_BOXED_BY_ARCH: Mapping[tuple[str, MemorySpace], Layout] = {("a5", MemorySpace.Left): _NZ}


def layout_of(tile: TileType, arch: str) -> Layout:
    """The layout of a tile on an architecture."""
    if tile.space in _BOXED:
        return _BOXED_BY_ARCH.get((arch, tile.space), _BOXED[tile.space])
    return _COLUMN if tile.shape[1] == 1 else _PLAIN


def physical_shape(tile: TileType) -> tuple[int, int]:
    """The extents that a tile takes in memory."""
    if tile.space not in _BOXED:
        return tile.shape
    box = _WIDE_BOX if tile.dtype in _WIDE else _BOX
    rows, cols = tile.shape
    return _up(rows, box), _up(cols, box)


def tile_bytes(tile: TileType) -> int:
    """The bytes that a tile takes, a multiple of the alignment."""
    rows, cols = physical_shape(tile)
    return _up(rows * cols * tile.dtype.get_byte(), ALIGNMENT)


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
