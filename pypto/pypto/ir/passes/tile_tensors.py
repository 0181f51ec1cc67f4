"""Pass: tensor-level computation that does not fit on chip whole is computed block by block.

A scope or an InCore function that fits stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from pypto.ir.passes.block_results import with_results_stored
from pypto.ir.passes.lower_scope import ScopeLowering
from pypto.ir.passes.rewrite import reads, walk, with_bodies
from pypto.ir.passes.target import TargetLimits
from pypto.ir.passes.tensor_values import computed_values, escaping_values
from pypto.ir.passes.tiling import tile_scope
from pypto.ir.passes.tiling.fit import fits
from pypto.ir.passes.valid_values import partly_valid
from pypto.ir.passes.workspaces import with_workspaces


def tile_tensor_operations(program: Program, target: TargetLimits) -> Program:
    """The program in which whole tensors are on chip only where they fit.

    Raises CompileError where an extent that is known at run time only cannot be found out.
    """
    functions: dict[str, Function] = {}
    workspaces: dict[str, Sequence[Op]] = {}
    for name, function in program.functions.items():
        partly = partly_valid(function.body)
        if function.func_type is not FunctionKind.INCORE:
            function = replace(function, body=with_results_stored(function.body, partly))
        total = Counter(reads(function.body))
        tiling = _Tiling(total, _Memory(program, function.body), partly, target)
        if function.func_type is not FunctionKind.INCORE:
            functions[name] = replace(function, body=tiling.of_scopes(function.body))
        elif _stays(function.body, frozenset(), partly, target):
            functions[name] = function
        else:
            before, body = tiling.of_body(function.body)
            # Extents are read on the core too; only what is created is the caller's.
            extents = [op for op in before if op.op == "tensor.dim"]
            functions[name] = replace(function, body=(*extents, *body))
            workspaces[name] = before
    tiled = replace(program, functions=MappingProxyType(functions))
    return with_workspaces(tiled, workspaces)


class _Memory:
    """What memory the variables of one function name."""

    def __init__(self, program: Program, body: Sequence[Stmt]) -> None:
        self._roots = Roots(program, body, exchange=True)
        self._names = Roots(program, body, exchange=True, views=False)

    def tensors(self, var: Var) -> frozenset[Var]:
        return frozenset(self._roots.all(var))

    def name(self, var: Var) -> Var:
        return self._names[var]


@dataclass(frozen=True, slots=True)
class _Tiling:
    """One function: how often it reads each variable, what memory its variables name, and which
    of its values may be valid in part, along which axes."""

    total: Counter[Var]
    memory: _Memory
    partly: Mapping[Var, frozenset[int]]
    target: TargetLimits

    def of_body(self, body: Sequence[Stmt]) -> tuple[list[Op], tuple[Stmt, ...]]:
        return tile_scope(body, self.total, self.memory, self.partly, self.target)

    def of_scopes(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if not isinstance(stmt, Scope):
                out.append(with_bodies(stmt, self.of_scopes))
                continue
            escaping = escaping_values(stmt.body, self.total)
            if _stays(stmt.body, escaping, self.partly, self.target):
                out.append(stmt)
            else:
                before, inside = self.of_body(stmt.body)
                out.extend((*before, replace(stmt, body=inside)))
        return tuple(out)


def _stays(
    body: Sequence[Stmt],
    escaping: frozenset[Var],
    partly: Mapping[Var, frozenset[int]],
    target: TargetLimits,
) -> bool:
    """Whether lowering a body as it is gives one that fits, or an error that says why not."""
    values = computed_values(body)
    used = _used_whole(body, values)
    if not used or _returns_one(body, values):
        return True
    if any(isinstance(e, DynDim) for v in used for e in _shape(v)):
        return False
    try:
        lowered = ScopeLowering(body, escaping, partly).run(body)
    except CompileError:
        return True  # lowering says it again
    return fits(lowered, target)


def _returns_one(body: Sequence[Stmt], values: frozenset[Var]) -> bool:
    return any(isinstance(s, Return) and not values.isdisjoint(s.values) for s in body)


def _used_whole(body: Sequence[Stmt], values: frozenset[Var]) -> set[Var]:
    """The tensors that are read, made or written whole."""
    used = set(values)
    for stmt in walk(body):
        if not isinstance(stmt, Op) or stmt.op == "tensor.slice":
            continue
        if stmt.op == "tensor.assemble":
            used.update(o for o in stmt.operands[-1:] if isinstance(o, Var))
        elif stmt.op == "tensor.assign" or stmt.result in values:
            used.update(o for o in stmt.operands if isinstance(o, Var))
    return {var for var in used if isinstance(var.type, TensorType)}


def _shape(var: Var) -> tuple[object, ...]:
    assert isinstance(var.type, TensorType)
    return var.type.shape
