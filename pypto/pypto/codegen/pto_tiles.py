"""Tile operations as `.pto` text: one function a form, one table from operation to function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pypto.ir.dtypes import INDEX, DataType
from pypto.ir.nodes import AtomicType, Const, Op, Operand, TileType, Var
from pypto.ir.ops import OPS
from pypto.ir.typing_rules import COMPARISONS
from pypto.ir.window_rules import region_valid

if TYPE_CHECKING:
    from pypto.codegen.pto_kernel import KernelWriter

Valid = tuple[str | None, str | None]
Emitter = Callable[["KernelWriter", Op], None]


def _tile_type(operand: Operand) -> TileType:
    assert isinstance(operand, Var) and isinstance(operand.type, TileType)
    return operand.type


def _var(operand: Operand | None) -> Var:
    assert isinstance(operand, Var)
    return operand


def _instruction(
    writer: KernelWriter,
    op: Op,
    sources: tuple[Operand, ...],
    valid: Valid,
    *,
    attribute: str = "",
    pad: str = "",
) -> None:
    """Declare the result and write `pto.x ins(sources) outs(result)`."""
    result = _var(op.result)
    names = ", ".join(writer.tile(o) if _is_tile(o) else writer.scalar(o) for o in sources)
    types = ", ".join(writer.type(o) for o in sources)
    target = writer.define(result, writer.address(op), valid, pad)
    writer.text.line(
        f"pto.{OPS[op.op].mnemonic} ins({names} : {types}) "
        f"outs({target} : {writer.type(result)}){attribute}",
        op.span,
    )


def _is_tile(operand: Operand) -> bool:
    return isinstance(operand, Var) and isinstance(operand.type, TileType)


def _elementwise(writer: KernelWriter, op: Op) -> None:
    _instruction(writer, op, op.operands, writer.valid(_var(op.operands[0])))


def _reversed_scalar(writer: KernelWriter, op: Op) -> None:
    """A scalar on the left, which these instructions take first."""
    *mask, tile, scalar = op.operands
    _instruction(writer, op, (*mask, scalar, tile), writer.valid(_var(tile)))


def _selected(writer: KernelWriter, op: Op) -> None:
    _instruction(writer, op, op.operands, writer.valid(_var(op.operands[1])))


def _compared(writer: KernelWriter, op: Op) -> None:
    kind = op.attrs["cmp_type"]
    assert isinstance(kind, int)
    attribute = f" {{cmpMode = #pto<cmp {COMPARISONS[kind].upper()}>}}"
    _instruction(writer, op, op.operands, writer.valid(_var(op.operands[0])), attribute=attribute)


def _reduction(writer: KernelWriter, op: Op) -> None:
    reduction = OPS[op.op].reduces
    assert reduction is not None
    rows, cols = writer.valid(_var(op.operands[0]))
    valid = (rows, None) if reduction.axis == 1 else (None, cols)
    _instruction(writer, op, op.operands, valid)


def _transpose(writer: KernelWriter, op: Op) -> None:
    rows, cols = writer.valid(_var(op.operands[0]))
    _instruction(writer, op, op.operands, (cols, rows))


def _fillpad(writer: KernelWriter, op: Op) -> None:
    pad = op.attrs["pad"]
    assert isinstance(pad, str)
    _instruction(writer, op, op.operands, (None, None), pad=pad)


def _expand(writer: KernelWriter, op: Op) -> None:
    target, vector = op.operands
    _instruction(writer, op, (vector,), writer.valid(_var(target)))


def _matmul(writer: KernelWriter, op: Op) -> None:
    left, right = op.operands
    valid = (writer.valid(_var(left))[0], writer.valid(_var(right))[1])
    _instruction(writer, op, op.operands, valid)


def _matmul_init(writer: KernelWriter, op: Op) -> None:
    """One of two products into the same accumulator."""
    acc, condition, left, right = op.operands
    result = _var(op.result)
    names = [writer.tile(o) for o in (acc, left, right)]
    types = [writer.type(o) for o in (acc, left, right)]
    target = writer.define(result, writer.address(op), writer.valid(_var(acc)))
    out = f"outs({target} : {writer.type(result)})"
    text = writer.text
    text.line(f"scf.if {writer.scalar(condition)} {{")
    with text.block():
        ins = f"{', '.join(names[1:])} : {', '.join(types[1:])}"
        text.line(f"pto.{OPS['tile.matmul'].mnemonic} ins({ins}) {out}", op.span)
    text.line("} else {")
    with text.block():
        ins = f"{', '.join(names)} : {', '.join(types)}"
        text.line(f"pto.{OPS['tile.matmul_acc'].mnemonic} ins({ins}) {out}", op.span)
    text.line("}", op.span)


def _cast(writer: KernelWriter, op: Op) -> None:
    mode = op.attrs["mode"]
    assert isinstance(mode, str)
    attribute = f" {{rmode = #pto<round_mode {mode.upper()}>}}"
    valid = writer.valid(_var(op.operands[0]))
    _instruction(writer, op, op.operands, valid, attribute=attribute)


def _reshape(writer: KernelWriter, op: Op) -> None:
    source = _var(op.operands[0])
    rows, cols = writer.valid(source)
    same = _tile_type(source).shape == _tile_type(_var(op.result)).shape
    # Only a row and a column turn into each other while their valid region is a run-time value.
    _instruction(writer, op, op.operands, (rows, cols) if same else (cols, rows))


def _concat(writer: KernelWriter, op: Op) -> None:
    left, right = (_var(o) for o in op.operands)
    rows, cols = writer.valid(right)
    total = None
    if _tile_type(_var(op.result)).valid[1] is None:
        total = writer.text.new("valid_col")
        offset = writer.text.index(_tile_type(left).shape[1])
        writer.text.line(f"{total} = arith.addi {offset}, {cols} : index", op.span)
    _instruction(writer, op, op.operands, (rows, total))


def _load(writer: KernelWriter, op: Op) -> None:
    result, (tensor, *offsets) = _var(op.result), op.operands
    valid: Valid = (None, None)
    if op.attrs["has_valid"]:
        *offsets, rows, cols = offsets
        valid = (writer.scalar(rows), writer.scalar(cols))
    target = writer.define(result, writer.address(op), valid)
    part, type_ = writer.partition(tensor, offsets, result, op.span)
    writer.text.line(
        f"pto.{OPS[op.op].mnemonic} ins({part} : {type_}) outs({target} : {writer.type(result)})",
        op.span,
    )


def _store(writer: KernelWriter, op: Op) -> None:
    tile, *offsets, tensor = op.operands
    part, type_ = writer.partition(tensor, offsets, _var(tile), op.span)
    attribute = ""
    if (atomic := op.attrs.get("atomic")) is not None:
        assert isinstance(atomic, AtomicType)
        attribute = f" {{atomicType = #pto<atomic_type {atomic.value}>}}"
    writer.text.line(
        f"pto.{OPS[op.op].mnemonic} ins({writer.tile(tile)} : {writer.type(tile)}) "
        f"outs({part} : {type_}){attribute}",
        op.span,
    )


def _slice(writer: KernelWriter, op: Op) -> None:
    source, (row, col, *bounds) = _var(op.operands[0]), op.operands[1:]
    valid = _slice_valid(writer, op, (row, col), bounds)
    pad = op.attrs["pad"]
    assert isinstance(pad, str)
    _instruction(writer, op, (source, row, col), valid, pad=pad)


def _slice_valid(
    writer: KernelWriter, op: Op, offsets: tuple[Operand, Operand], bounds: list[Operand]
) -> Valid:
    """The valid counts of a slice that its type leaves to run time."""
    source, result = _var(op.operands[0]), _tile_type(_var(op.result))
    type_, counts = _tile_type(source), list[str | None]()
    for axis, offset in enumerate(offsets):
        if result.valid[axis] is not None:
            counts.append(None)
            continue
        extent = result.shape[axis]
        start = int(offset.value) if isinstance(offset, Const) else None
        known = region_valid(type_, axis, start, extent, clamp=op.attrs["clamp"] is True)
        if known is not None:
            count = writer.text.index(known)
        else:
            limit = writer.valid(source)[axis]
            count = _index_op(writer, "subi", limit, writer.scalar(offset), op)
            count = _index_op(writer, "minsi", count, writer.text.index(extent), op)
            count = _index_op(writer, "maxsi", count, writer.text.index(0), op)
        if bounds:
            count = _index_op(writer, "minsi", count, writer.scalar(bounds[axis]), op)
        counts.append(count)
    return counts[0], counts[1]


def _index_op(writer: KernelWriter, name: str, left: str, right: str, op: Op) -> str:
    result = writer.text.new("valid")
    writer.text.line(f"{result} = arith.{name} {left}, {right} : index", op.span)
    return result


def _assemble(writer: KernelWriter, op: Op) -> None:
    target, *offsets, source = op.operands
    _instruction(writer, op, (target, source, *offsets), writer.valid(_var(target)))


def _set_validshape(writer: KernelWriter, op: Op) -> None:
    """A slice from the first element on: what is valid in the source does not bind it."""
    source, *bounds = op.operands
    zero = Const(0, INDEX)
    valid = (writer.scalar(bounds[0]), writer.scalar(bounds[1]))
    _instruction(writer, op, (source, zero, zero), valid)


def _create(writer: KernelWriter, op: Op) -> None:
    writer.define(_var(op.result), writer.address(op))


def _full(writer: KernelWriter, op: Op) -> None:
    value, dtype = op.attrs["value"], op.attrs["dtype"]
    assert isinstance(value, bool | int | float) and isinstance(dtype, DataType)
    number = float(value) if dtype.is_float else int(value)
    _instruction(writer, op, (Const(number, dtype),), (None, None))


_FORMS: Mapping[str, Emitter] = MappingProxyType(
    {
        "tile.load": _load,
        "tile.store": _store,
        "tile.slice": _slice,
        "tile.assemble": _assemble,
        "tile.create": _create,
        "tile.full": _full,
        "tile.matmul": _matmul,
        "tile.cast": _cast,
        "tile.reshape": _reshape,
        "tile.concat": _concat,
        "tile.transpose": _transpose,
        "tile.fillpad": _fillpad,
        "tile.row_expand": _expand,
        "tile.col_expand": _expand,
        "tile.rsubs": _reversed_scalar,
        "tile.rdivs": _reversed_scalar,
        "tile.rsels": _reversed_scalar,
        "tile.sel": _selected,
        "tile.sels": _selected,
        "tile.cmp": _compared,
        "tile.cmps": _compared,
        "tile.matmul_init": _matmul_init,
        "tile.transpose_view": _transpose,
        "tile.fillpad_expand": _fillpad,
        "tile.set_validshape": _set_validshape,
    }
)

# Every tile operation of the table; one that needs nothing special is elementwise in its first
# operand.
TILE_EMITTERS: Mapping[str, Emitter] = MappingProxyType(
    {
        name: _FORMS.get(name, _elementwise if spec.reduces is None else _reduction)
        for name, spec in OPS.items()
        if name.startswith("tile.") and not spec.place
    }
)
