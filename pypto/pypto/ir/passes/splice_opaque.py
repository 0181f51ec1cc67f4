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

from pypto.ir.dtypes import INDEX
from pypto.ir.nodes import (
    AttrValue,
    Call,
    Const,
    Dim,
    DynDim,
    For,
    Function,
    FunctionKind,
    If,
    Op,
    Operand,
    Program,
    Return,
    Scope,
    Stmt,
    TensorType,
    Var,
    While,
)
from pypto.ir.ops import infer_result
from pypto.ir.passes.aliases import written_positions
from pypto.ir.passes.rewrite import fresh, substitute, walk, with_bodies
from pypto.ir.passes.target import TargetLimits
from pypto.ir.typing_rules import type_of


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
        label = f"{callee.name}.{self._calls}"
        own = _OwnValues(self._functions, params, operands, label)
        return own.block([stmt for stmt in callee.body if not isinstance(stmt, Return)])


class _OwnValues:
    """The values of one call: its arguments for the parameters, and new ones for the rest.

    An extent that a parameter names is the argument's, so types are worked out anew.
    """

    def __init__(
        self,
        functions: Mapping[str, Function],
        params: Sequence[Var],
        operands: Sequence[Operand],
        call: str,
    ) -> None:
        self._functions = functions
        self._values: dict[Var, Operand] = dict(zip(params, operands, strict=True))
        self._extents = dict(_extents(params, operands))
        self._call = call

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            extent = self._fixed_extent(stmt)
            if extent is not None and isinstance(stmt, Op) and stmt.result is not None:
                self._values[stmt.result] = Const(extent, INDEX)
                continue
            if isinstance(stmt, Op) and "symbols" in stmt.attrs:
                stmt = self._with_own_extents(stmt)
            self._bind(stmt)
            rebuilt = with_bodies(stmt, self.block)
            if isinstance(stmt, If):
                for result, value in zip(stmt.results, stmt.then_yields, strict=True):
                    self._values[result] = Var(result.name, type_of(self._value(value)))
            out += substitute((rebuilt,), self._values)
        return tuple(out)

    def _value(self, operand: Operand) -> Operand:
        return self._values.get(operand, operand) if isinstance(operand, Var) else operand

    def _fixed_extent(self, stmt: Stmt) -> int | None:
        """What ``tensor.dim`` reads where that is no run-time value in this call."""
        if not isinstance(stmt, Op) or stmt.op != "tensor.dim":
            return None
        tensor, axis = type_of(self._value(stmt.operands[0])), stmt.attrs["axis"]
        assert isinstance(tensor, TensorType) and isinstance(axis, int)
        extent = tensor.shape[axis]
        return extent if isinstance(extent, int) else None

    def _bind(self, stmt: Stmt) -> None:
        """New variables for what a statement binds before its nested bodies end."""
        match stmt:
            case Op(result=Var() as result):
                operands = [self._value(operand) for operand in stmt.operands]
                type_ = infer_result(stmt.op, operands, stmt.attrs)
                self._values[result] = Var(result.name, type_)
            case For() | While():
                for carried in stmt.carried:
                    type_ = type_of(self._value(carried.init))
                    for var in (carried.arg, carried.result):
                        self._values[var] = Var(var.name, type_)
                if isinstance(stmt, For):
                    self._values[stmt.var] = fresh(stmt.var)
            case Call():
                # A result names the memory of an operand, and is of its type.
                positions = written_positions(self._functions[stmt.callee])
                for result, position in zip(stmt.results, positions, strict=True):
                    type_ = type_of(self._value(stmt.operands[position]))
                    self._values[result] = Var(result.name, type_)
        task = stmt.schedule.task if isinstance(stmt, Call | Scope) else None
        if task is not None:
            self._values[task] = fresh(task)

    def _with_own_extents(self, op: Op) -> Op:
        """``tensor.create`` and ``tensor.view`` name run-time extents in their attributes."""
        shape, symbols = op.attrs["shape"], op.attrs["symbols"]
        assert isinstance(shape, tuple) and isinstance(symbols, tuple)
        first = len(op.operands) - len(symbols)
        given = iter(zip(symbols, op.operands[first:], strict=True))
        extents: list[int | None] = []
        operands: list[Operand] = list(op.operands[:first])
        names: list[str] = []
        for extent in shape:
            if isinstance(extent, int):
                extents.append(extent)
                continue
            symbol, operand = next(given)
            dim = self._extents.get(str(symbol), DynDim(f"{symbol}.{self._call}"))
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


def _extents(params: Sequence[Var], operands: Sequence[Operand]) -> Iterator[tuple[str, Dim]]:
    """What each symbol of the parameters stands for in a call."""
    for param, operand in zip(params, operands, strict=True):
        if not isinstance(param.type, TensorType) or not isinstance(operand, Var):
            continue
        assert isinstance(operand.type, TensorType)
        for wanted, given in zip(param.type.shape, operand.type.shape, strict=True):
            if isinstance(wanted, DynDim):
                yield wanted.symbol, given
