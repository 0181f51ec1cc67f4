"""``pl.tile``: the functions that work on on-chip tiles."""

from __future__ import annotations

from pypto.language.functions import cast, concat, full, load, move, reshape, store
from pypto.language.functions import create_tile as create

__all__ = ["cast", "concat", "create", "full", "load", "move", "reshape", "store"]
