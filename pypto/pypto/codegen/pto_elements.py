"""Elements of tensors and tiles as `.pto` text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pypto.codegen.pto_tiles import Emitter
from pypto.ir.nodes import Op, Operand, TensorType, TileType, Var

if TYPE_CHECKING:
    from pypto.codegen.pto_kernel import KernelWriter


def _read(writer: KernelWriter, op: Op) -> None:
    assert op.result is not None
    place, type_ = _place(writer, op.operands[0], op.operands[1:])
    name = writer.bind(op.result)
    dtype = writer.type(op.result)
    writer.text.line(f"{name} = pto.load_scalar {place} : {type_} -> {dtype}", op.span)


def _write(writer: KernelWriter, op: Op) -> None:
    *at, value = op.operands
    place, type_ = _place(writer, at[0], at[1:])
    dtype = writer.type(value)
    writer.text.line(
        f"pto.store_scalar {writer.scalar(value)}, {place} : {dtype}, {type_}", op.span
    )


def _tile_write(writer: KernelWriter, op: Op) -> None:
    """The result is the operand's buffer where nobody else needs that, else a copy of it."""
    source, *indices, value = op.operands
    assert isinstance(source, Var) and op.result is not None
    if writer.address(op) == writer.address_of(source):
        writer.alias(op.result, source)
    else:
        before = writer.tile(source), writer.type(source)
        copy = writer.define(op.result, writer.address(op), writer.valid(source))
        writer.text.line(
            f"pto.tmov ins({before[0]} : {before[1]}) outs({copy} : {writer.type(op.result)})",
            op.span,
        )
    place, type_ = _place(writer, op.result, indices)
    writer.text.line(
        f"pto.store_scalar {writer.scalar(value)}, {place} : {writer.type(value)}, {type_}",
        op.span,
    )


def _place(
    writer: KernelWriter, container: Operand, indices: list[Operand] | tuple[Operand, ...]
) -> tuple[str, str]:
    """`%x[%i, %j]`, and the type of `%x`."""
    assert isinstance(container, Var)
    names = [writer.scalar(index) for index in indices]
    if isinstance(container.type, TileType):
        return f"{writer.tile(container)}[{', '.join(names)}]", writer.type(container)
    assert isinstance(container.type, TensorType)
    view, type_, rank = writer.view(container)
    names = [writer.text.index(0)] * (rank - len(names)) + names
    return f"{view}[{', '.join(names)}]", type_


ELEMENT_EMITTERS: Mapping[str, Emitter] = MappingProxyType(
    {
        "tensor.read": _read,
        "tile.read": _read,
        "tensor.write": _write,
        "tile.write": _tile_write,
    }
)
