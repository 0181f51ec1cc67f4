"""Elements of tensors and tiles as `.pto` text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pypto.codegen.pto_tiles import Emitter
from pypto.ir.nodes import Op, Operand, TensorType, TileType, Var
from pypto.ir.ops import OPS

if TYPE_CHECKING:
    from pypto.codegen.pto_kernel import KernelWriter


def _read(writer: KernelWriter, op: Op) -> None:
    assert op.result is not None
    place, type_ = _place(writer, op.operands[0], op.operands[1:])
    name = writer.bind(op.result)
    dtype = writer.type(op.result)
    writer.text.line(f"{name} = pto.{OPS[op.op].mnemonic} {place} : {type_} -> {dtype}", op.span)


def _write(writer: KernelWriter, op: Op) -> None:
    container, *indices, value = op.operands
    _store_scalar(writer, op, container, indices, value)


def _tile_write(writer: KernelWriter, op: Op) -> None:
    """The result is the operand's buffer where nobody else needs that, else a copy of it."""
    source, *indices, value = op.operands
    assert isinstance(source, Var) and op.result is not None
    if writer.address(op) == writer.address_of(source):
        writer.alias(op.result, source)
    else:
        copied = f"ins({writer.tile(source)} : {writer.type(source)})"
        copy = writer.define(op.result, writer.address(op), writer.valid(source))
        out = f"outs({copy} : {writer.type(op.result)})"
        writer.text.line(f"pto.{OPS['tile.move'].mnemonic} {copied} {out}", op.span)
    _store_scalar(writer, op, op.result, indices, value)


def _store_scalar(
    writer: KernelWriter, op: Op, container: Operand, indices: list[Operand], value: Operand
) -> None:
    place, type_ = _place(writer, container, indices)
    types = f"{writer.type(value)}, {type_}"
    writer.text.line(
        f"pto.{OPS[op.op].mnemonic} {writer.scalar(value)}, {place} : {types}", op.span
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
