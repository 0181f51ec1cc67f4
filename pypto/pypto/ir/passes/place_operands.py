"""Pass: operands go where the hardware wants them.

The factors of a matrix product move from Mat to Left and Right, and an operation that needs a
temporary tile gets one where the program left it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.nodes import (
    AttrValue,
    Function,
    FunctionKind,
    MemorySpace,
    Op,
    Operand,
    Program,
    Stmt,
    TileType,
    Var,
)
from pypto.ir.op_spec import Role
from pypto.ir.ops import OPS, OperandKind
from pypto.ir.passes.rewrite import with_bodies
from pypto.ir.passes.target import TargetLimits


def place_operands(program: Program, target: TargetLimits) -> Program:
    """The program with every operand in its memory space."""
    functions = {
        name: in_core_ops(function, _placed) for name, function in program.functions.items()
    }
    return replace(program, functions=MappingProxyType(functions))


def in_core_ops(function: Function, rewrite: Callable[[Op], Sequence[Stmt]]) -> Function:
    """An InCore function with each operation replaced; any other function as it is."""

    def rewritten(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Op():
                    out.extend(rewrite(stmt))
                case _:
                    out.append(with_bodies(stmt, rewritten))
        return tuple(out)

    if function.func_type is not FunctionKind.INCORE:
        return function
    return replace(function, body=rewritten(function.body))


def _placed(op: Op) -> Sequence[Stmt]:
    spec = OPS[op.op]
    if spec.role is Role.PRODUCT:
        return _with_factors_moved(op)
    if spec.scratch and len(op.operands) < len(spec.operands):
        assert spec.operands[-1] is OperandKind.SCRATCH
        return _with_scratch(op)
    return (op,)


def _with_factors_moved(op: Op) -> Sequence[Stmt]:
    out: list[Stmt] = []
    operands: list[Operand] = list(op.operands)
    for position, space in ((-2, MemorySpace.Left), (-1, MemorySpace.Right)):
        factor = op.operands[position]
        if isinstance(factor, Var) and isinstance(factor.type, TileType):
            if factor.type.space is space:
                continue
            moved = Var(factor.name, replace(factor.type, space=space))
            attrs = MappingProxyType({"space": space})
            out.append(Op("tile.move", (factor,), moved, op.span, attrs))
            operands[position] = moved
    return (*out, replace(op, operands=tuple(operands)))


def _with_scratch(op: Op) -> Sequence[Stmt]:
    source = op.operands[0]
    assert isinstance(source, Var) and isinstance(source.type, TileType)
    type_ = replace(source.type, valid=source.type.shape)
    scratch = Var(f"{source.name}_tmp", type_)
    attrs: dict[str, AttrValue] = {
        "shape": type_.shape,
        "dtype": type_.dtype,
        "space": type_.space,
    }
    create = Op("tile.create", (), scratch, op.span, MappingProxyType(attrs))
    return (create, replace(op, operands=(*op.operands, scratch)))
