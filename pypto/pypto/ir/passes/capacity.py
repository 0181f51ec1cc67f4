"""What to tell of tiles that a memory space cannot hold."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.ir.errors import CompileError
from pypto.ir.nodes import MemorySpace
from pypto.ir.passes.buffers import Buffer

# How many of the tiles in the way an error names.
_NAMED = 6


class CapacityError(CompileError):
    """A memory space cannot hold the tiles of a function."""


def too_large(buffer: Buffer, capacity: int, arch: str) -> CapacityError:
    """A tile that is larger than its space."""
    return CapacityError(
        f"tile {_described(buffer)} takes {buffer.size} bytes of {buffer.type.space.name} memory, "
        f"but {arch} has {capacity}: {buffer.size - capacity} bytes too many; use a smaller tile, "
        f"such as {_smaller(buffer, capacity)}",
        buffer.span,
    )


def too_much(
    buffers: Sequence[Buffer], space: MemorySpace, capacity: int, arch: str
) -> CapacityError:
    """Blame the first tile that, with all that is alive beside it, asks for too much."""
    worst, need, beside = buffers[0], 0, list[Buffer]()
    for buffer in buffers:
        alive = [b for b in buffers if b is not buffer and b.alive_at(buffer.start)]
        total = buffer.size + sum(b.size for b in alive)
        if total > need:
            worst, need, beside = buffer, total, alive
        if total > capacity:
            break
    largest = sorted(beside, key=lambda b: -b.size)[:_NAMED]
    related = [(b.span, f"tile {_described(b)} takes {b.size} bytes") for b in largest]
    more = len(beside) - len(largest)
    if more:
        left = need - worst.size - sum(b.size for b in largest)
        related.append((worst.span, f"{more} more tiles take {left} bytes"))
    what = (
        f"{need - capacity} bytes too many; use smaller tiles or fewer at once"
        if need > capacity
        else "which fits, but not in one piece beside tiles that live longer; use smaller tiles"
    )
    return CapacityError(
        f"tile {_described(worst)} takes {worst.size} bytes of {space.name} memory beside "
        f"{len(beside)} that {'is' if len(beside) == 1 else 'are'} still needed: {need} bytes "
        f"together, but {arch} has {capacity}: {what}",
        worst.span,
        tuple(related),
    )


def _described(buffer: Buffer) -> str:
    return f"{buffer.name} ({buffer.type.dtype} {list(buffer.type.shape)})"


def _smaller(buffer: Buffer, capacity: int) -> list[int]:
    """The shape with its larger extent halved until it fits."""
    rows, cols = buffer.type.shape
    while rows * cols * buffer.type.dtype.get_byte() > capacity:
        rows, cols = (-(-rows // 2), cols) if rows >= cols else (rows, -(-cols // 2))
    return [rows, cols]
