"""Pass: tensor-level operations of scopes and InCore functions become tile operations.

A tensor-level value is a tile: whole tensors are loaded when an operation first needs them, a
value that only tiles read never touches global memory, and an assignment is a store. One axis
becomes a row ``[1, N]``; three or more collapse onto the last.

A value goes through global memory, in a tensor created before the scope, where the rest of the
orchestration reads it and where a matrix product needs what a vector operation computed (no
direct way leads from Vec to Mat).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.errors import CompileError
from pypto.ir.nodes import Function, FunctionKind, Program, Scope, Stmt, Var
from pypto.ir.passes.lower_scope import ScopeLowering
from pypto.ir.passes.rewrite import reads, with_bodies
from pypto.ir.passes.scope_values import bound_name
from pypto.ir.passes.target import TargetLimits
from pypto.ir.passes.tensor_values import escaping_values


def lower_tensor_operations(program: Program, target: TargetLimits) -> Program:
    """The program without tensor-level computation."""
    functions = {name: _lowered(function) for name, function in program.functions.items()}
    return replace(program, functions=MappingProxyType(functions))


def _lowered(function: Function) -> Function:
    if function.func_type is FunctionKind.INCORE:
        lowering = ScopeLowering(function.body, escaping=frozenset())
        body = lowering.run(function.body)
        if lowering.prelude:
            culprit = lowering.prelude[0]
            raise CompileError(
                f"{bound_name(culprit)} needs a tensor of its own in global memory, which an "
                "InCore function cannot create: create it in the orchestration function with "
                "pl.create_tensor and pass it as a pl.Out parameter",
                culprit.span,
            )
        return replace(function, body=body)
    total = Counter(reads(function.body))
    return replace(function, body=_lower_scopes(function.body, total))


def _lower_scopes(body: Sequence[Stmt], total: Counter[Var]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Scope():
                lowering = ScopeLowering(stmt.body, escaping_values(stmt.body, total))
                lowered = lowering.run(stmt.body)
                out.extend(lowering.prelude)
                out.append(replace(stmt, body=lowered))
            case _:
                out.append(with_bodies(stmt, lambda body: _lower_scopes(body, total)))
    return tuple(out)
