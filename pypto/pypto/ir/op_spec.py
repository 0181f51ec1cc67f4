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


class Role(enum.Enum):
    """How the elements of a result depend on those of the operands."""

    MAP = "each on those at its own place, in its row or in its column"
    REDUCE = "each on a whole row or a whole column"
    PRODUCT = "each on a row of one and a column of the other"
    TRANSPOSE = "each on the one at its place with row and column exchanged"
    FILL = "on nothing"
    READ = "each on one element of memory"
    WRITE = "memory takes the elements"
    MEMORY = "nothing is computed: memory is named, or one element of it touched"
    WHOLE = "not known: the operation needs its operands whole"


@dataclass(frozen=True, slots=True)
class Reduction:
    """``axis`` is the one that becomes 1; ``joined_by`` joins the results of two parts of it."""

    axis: int
    joined_by: str


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One operation.

    ``mnemonic`` is its ``.pto`` operation, and ``float_mnemonic`` the one for floating point
    scalars; empty where the operation has no single counterpart. ``scratch`` says that the
    ``.pto`` operation takes a temporary tile like its first operand. ``elements`` are the element
    types of its last tile or tensor. ``optional`` are attributes that may be absent. ``in_place``
    lists operands over which the result may be written, element by element.

    ``aliases`` is the operand whose memory the result is another name of, ``reads`` are those
    whose memory is read, and ``writes`` says that the aliased one is written. What ``faults`` may
    end the run. What ``pads`` has a result that is valid everywhere. What is ``off_core`` stands in
    orchestration code alone. ``place`` is the field of the run-time context that is asked for.

    Of two tiles or tensors, ``scalar_forms`` are the operations with a scalar in the place of the
    right and of the left one, empty where there is none, ``line_form`` is the end of the names of
    those with one value a row or a column, ``of_scalars`` the operation on two scalars, and what
    ``commutes`` has the same result when its operands are exchanged.

    Of scalars, ``symbol`` is the operator that users write, ``cpp`` the expression of C++ code, of
    truth values and integers, and ``float_cpp`` the one of floats, in which ``$0`` and ``$1`` are
    the operands and ``$T`` is the type of the result. ``neutral`` are the numbers that, as the
    left or the right operand, leave the other one as it is.
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
    role: Role = Role.WHOLE
    reduces: Reduction | None = None
    aliases: int | None = None
    reads: tuple[int, ...] = ()
    writes: bool = False
    faults: bool = False
    pads: bool = False
    off_core: bool = False
    place: str = ""
    public: str = ""  # after ``pl.``, where that is not the rest of the name
    scalar_forms: tuple[str, str] = ("", "")
    line_form: str = ""
    commutes: bool = False
    of_scalars: str = ""
    symbol: str = ""
    cpp: str = ""
    float_cpp: str = ""
    neutral: tuple[int | None, int | None] = (None, None)

    @property
    def public_name(self) -> str:
        """What a user writes for it, such as ``pl.add`` or ``'+'``."""
        family, name = self.name.split(".")
        if family == "array":
            return f"pl.array.{name}"
        if self.symbol:
            return repr(self.symbol)
        return f"pl.{self.public or name}"
