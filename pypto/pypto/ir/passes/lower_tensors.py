"""Pass: tensor-level operations of scopes and InCore functions become tile operations.

A tensor-level value is a tile: whole tensors are loaded when an operation first needs them, a
value that only tiles read never touches global memory, and an assignment is a store. One axis
becomes a row ``[1, N]``; three or more collapse onto the last.

A value goes through global memory, in a tensor created before the scope, where the rest of the
orchestration reads it and where a matrix product needs what a vector operation computed (no
direct way leads from Vec to Mat). Callers of an InCore function create such tensors for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.nodes import Function, FunctionKind, Op, Program, Scope, Stmt, Var
from pypto.ir.passes.lower_scope import ScopeLowering
from pypto.ir.passes.rewrite import reads, with_bodies
from pypto.ir.passes.target import TargetLimits
from pypto.ir.passes.tensor_values import escaping_values
from pypto.ir.passes.valid_values import partly_valid
from pypto.ir.passes.workspaces import with_workspaces


def lower_tensor_operations(program: Program, target: TargetLimits) -> Program:
    """The program without tensor-level computation."""
    functions: dict[str, Function] = {}
    workspaces: dict[str, list[Op]] = {}
    for name, function in program.functions.items():
        if function.func_type is FunctionKind.INCORE:
            lowering = ScopeLowering(function.body, frozenset(), partly_valid(function.body))
            functions[name] = replace(function, body=lowering.run(function.body))
            workspaces[name] = lowering.prelude
        else:
            total, partly = Counter(reads(function.body)), partly_valid(function.body)
            functions[name] = replace(function, body=_lower_scopes(function.body, total, partly))
    lowered = replace(program, functions=MappingProxyType(functions))
    return with_workspaces(lowered, workspaces)


def _lower_scopes(
    body: Sequence[Stmt], total: Counter[Var], partly: Mapping[Var, frozenset[int]]
) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Scope():
                lowering = ScopeLowering(stmt.body, escaping_values(stmt.body, total), partly)
                lowered = lowering.run(stmt.body)
                out.extend(lowering.prelude)
                out.append(replace(stmt, body=lowered))
            case _:
                out.append(with_bodies(stmt, lambda body: _lower_scopes(body, total, partly)))
    return tuple(out)
