"""The table of operations. Parser, passes, code generation, documentation and tests read it.

``tile.*`` work on on-chip tiles, ``tensor.*`` on tensors in global memory (those that compute
exist in the frontend form only), ``scalar.*`` on run-time scalars. Attributes are values known
when the kernel is compiled.

``reference`` is the meaning as a torch expression over the operands ``x0, x1, ...`` (the scratch
operand is not one of them) and the attributes by name, for operations that torch can express.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pypto.ir.errors import IrTypeError
from pypto.ir.nodes import (
    ArrayType,
    AttrValue,
    Operand,
    ScalarType,
    TensorType,
    TileType,
    Type,
)
from pypto.ir.op_rows import rows
from pypto.ir.op_spec import OperandKind, OpSpec
from pypto.ir.typing_rules import show_type, type_of

__all__ = ["OPS", "OpSpec", "OperandKind", "infer_result"]

OPS: Mapping[str, OpSpec] = MappingProxyType({spec.name: spec for spec in rows()})


def _fits(kind: OperandKind, type_: Type) -> bool:
    if kind is OperandKind.TENSOR:
        return isinstance(type_, TensorType)
    if kind in (OperandKind.TILE, OperandKind.SCRATCH):
        return isinstance(type_, TileType)
    if kind is OperandKind.ARRAY:
        return isinstance(type_, ArrayType)
    if kind is OperandKind.SCALAR:
        return isinstance(type_, ScalarType)
    return isinstance(type_, ScalarType) and type_.dtype.is_int


def _expected_kinds(spec: OpSpec, count: int) -> tuple[OperandKind, ...]:
    """The kind of each of ``count`` operands; shorter or longer when the count is wrong."""
    kinds = spec.operands
    if kinds and kinds[-1] is OperandKind.SCRATCH and count == len(kinds) - 1:
        return kinds[:-1]
    if OperandKind.INDICES in kinds:
        at = kinds.index(OperandKind.INDICES)
        return (
            kinds[:at] + (OperandKind.INDICES,) * max(0, count - len(kinds) + 1) + kinds[at + 1 :]
        )
    return kinds


def infer_result(name: str, operands: Sequence[Operand], attrs: Mapping[str, AttrValue]) -> Type:
    """The result type of an operation.

    Raises :class:`IrTypeError`, whose message starts with the operation's public name, when the
    operands or the attributes do not fit.
    """
    spec = OPS[name]
    kinds = _expected_kinds(spec, len(operands))
    if len(kinds) != len(operands):
        raise IrTypeError(
            f"{spec.public_name}: takes {len(kinds)} operands, but got {len(operands)}"
        )
    for index, (kind, operand) in enumerate(zip(kinds, operands, strict=True)):
        if not _fits(kind, type_of(operand)):
            given = type_of(operand)
            tensor = kind is OperandKind.TILE and isinstance(given, TensorType)
            remedy = "; load the tensor with pl.load first" if tensor else ""
            raise IrTypeError(
                f"{spec.public_name}: argument {index + 1} must be {kind.value}, but is a "
                f"{show_type(given)}{remedy}"
            )
    missing = set(spec.attrs) - set(attrs)
    if missing or set(attrs) - {*spec.attrs, *spec.optional}:
        raise IrTypeError(
            f"{spec.public_name}: takes the attributes {sorted(spec.attrs)}, got {sorted(attrs)}"
        )
    try:
        _check_elements(spec, operands)
        return spec.infer(operands, attrs)
    except IrTypeError as error:
        raise IrTypeError(f"{spec.public_name}: {error}") from None


def _check_elements(spec: OpSpec, operands: Sequence[Operand]) -> None:
    """The last tile or tensor that is not a scratch tile has an element type that fits."""
    if spec.elements is None:
        return
    worked_on = next(
        type_of(operand)
        for kind, operand in reversed(tuple(zip(spec.operands, operands, strict=False)))
        if kind in (OperandKind.TILE, OperandKind.TENSOR)
    )
    if worked_on.dtype not in spec.elements:
        raise IrTypeError(
            f"{spec.elements.demand} a {show_type(worked_on)}; {spec.elements.remedy}"
        )
