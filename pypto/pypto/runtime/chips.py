"""The simulated chips of this process.

A chip is like a device: programs that name the same one share it, and it lives as long as the
process. Its threads start with its first run, and again in a forked child.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pypto.backend import ExecutionMode, target_of
from pypto.runtime.errors import ToolchainUnavailable
from pypto.runtime.options import RingSize, RunOptions

if TYPE_CHECKING:
    from pypto._native import Chip


@dataclass(frozen=True, slots=True)
class _ChipKey:
    """What makes two chips different. A size of ``None`` is the runtime's default."""

    platform: str
    task_window: int | None
    heap_bytes: int | None


_chips: dict[_ChipKey, Chip] = {}


def shared_chip(options: RunOptions) -> Chip:
    """The process's chip for ``options``; errors as for `open_chip`."""
    key = _key(options)
    chip = _chips.get(key)
    if chip is None:
        # No lock, which a fork could leave taken in the child: of two chips opened at once one is
        # dropped, and a chip that never ran has no threads.
        chip = _chips.setdefault(key, _open(key))
    return chip


def open_chip(options: RunOptions) -> Chip:
    """A chip of one's own for ``options``.

    The simulated chip has one task ring and one heap for all scope depths, so the largest of four
    sizes counts; it has no dependency pool and no scheduler threads that could be numbered.
    Raises ToolchainUnavailable for a device.
    """
    return _open(_key(options))


def _key(options: RunOptions) -> _ChipKey:
    target = target_of(options.platform)
    if target.mode is not ExecutionMode.SIM:
        raise ToolchainUnavailable(
            f"platform {options.platform!r} needs a device and its driver, which this version "
            f"does not drive; run on '{target.backend_type.arch}sim'"
        )
    return _ChipKey(
        options.platform, _largest(options.ring_task_window), _largest(options.ring_heap)
    )


def _largest(size: RingSize | None) -> int | None:
    return max(size) if isinstance(size, tuple) else size


def _open(key: _ChipKey) -> Chip:
    from pypto._native import Chip

    sizes: dict[str, Any] = {"task_window": key.task_window, "heap_bytes": key.heap_bytes}
    return Chip(key.platform, **{name: size for name, size in sizes.items() if size is not None})
