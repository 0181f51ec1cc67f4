"""``pl.tensor``: the functions that work on tensors in global memory."""

from __future__ import annotations

from pypto.language.functions import create_tensor as create
from pypto.language.functions import dim, reshape

__all__ = ["create", "dim", "reshape"]
