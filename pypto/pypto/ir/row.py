"""What a row says of an operation that exists on tiles and on tensors alike.

The rows are in the modules of their families; :mod:`pypto.ir.op_rows` makes an operation on tiles
and one on tensors out of each.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.element_sets import Elements
from pypto.ir.op_spec import Reduction, Role
from pypto.ir.typing_rules import Infer


@dataclass(frozen=True, slots=True)
class Row:
    """One operation of both families.

    ``operands`` has a letter for each: ``x`` a tile or a tensor, ``s`` a scalar, ``i`` integer
    scalars, ``t`` a temporary tile, which tensor operations do without. The other columns are
    those of :class:`pypto.ir.op_spec.OpSpec`.
    """

    name: str
    operands: str
    elements: Elements
    infer: Infer
    mnemonic: str
    reference: str
    doc: str
    attrs: tuple[str, ...] = ()
    in_place: tuple[int, ...] = ()
    role: Role = Role.MAP
    reduces: Reduction | None = None
    faults: bool = False
    pads: bool = False
    public: str = ""
    scalar_forms: tuple[str, str] = ("", "")
    line_form: str = ""
    commutes: bool = False
    of_scalars: str = ""
