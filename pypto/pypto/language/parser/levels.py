"""Whether a block of code that runs on a core works on tiles or on whole tensors.

Both levels are legal there. Where operands do not tell which is meant, the words around do.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

_TILE_CALLS = frozenset({"load", "store", "create_tile", "move"})
# Words of ``pl.tile`` that say nothing of a tile.
_NEUTRAL = frozenset({"get_block_idx", "get_block_num"})


def works_on_tiles(body: Sequence[ast.stmt]) -> bool:
    """Whether a block names tiles, or an operation that only tiles have."""
    return any(_names_tiles(node) for statement in body for node in ast.walk(statement))


def _names_tiles(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="tile"), attr=word)):
            return word not in _NEUTRAL
        # Called alone: what a configuration calls ``load`` is a value like any other.
        case ast.Call(func=ast.Attribute(attr=word) | ast.Name(id=word)):
            return word in _TILE_CALLS
        case ast.Attribute(attr="Tile") | ast.Name(id="Tile"):  # in an annotation
            return True
        case _:
            return False
