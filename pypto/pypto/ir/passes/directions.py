"""What an InCore function does with its tensors, and the pass that makes signatures say so.

A tensor that is written although its parameter was declared In becomes InOut, one that is read
although it was declared Out becomes InOut: the runtime orders tasks by these directions. The
entry keeps a declared Out, which is what callers see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.nodes import (
    AtomicType,
    Call,
    Direction,
    Function,
    FunctionKind,
    Op,
    Operand,
    Param,
    Program,
    Stmt,
    TensorType,
    Var,
)
from pypto.ir.ops import OPS
from pypto.ir.passes.aliases import Roots, written_positions
from pypto.ir.passes.rewrite import fresh, walk, with_bodies
from pypto.ir.passes.target import TargetLimits


def accesses(program: Program, body: Sequence[Stmt], roots: Roots) -> tuple[set[Var], set[Var]]:
    """The roots that a body reads, and those it writes."""
    read: set[Var] = set()
    written: set[Var] = set()

    def named(*operands: Operand) -> set[Var]:
        return set().union(*(roots.all(o) for o in operands if isinstance(o, Var)))

    for stmt in walk(body):
        match stmt:
            case Op():
                spec = OPS[stmt.op]
                read |= named(*(stmt.operands[position] for position in spec.reads))
                if spec.writes:
                    assert spec.aliases is not None
                    target = named(stmt.operands[spec.aliases])
                    written |= target
                    if stmt.attrs.get("atomic") is AtomicType.Add:
                        read |= target
            case Call():
                params = program.functions[stmt.callee].params
                for operand, param in zip(stmt.operands, params, strict=True):
                    if not isinstance(param.var.type, TensorType):
                        continue
                    if param.direction is not Direction.Out:
                        read |= named(operand)
                    if param.direction is not Direction.In:
                        written |= named(operand)
            case _:
                pass
    return read, written


def direction_of(var: Var, read: set[Var], written: set[Var]) -> Direction:
    """The direction that its use gives a tensor."""
    if var not in written:
        return Direction.In
    return Direction.InOut if var in read else Direction.Out


def upgrade_directions(program: Program, target: TargetLimits) -> Program:
    """The program with directions that cover what each function does, callees first."""
    functions = dict(program.functions)
    current = replace(program, functions=MappingProxyType(functions))  # grows with the loop
    for name, function in program.functions.items():
        if function.external is not None:
            continue  # its declaration is all that is known
        body = _with_all_results(program, current, function.body)
        functions[name] = _upgraded(current, replace(function, body=body))
    return current


def _upgraded(program: Program, function: Function) -> Function:
    in_core = function.func_type is FunctionKind.INCORE
    roots = Roots(program, function.body, exchange=not in_core)
    read, written = accesses(program, function.body, roots)
    params = []
    for param in function.params:
        used = direction_of(param.var, read, written)
        params.append(Param(param.var, _joined(param, used, in_core)))
    return replace(function, params=tuple(params))


def _joined(param: Param, used: Direction, in_core: bool) -> Direction:
    declared = param.direction
    if declared is Direction.Out and not in_core:
        return declared
    if used is Direction.In and declared is Direction.Out:
        # Declared and never written: what it holds has to survive.
        return Direction.InOut
    if declared is Direction.In and used is Direction.Out:
        return Direction.InOut
    return used if declared in (Direction.In, Direction.Out) else declared


def _with_all_results(old: Program, new: Program, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Calls get one result for each parameter that is written now."""

    def rebuilt(stmt: Stmt) -> Stmt:
        match stmt:
            case Call():
                before = written_positions(old.functions[stmt.callee])
                after = written_positions(new.functions[stmt.callee])
                known = dict(zip(before, stmt.results, strict=True))
                results = []
                for position in after:
                    operand = stmt.operands[position]
                    assert isinstance(operand, Var)
                    results.append(known.get(position) or fresh(operand))
                return replace(stmt, results=tuple(results))
            case _:
                return with_bodies(stmt, lambda body: _with_all_results(old, new, body))

    return tuple(rebuilt(stmt) for stmt in body)
