"""Automatic tiling: tensor-level computation that on-chip memory cannot hold, block by block.

``roles`` says what an operation does to the axes of its operands, ``groups`` which operations
share a loop, ``blocks`` which sizes are worth trying, ``nest`` and ``product`` write the loop,
``fit`` asks memory planning whether it fits, and ``scopes`` takes a whole body apart.
"""

from __future__ import annotations

from pypto.ir.passes.tiling.scopes import tile_scope

__all__ = ["tile_scope"]
