"""What the table of operations says of each one."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from pypto.ir.element_sets import Elements
from pypto.ir.typing_rules import Infer


class OperandKind(enum.Enum):
    """What an operand position takes."""

    TENSOR = "a tensor"
    TILE = "a tile"
    SCALAR = "a scalar"
    INDICES = "integer scalars"  # zero or more of them; at most one such position
    SCRATCH = "a scratch tile"  # may be left out
    ARRAY = "an array"


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One operation.

    ``mnemonic`` is its ``.pto`` operation, and ``float_mnemonic`` the one for floating point
    scalars; empty where the operation has no single counterpart. ``scratch`` says that the
    ``.pto`` operation takes a temporary tile like its first operand. ``elements`` are the element
    types of its last tile or tensor. ``optional`` are attributes that may be absent. ``in_place``
    lists operands over which the result may be written, element by element.
    """

    name: str
    operands: tuple[OperandKind, ...]
    attrs: tuple[str, ...]
    infer: Infer
    mnemonic: str
    reference: str
    doc: str
    scratch: bool = False
    optional: tuple[str, ...] = ()  # attributes that need not be there
    float_mnemonic: str = ""
    elements: Elements | None = None
    in_place: tuple[int, ...] = ()

    @property
    def public_name(self) -> str:
        """What a user writes for it, such as ``pl.add`` or ``'+'``."""
        family, name = self.name.split(".")
        if family == "array":
            return f"pl.array.{name}"
        if family == "scalar" and name in SYMBOLS:
            return repr(SYMBOLS[name])
        return "pl." + _PUBLIC.get(name, name)


# The operators of scalar operations, by the rest of the name after ``scalar.``.
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "truediv": "/"}
SYMBOLS |= {"pow": "**"}
SYMBOLS |= {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
SYMBOLS |= {"bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>"}
SYMBOLS |= {"and": "and", "or": "or", "not": "not", "neg": "-"}
_PUBLIC = {"adds": "add", "subs": "sub", "muls": "mul", "divs": "div", "maxs": "maximum"}
_PUBLIC |= {
    "fmods": "fmod",
    "ands": "and_",
    "ors": "or_",
    "xors": "xor",
    "shls": "shl",
    "shrs": "shr",
    "cmps": "cmp",
    "sels": "sel",
    "rsels": "sel",
    "matmul_init": "matmul_acc",
    "transpose_view": "tile.transpose_view",
}
_PUBLIC |= {name: f"tile.{name}" for name in ("get_block_idx", "get_block_num")}
_PUBLIC |= {
    "view": "slice",
    "mins": "minimum",
    "rsubs": "sub",
    "rdivs": "div",
    "assign": "tensor assignment",
}
