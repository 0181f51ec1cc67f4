"""Pass: every scope of the orchestration becomes an InCore function and a call of it.

What the scope reads and does not bind becomes parameters, tensors before scalars, each in order of
first use. What it wrote is named by the results of the call. A scalar that the scope computes from
scalars only is computed before it when somebody reads it afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    ArrayType,
    Call,
    Direction,
    Function,
    FunctionKind,
    Op,
    Operand,
    Param,
    Program,
    Return,
    ScalarType,
    Scope,
    Stmt,
    TensorType,
    TileType,
    Var,
)
from pypto.ir.passes.aliases import Roots
from pypto.ir.passes.directions import accesses, direction_of
from pypto.ir.passes.rewrite import (
    bindings,
    free_variables,
    fresh,
    reads,
    substitute,
    with_bodies,
)
from pypto.ir.passes.scope_scalars import orchestration_scalars, with_operands
from pypto.ir.passes.target import TargetLimits
from pypto.ir.type_text import identifier


def outline_scopes(program: Program, target: TargetLimits) -> Program:
    """The program without scopes; the new functions stand before the one that calls them."""
    functions: dict[str, Function] = {}
    taken = set(program.functions)
    for name, function in program.functions.items():
        if function.func_type is FunctionKind.INCORE:
            functions[name] = function
            continue
        outliner = _Outliner(program, function, taken)
        body = outliner.run(function.body)
        functions.update(outliner.functions)
        functions[name] = replace(function, body=body)
    return replace(program, functions=MappingProxyType(functions))


def _renamed(captured: Sequence[Var]) -> dict[Var, Var]:
    """Variables of the new function for captured ones; each parameter has a name of its own."""
    taken: set[str] = set()
    inner: dict[Var, Var] = {}
    for var in captured:
        name = identifier(var.name, taken)
        taken.add(name)
        inner[var] = Var(name, var.type)
    return inner


class _Outliner:
    """One orchestration function."""

    def __init__(self, program: Program, function: Function, taken: set[str]) -> None:
        self.functions: dict[str, Function] = {}
        self._program = program
        self._function = function
        self._total = Counter(reads(function.body))
        self._taken = taken
        self._count = 0
        # Variables that scopes bound, to what names the same thing outside.
        self._renamed: dict[Var, Operand] = {}

    def run(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The body with calls for scopes."""
        return substitute(self._rewritten(body), self._renamed)

    def _rewritten(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Scope():
                    out.extend(self._outline(stmt))
                case _:
                    out.append(with_bodies(stmt, self._rewritten))
        return tuple(out)

    def _outline(self, scope: Scope) -> list[Stmt]:
        hoisted, body = self._hoist_scalars(scope)
        # An earlier scope's result may be another name now of what this one captures.
        body = substitute(body, self._renamed)
        captured = free_variables(body)
        (scheduled,) = substitute((replace(scope, body=()),), self._renamed)
        assert isinstance(scheduled, Scope)
        for var in captured:
            if isinstance(var.type, TileType):
                raise CompileError(
                    f"{var.name} is a tile of another scope; a tile lives inside one pl.at block: "
                    "store it to a tensor there and load it here",
                    scope.span,
                )
            if isinstance(var.type, ArrayType):
                raise CompileError(
                    f"{var.name} is an array, which lives in the orchestration function; read its "
                    "elements before the block",
                    scope.span,
                )
        tensors = [v for v in captured if isinstance(v.type, TensorType)]
        scalars = [v for v in captured if not isinstance(v.type, TensorType)]
        roots = Roots(self._program, body, exchange=False)
        read, written = accesses(self._program, body, roots)
        inner = _renamed((*tensors, *scalars))
        params = [Param(inner[v], direction_of(v, read, written)) for v in tensors]
        params += [Param(inner[v], Direction.In) for v in scalars]
        name = self._name(scope)
        outputs = [v for v in tensors if v in written]
        self.functions[name] = Function(
            name=name,
            func_type=FunctionKind.INCORE,
            params=tuple(params),
            body=(*substitute(body, inner), Return(tuple(inner[v] for v in outputs), scope.span)),
            return_types=tuple(v.type for v in outputs),
            span=scope.span,
        )
        results = tuple(fresh(v) for v in outputs)
        schedule = scheduled.schedule
        kept = tuple(v for v in schedule.no_deps if v in tensors)
        shown = tuple(v for v in schedule.dumps if v in tensors)
        schedule = replace(schedule, no_deps=kept, dumps=shown)
        call = Call(name, (*tensors, *scalars), results, scope.span, schedule)
        views = self._name_escaping(body, roots, dict(zip(outputs, results, strict=True)))
        return [*hoisted, call, *views]

    def _name_escaping(
        self, body: Sequence[Stmt], roots: Roots, results: dict[Var, Var]
    ) -> list[Stmt]:
        """Outer names for tensor variables of the scope; views of them are made again."""
        views: list[Stmt] = []
        producers = {s.result: s for s in body if isinstance(s, Op) and s.result is not None}
        for var in self._escaping(body):
            if isinstance(var.type, TileType):
                raise CompileError(
                    f"{var.name} is a tile of this scope and cannot be used after it: store it "
                    "to a tensor with pl.store",
                    producers[var].span if var in producers else self._function.span,
                )
            root = roots[var]
            outside: Var = results.get(root, root)
            if var.type != root.type and isinstance(var.type, TensorType):
                view = fresh(var)
                span = producers[var].span if var in producers else self._function.span
                shape = tuple(d for d in var.type.shape if isinstance(d, int))
                attrs = MappingProxyType({"shape": shape})
                views.append(Op("tensor.reshape", (outside,), view, span, attrs))
                outside = view
            self._renamed[var] = outside
        return views

    def _escaping(self, body: Sequence[Stmt]) -> list[Var]:
        inside = Counter(reads(body))
        return [v for v in bindings(body) if self._total[v] > inside[v]]

    def _hoist_scalars(self, scope: Scope) -> tuple[list[Stmt], tuple[Stmt, ...]]:
        """The scalar operations whose results escape, and the rest of the scope."""
        movable = orchestration_scalars(scope.body)
        escaping = [v for v in self._escaping(scope.body) if isinstance(v.type, ScalarType)]
        for var in escaping:
            if var not in movable:
                raise CompileError(
                    f"{var.name} is computed inside the scope and cannot be used after it; "
                    "only scalars that need no tile can",
                    scope.span,
                )
        moved = with_operands(escaping, movable)
        rest = tuple(s for s in scope.body if not (isinstance(s, Op) and s.result in moved))
        return [movable[var] for var in movable if var in moved], rest

    def _name(self, scope: Scope) -> str:
        """The hint where it is free, else `<entry>_incore_<n>` or the hint and a number."""
        if scope.name_hint and scope.name_hint not in self._taken:
            self._taken.add(scope.name_hint)
            return scope.name_hint
        stem = scope.name_hint or f"{self._function.name}_incore"
        while (name := f"{stem}_{self._count}") in self._taken:
            self._count += 1
        self._count += 1
        self._taken.add(name)
        return name
