"""Which block sizes are worth trying, best first.

Sizes come from cutting an extent into more and more parts of one size. A size that divides the
extent is preferred to one that leaves a smaller last block; others are whole multiples of what
the hardware moves at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pypto.ir.nodes import Dim, MemorySpace
from pypto.ir.passes.target import TargetLimits
from pypto.ir.passes.tiling.roles import Extents

# What a block of a run-time extent starts from: more seldom fits and gains nothing.
_RUN_TIME = 1024
# Elements of a row that are worth an instruction and a transfer of their own.
_WIDE = 128
_ROWS = 8
# Extents of a block of a matrix product, in elements: whole boxes of every space.
_PRODUCT = (256, 128, 64, 32)
_BOX = 32


@dataclass(frozen=True, slots=True)
class Blocks:
    """Rows and columns of a block, and how much of the inner extent a product takes at once."""

    rows: int
    cols: int
    inner: int = 0


def cuts(extent: Dim, *, down_to: int = 1) -> list[int]:
    """Block sizes of an extent, largest first; the first holds all of it where that is known."""
    whole = extent if isinstance(extent, int) else _RUN_TIME
    sizes = [whole]
    power = 1
    while sizes[-1] > down_to:
        for count in (2 * power, 3 * power):
            size = max(_near(whole, -(-whole // count)), down_to)
            if size < sizes[-1]:
                sizes.append(size)
        power *= 2
    return sizes


def _near(whole: int, size: int) -> int:
    """A size of about that, which divides the whole or is a multiple of 8 or 16."""
    for divisor in range(size, size * 2 // 3, -1):
        if whole % divisor == 0 and (divisor % 8 == 0 or divisor < 8):
            return divisor
    quantum = 16 if size > 16 else 8 if size > 8 else 1
    return -(-size // quantum) * quantum


def largest(sizes: Sequence[Blocks], fits: Callable[[Blocks], bool]) -> Blocks | None:
    """The first of descending sizes that fits; those after one that fits do too."""
    if not sizes or not fits(sizes[-1]):
        return None
    low, high = 0, len(sizes) - 1
    while low < high:
        middle = (low + high) // 2
        if fits(sizes[middle]):
            high = middle
        else:
            low = middle + 1
    return sizes[low]


def of_rows(extents: Extents, *, whole: bool) -> Iterator[list[Blocks]]:
    """Families for loops over rows, or over rows and columns; ``whole`` rows only."""
    rows, cols = extents
    if isinstance(cols, int):
        yield [Blocks(r, cols) for r in cuts(rows)]
    elif whole:
        return
    if not whole:
        few = min(_ROWS, rows) if isinstance(rows, int) else _ROWS
        yield [Blocks(few, c) for c in cuts(cols, down_to=_WIDE) if c >= _WIDE]
        yield [Blocks(1, c) for c in cuts(cols)]


def of_cols(extents: Extents, *, whole: bool) -> Iterator[list[Blocks]]:
    """Families for loops over columns, or over columns and rows; ``whole`` columns only."""
    rows, cols = extents
    if not whole:
        for wide in cuts(cols, down_to=_WIDE):
            few = min(_ROWS, rows) if isinstance(rows, int) else _ROWS
            yield [Blocks(r, wide) for r in cuts(rows, down_to=few)]
    if isinstance(rows, int):
        yield [Blocks(rows, c) for c in cuts(cols)]
    if not whole:
        yield [Blocks(1, c) for c in cuts(cols)]


def of_product(
    extents: Extents, inner: Dim, element: int, target: TargetLimits, *, whole: bool
) -> Iterator[list[Blocks]]:
    """Blocks of a product, those first that read the least memory; ``whole`` rows only.

    ``element`` is the size of a factor's element in bytes.
    """
    capacity = target.capacity
    found: list[tuple[float, Blocks]] = []
    for rows in _sides(extents[0]):
        for cols in _sides(extents[1]):
            if whole and (not isinstance(extents[1], int) or cols < extents[1]):
                continue
            if _up(rows) * _up(cols) * 4 > capacity[MemorySpace.Acc]:
                continue
            depth = min(
                capacity[MemorySpace.Left] // (_up(rows) * element),
                capacity[MemorySpace.Right] // (_up(cols) * element),
                capacity[MemorySpace.Mat] // ((_up(rows) + _up(cols)) * element),
            )
            depth = depth // _BOX * _BOX
            if depth:
                found.append((1 / rows + 1 / cols, Blocks(rows, cols, _depth(inner, depth))))
    for _cost, blocks in sorted(found, key=lambda item: item[0]):
        yield [blocks]


def _sides(extent: Dim) -> list[int]:
    if not isinstance(extent, int):
        return list(_PRODUCT)
    cut = (_even(extent, size) for size in _PRODUCT if size < extent)
    return list(dict.fromkeys((extent, *cut)))


def _even(extent: int, size: int) -> int:
    """The smallest block that needs no more turns than one of that size."""
    turns = -(-extent // size)
    return min(size, _up(-(-extent // turns)))


def _depth(inner: Dim, limit: int) -> int:
    """How much of the inner extent a block takes: a divisor of it if a large one fits."""
    if not isinstance(inner, int):
        return limit
    if inner <= limit:
        return inner
    for depth in range(limit, limit // 2, -_BOX):
        if inner % depth == 0:
            return depth
    return limit


def _up(extent: int) -> int:
    return -(-extent // _BOX) * _BOX
