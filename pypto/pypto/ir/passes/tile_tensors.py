"""Pass: tensor-level computation that does not fit on chip whole is computed block by block.

A scope or an InCore function that fits stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    DynDim,
    Function,
    FunctionKind,
    Op,
    Program,
    Return,
    Scope,
    Stmt,
    TensorType,
    Var,
)
from pypto.ir.passes.aliases import Roots
from pypto.ir.passes.lower_scope import ScopeLowering
from pypto.ir.passes.rewrite import bindings, reads, walk, with_bodies
from pypto.ir.passes.target import TargetLimits
from pypto.ir.passes.tensor_values import computed_values, escaping_values
from pypto.ir.passes.tiling import tile_scope
from pypto.ir.passes.tiling.fit import fits


def tile_tensor_operations(program: Program, target: TargetLimits) -> Program:
    """The program in which whole tensors are on chip only where they fit.

    Raises CompileError where an extent that is known at run time only cannot be found out.
    """
    functions = {
        name: function if function.external is not None else _tiled(program, function, target)
        for name, function in program.functions.items()
    }
    return replace(program, functions=MappingProxyType(functions))


def _tiled(program: Program, function: Function, target: TargetLimits) -> Function:
    total = Counter(reads(function.body))
    roots = Roots(program, function.body, exchange=True)

    def tiled(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        before, inside = tile_scope(body, total, roots.__getitem__, target)
        return (*before, *inside)

    def scopes_tiled(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if not isinstance(stmt, Scope):
                out.append(with_bodies(stmt, scopes_tiled))
            elif _stays(stmt.body, escaping_values(stmt.body, total), target):
                out.append(stmt)
            else:
                before, inside = tile_scope(stmt.body, total, roots.__getitem__, target)
                out.extend((*before, replace(stmt, body=inside)))
        return tuple(out)

    if function.func_type is not FunctionKind.INCORE:
        return replace(function, body=scopes_tiled(function.body))
    if _stays(function.body, frozenset(), target):
        return function
    return replace(function, body=tiled(function.body))


def _stays(body: Sequence[Stmt], escaping: frozenset[Var], target: TargetLimits) -> bool:
    """Whether lowering a body as it is gives one that fits, or an error that says why not."""
    values = computed_values(body)
    if not values or _returns_one(body, values):
        return True
    tensors = {v for v in (*reads(body), *bindings(body)) if isinstance(v.type, TensorType)}
    if any(isinstance(e, DynDim) for v in _used_whole(body, values) for e in _shape(v)):
        return False
    try:
        lowered = ScopeLowering(body, escaping).run(body)
    except CompileError:
        return True  # lowering says it again
    return fits(lowered, target) if tensors else True


def _returns_one(body: Sequence[Stmt], values: frozenset[Var]) -> bool:
    return any(isinstance(s, Return) and not values.isdisjoint(s.values) for s in body)


def _used_whole(body: Sequence[Stmt], values: frozenset[Var]) -> set[Var]:
    """The tensors that operations on whole tensors read or make."""
    used = set(values)
    for stmt in walk(body):
        if isinstance(stmt, Op) and stmt.result in values and stmt.op != "tensor.slice":
            used.update(o for o in stmt.operands if isinstance(o, Var))
    return {var for var in used if isinstance(var.type, TensorType)}


def _shape(var: Var) -> tuple[object, ...]:
    assert isinstance(var.type, TensorType)
    return var.type.shape
