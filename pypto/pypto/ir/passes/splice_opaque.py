"""Pass: calls of opaque functions become the statements of their bodies.

An opaque function holds scopes and loops of its own, so what it submits belongs to the
orchestration that calls it. Each call gets variables of its own and run-time extents of its own;
an extent of a parameter becomes the argument's. One that nobody calls is entered from outside and
becomes an orchestration function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.nodes import (
    AttrValue,
    Call,
    Dim,
    DynDim,
    Function,
    FunctionKind,
    Op,
    Operand,
    Program,
    Return,
    Stmt,
    TensorType,
    Type,
    Var,
)
from pypto.ir.passes.aliases import written_positions
from pypto.ir.passes.rewrite import bindings, substitute, walk, with_bodies
from pypto.ir.passes.target import TargetLimits


def splice_opaque_functions(program: Program, target: TargetLimits) -> Program:
    """The program without opaque functions."""
    opaque = {n for n, f in program.functions.items() if f.func_type is FunctionKind.OPAQUE}
    if not opaque:
        return program
    called = {
        stmt.callee
        for function in program.functions.values()
        for stmt in walk(function.body)
        if isinstance(stmt, Call)
    }
    functions: dict[str, Function] = {}
    for name, function in program.functions.items():
        # Callees stand before their callers, so what is spliced holds no opaque call any more.
        spliced = _Splicing(functions, opaque).function(function)
        if name in opaque and name not in called:
            spliced = replace(spliced, func_type=FunctionKind.ORCHESTRATION)
        functions[name] = spliced
    kept = {n: f for n, f in functions.items() if f.func_type is not FunctionKind.OPAQUE}
    return replace(program, functions=MappingProxyType(kept))


class _Splicing:
    """One function that calls opaque ones."""

    def __init__(self, functions: Mapping[str, Function], opaque: set[str]) -> None:
        self._functions = functions
        self._opaque = opaque
        self._calls = 0
        # Results of spliced calls, to the tensors that they name.
        self._named: dict[Var, Operand] = {}

    def function(self, function: Function) -> Function:
        body = self._block(function.body)
        return replace(function, body=substitute(body, self._named))

    def _block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Call) and stmt.callee in self._opaque:
                out.extend(self._spliced(stmt))
            else:
                out.append(with_bodies(stmt, self._block))
        return tuple(out)

    def _spliced(self, call: Call) -> tuple[Stmt, ...]:
        callee = self._functions[call.callee]
        operands = [
            self._named.get(operand, operand) if isinstance(operand, Var) else operand
            for operand in call.operands
        ]
        for result, position in zip(call.results, written_positions(callee), strict=True):
            self._named[result] = operands[position]
        self._calls += 1
        params = [param.var for param in callee.params]
        extents = dict(_extents(params, operands))
        dims = _OwnExtents(extents, f"{callee.name}.{self._calls}")
        mapping: dict[Var, Operand] = dict(zip(params, operands, strict=True))
        for var in bindings(callee.body):
            mapping[var] = Var(var.name, dims.type(var.type))
        body = [stmt for stmt in callee.body if not isinstance(stmt, Return)]
        return dims.block(substitute(body, mapping))


def _extents(params: Sequence[Var], operands: Sequence[Operand]) -> Iterator[tuple[str, Dim]]:
    """What each symbol of the parameters stands for in a call."""
    for param, operand in zip(params, operands, strict=True):
        if not isinstance(param.type, TensorType) or not isinstance(operand, Var):
            continue
        assert isinstance(operand.type, TensorType)
        for wanted, given in zip(param.type.shape, operand.type.shape, strict=True):
            if isinstance(wanted, DynDim):
                yield wanted.symbol, given


class _OwnExtents:
    """The run-time extents of one call: those of its arguments, and new ones for the rest."""

    def __init__(self, known: Mapping[str, Dim], call: str) -> None:
        self._known = known
        self._call = call

    def dim(self, dim: Dim) -> Dim:
        if not isinstance(dim, DynDim):
            return dim
        return self._known.get(dim.symbol, DynDim(f"{dim.symbol}.{self._call}"))

    def type(self, type_: Type) -> Type:
        if not isinstance(type_, TensorType):
            return type_
        return replace(type_, shape=tuple(self.dim(dim) for dim in type_.shape))

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(
            self._created(stmt)
            if isinstance(stmt, Op) and stmt.op == "tensor.create"
            else with_bodies(stmt, self.block)
            for stmt in body
        )

    def _created(self, op: Op) -> Op:
        """``tensor.create`` names run-time extents in its attributes."""
        shape, symbols = op.attrs["shape"], op.attrs["symbols"]
        assert isinstance(shape, tuple) and isinstance(symbols, tuple)
        given = iter(zip(symbols, op.operands, strict=True))
        extents: list[int | None] = []
        operands: list[Operand] = []
        names: list[str] = []
        for extent in shape:
            if isinstance(extent, int):
                extents.append(extent)
                continue
            symbol, operand = next(given)
            dim = self.dim(DynDim(str(symbol)))
            if isinstance(dim, int):
                extents.append(dim)
                continue
            extents.append(None)
            operands.append(operand)
            names.append(dim.symbol)
        attrs: dict[str, AttrValue] = {
            **op.attrs,
            "shape": tuple(extents),
            "symbols": tuple(names),
        }
        return replace(op, operands=tuple(operands), attrs=MappingProxyType(attrs))
