"""Pass: an InCore function takes the strides of tensors that are parts of larger ones.

A call may pass a part whose elements have gaps between them for a parameter of a function that
was written for any tensor of that shape. The function is compiled once, so every call then hands
over the strides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.errors import CompileError
from pypto.ir.nodes import Call, Function, FunctionKind, Op, Program, Return, TensorType, Var
from pypto.ir.passes.aliases import Roots
from pypto.ir.passes.rewrite import bindings, substitute, walk
from pypto.ir.passes.target import TargetLimits
from pypto.ir.typing_rules import type_of


def take_strides(program: Program, target: TargetLimits) -> Program:
    """The program with parameters that may receive a part with gaps typed accordingly."""
    adjacent = _adjacent(program)
    functions = {
        name: _with_strides(program, function, adjacent.get(name, {}))
        for name, function in program.functions.items()
    }
    return replace(program, functions=MappingProxyType(functions))


def _adjacent(program: Program) -> dict[str, dict[Var, int]]:
    """By function: the parameters that receive parts, and how many of their axes have no gaps."""
    found: dict[str, dict[Var, int]] = {}
    for function in program.functions.values():
        for stmt in walk(function.body):
            if not isinstance(stmt, Call):
                continue
            known = found.setdefault(stmt.callee, {})
            params = program.functions[stmt.callee].params
            for operand, param in zip(stmt.operands, params, strict=True):
                given = operand.type if isinstance(operand, Var) else None
                if isinstance(given, TensorType) and given.adjacent is not None:
                    least = known.get(param.var, given.adjacent)
                    known[param.var] = min(least, given.adjacent)
    return found


def _with_strides(program: Program, function: Function, adjacent: Mapping[Var, int]) -> Function:
    if not adjacent or function.func_type is not FunctionKind.INCORE or function.external:
        return function
    roots = Roots(program, function.body, exchange=False)
    for stmt in walk(function.body):
        if not isinstance(stmt, Op) or stmt.op != "tensor.reshape":
            continue
        source = stmt.operands[0]
        if isinstance(source, Var) and roots[source] in adjacent:
            raise CompileError(
                f"{roots[source].name} is given a part of a larger tensor with gaps between its "
                "elements, so it cannot have another shape: load tiles of two dimensions with "
                "pl.load, or pass a part of whole rows",
                stmt.span,
            )
    mapping = {
        var: Var(var.name, replace(var.type, adjacent=adjacent[roots[var]]))
        for var in (*(param.var for param in function.params), *bindings(function.body))
        if isinstance(var.type, TensorType) and roots[var] in adjacent
    }
    body = substitute(function.body, mapping)
    types = function.return_types
    if body and isinstance(body[-1], Return):
        types = tuple(type_of(value) for value in body[-1].values)
    return replace(
        function,
        params=tuple(replace(p, var=mapping.get(p.var, p.var)) for p in function.params),
        body=body,
        return_types=types,
    )
