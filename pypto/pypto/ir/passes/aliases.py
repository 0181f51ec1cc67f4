"""Which tensor a tensor variable stands for.

Operations that write give a new variable for the memory they wrote; loops and branches hand such
variables on. The *root* of a variable is the parameter or the created tensor whose memory it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    Call,
    Direction,
    For,
    Function,
    If,
    Op,
    Operand,
    Program,
    Span,
    Stmt,
    TensorType,
    Var,
    While,
)
from pypto.ir.ops import OPS

_MEETS = (
    "{name} may be one of two tensors here ({first} or {second}); "
    "give each tensor a name of its own"
)


class Roots:
    """The root of every tensor variable of a body.

    ``exchange`` says what to do where a loop or a branch hands on different tensors under one
    name: ``True`` makes its result a root of its own, ``False`` is an error that names it. Without
    ``views``, a part of a tensor, and another shape of one, is a root of its own.
    """

    def __init__(
        self, program: Program, body: Sequence[Stmt], *, exchange: bool, views: bool = True
    ) -> None:
        self._parents: dict[Var, Var] = {}
        self._chosen: dict[Var, tuple[Var, Var]] = {}
        self._program = program
        self._exchange = exchange
        self._roots: dict[Var, Var] | None = None
        self._views = views
        self._collect(body)
        self._roots = {}

    def __getitem__(self, var: Var) -> Var:
        known, passed = self._roots, list[Var]()
        while (parent := self._parents.get(var)) is not None:
            if known is not None and var in known:
                var = known[var]
                break
            passed.append(var)
            var = parent
        if known is not None:  # nothing changes any more
            known.update(dict.fromkeys(passed, var))
        return var

    def all(self, var: Var) -> set[Var]:
        """The root of a variable and, where that is one of two tensors, the roots of both."""
        found: set[Var] = set()
        queue = [self[var]]
        while queue:
            root = queue.pop()
            if root not in found:
                found.add(root)
                queue += [self[choice] for choice in self._chosen.get(root, ())]
        return found

    def _collect(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            match stmt:
                case Op():
                    self._collect_op(stmt)
                case Call():
                    written = written_operands(self._program, stmt)
                    self._parents.update(zip(stmt.results, written, strict=True))
                case For() | While():
                    self._collect_loop(stmt)
                case If():
                    self._collect(stmt.then_body)
                    self._collect(stmt.else_body)
                    pairs = zip(stmt.results, stmt.then_yields, stmt.else_yields, strict=True)
                    for result, first, second in pairs:
                        self._meet(result, (first, second), stmt.span)
                case _:
                    self._collect(getattr(stmt, "body", ()))

    def _collect_op(self, op: Op) -> None:
        spec = OPS[op.op]
        if spec.aliases is None or op.result is None or not (self._views or spec.writes):
            return
        operand = op.operands[spec.aliases]
        if isinstance(operand, Var):
            self._parents[op.result] = operand

    def _collect_loop(self, loop: For | While) -> None:
        tensors = [
            (carried, after)
            for carried, after in zip(loop.carried, loop.yields, strict=True)
            if isinstance(carried.arg.type, TensorType)
        ]
        # Assume that the loop exchanges nothing, and see whether its body agrees.
        for carried, _ in tensors:
            if isinstance(carried.init, Var):
                self._parents[carried.arg] = carried.init
                self._parents[carried.result] = carried.init
        self._collect(loop.body)
        for carried, after in tensors:
            if not isinstance(after, Var) or not isinstance(carried.init, Var):
                continue
            if self[after] is not self[carried.init]:
                if not self._exchange:
                    raise self._error(carried.arg, carried.init, after, loop.span)
                for var in (carried.arg, carried.result):
                    self._parents.pop(var, None)
                    self._chosen[var] = (carried.init, after)

    def _meet(self, result: Var, values: tuple[Operand, Operand], span: Span) -> None:
        first, second = values
        if not isinstance(result.type, TensorType):
            return
        if not isinstance(first, Var) or not isinstance(second, Var):
            return
        if self[first] is self[second]:
            self._parents[result] = self[first]
        elif not self._exchange:
            raise self._error(result, first, second, span)
        else:
            self._chosen[result] = (first, second)

    def _error(self, var: Var, first: Var, second: Var, span: Span) -> CompileError:
        names = {"name": var.name, "first": self[first].name, "second": self[second].name}
        return CompileError(_MEETS.format(**names), span)


def written_positions(function: Function) -> tuple[int, ...]:
    """The positions of a function's Out and InOut parameters."""
    return tuple(i for i, p in enumerate(function.params) if p.direction is not Direction.In)


def written_operands(program: Program, call: Call) -> tuple[Var, ...]:
    """The tensors that a call writes, in the order of its results."""
    callee = program.functions[call.callee]
    written = [call.operands[i] for i in written_positions(callee)]
    return tuple(operand for operand in written if isinstance(operand, Var))
