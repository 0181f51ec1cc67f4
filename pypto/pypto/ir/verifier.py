"""The invariants of a program, checked.

In both forms: every variable is bound once and before it is used, operations have the types that
the table gives them, loops and branches agree with what they carry, calls fit their callees.

*Frontend* form: scopes stand in orchestration functions only and are not nested; tile operations
and computing tensor operations stand on a core, that is in a scope or an incore function.
*Lowered* form: no scopes, no computing tensor operations; tile operations in incore functions
alone. Operations that bind a tile carry ``addr``, its place in its memory space.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from pypto.ir.dtypes import BOOL, INDEX, TASK_ID
from pypto.ir.errors import IrTypeError, VerifyError
from pypto.ir.nodes import (
    ArrayType,
    Call,
    Direction,
    For,
    Function,
    FunctionKind,
    If,
    LoopKind,
    ManualScope,
    Op,
    Operand,
    Program,
    Return,
    ScalarType,
    Schedule,
    Scope,
    Span,
    Stmt,
    TensorType,
    TileType,
    Type,
    Var,
    While,
)
from pypto.ir.op_spec import Role
from pypto.ir.ops import OPS, infer_result
from pypto.ir.typing_rules import show_type, type_of
from pypto.ir.view_rules import extent_fits


class Form(enum.Enum):
    """Which invariants hold."""

    FRONTEND = "frontend"
    LOWERED = "lowered"


def verify(program: Program, form: Form) -> None:
    """Raises :class:`VerifyError` at the first invariant that does not hold."""
    if program.entry not in program.functions:
        raise VerifyError(f"the entry {program.entry!r} is not a function of the program")
    seen: set[str] = set()
    for name, function in program.functions.items():
        if name != function.name:
            raise VerifyError(f"function {function.name!r} is listed as {name!r}", function.span)
        _FunctionVerifier(program, function, form, seen).run()
        seen.add(name)


class _FunctionVerifier:
    def __init__(self, program: Program, function: Function, form: Form, callees: set[str]) -> None:
        self._program = program
        self._function = function
        self._form = form
        self._callees = callees
        self._bound: set[Var] = set()
        self._in_scope = False

    def run(self) -> None:
        function = self._function
        if function.func_type is FunctionKind.INLINE:
            raise VerifyError(f"inline function {function.name!r} was not spliced", function.span)
        if function.func_type is FunctionKind.OPAQUE and self._form is Form.LOWERED:
            raise VerifyError(f"opaque function {function.name!r} was not spliced", function.span)
        visible: set[Var] = set()
        for param in function.params:
            self._bind(param.var, visible, function.span)
            scalar = isinstance(param.var.type, ScalarType)
            if scalar and param.direction is not Direction.In:
                raise VerifyError(f"scalar {param.name_hint!r} cannot be an output", function.span)
            if isinstance(param.var.type, TileType):
                raise VerifyError(f"tile {param.name_hint!r} cannot be a parameter", function.span)
        if function.external is not None:
            if function.body or function.func_type is not _INCORE:
                raise VerifyError(f"{function.name!r} is external and has a body", function.span)
            return
        ends = bool(function.body) and isinstance(function.body[-1], Return)
        # Incore functions that lowering makes return by their outputs alone.
        if not ends and (self._form is Form.FRONTEND or function.func_type is not _INCORE):
            raise VerifyError(f"function {function.name!r} does not end in return", function.span)
        self._block(function.body, visible, top=True)

    def _block(self, body: Sequence[Stmt], visible: set[Var], *, top: bool = False) -> None:
        for index, statement in enumerate(body):
            match statement:
                case Op():
                    self._op(statement, visible)
                case Call():
                    self._call(statement, visible)
                case For():
                    self._for(statement, visible)
                case While():
                    self._while(statement, visible)
                case If():
                    self._if(statement, visible)
                case Scope():
                    self._scope(statement, visible)
                case ManualScope():
                    self._manual_scope(statement, visible)
                case Return():
                    if not top or index != len(body) - 1:
                        raise VerifyError("return does not end its function", statement.span)
                    self._return(statement, visible)

    # --- values ----------------------------------------------------------------------------

    def _bind(self, var: Var, visible: set[Var], span: Span) -> None:
        if var in self._bound:
            raise VerifyError(f"{var.name!r} is bound twice", span)
        self._bound.add(var)
        visible.add(var)

    def _use(self, operand: Operand, visible: set[Var], span: Span) -> Type:
        if isinstance(operand, Var) and operand not in visible:
            how = "before it is bound" if operand not in self._bound else "outside its block"
            raise VerifyError(f"{operand.name!r} is used {how}", span)
        return type_of(operand)

    def _same(self, what: str, left: Type, right: Type, span: Span) -> None:
        if left != right:
            raise VerifyError(f"{what}: {show_type(left)} and {show_type(right)}", span)

    # --- statements ------------------------------------------------------------------------

    def _op(self, op: Op, visible: set[Var]) -> None:
        if op.op not in OPS:
            raise VerifyError(f"there is no operation {op.op!r}", op.span)
        for operand in op.operands:
            self._use(operand, visible, op.span)
        self._placement(op)
        attrs = dict(op.attrs)
        if op.result is not None and isinstance(op.result.type, TileType):
            attrs.pop("addr", None)
        try:
            type_ = infer_result(op.op, op.operands, attrs)
        except IrTypeError as error:
            raise VerifyError(str(error), op.span) from None
        if op.result is not None:
            self._same(f"type of {op.result.name!r}", op.result.type, type_, op.span)
        if op.result is not None:
            self._bind(op.result, visible, op.span)

    def _placement(self, op: Op) -> None:
        family = op.op.split(".")[0]
        incore = self._function.func_type is FunctionKind.INCORE
        if family == "scalar":
            return
        spec = OPS[op.op]
        if family in ("array", "task"):
            if incore or self._in_scope:
                raise VerifyError(f"{op.op} stands on a core", op.span)
            return
        if self._form is Form.LOWERED and (incore or family == "tile"):
            on_memory = spec.role is Role.MEMORY and not spec.off_core
            allowed = incore and (family == "tile" or on_memory)
        elif family == "tile":
            allowed = incore or self._in_scope
        else:
            # Computing on tensors outside a scope is refused by code generation, with a message
            # for users.
            on_core = incore or self._in_scope
            allowed = not (on_core and spec.off_core)
        if not allowed:
            where = "an incore function" if incore else "an orchestration function"
            raise VerifyError(f"{op.op} has no place here in {where}", op.span)

    def _call(self, call: Call, visible: set[Var]) -> None:
        if call.callee not in self._callees:
            raise VerifyError(f"{call.callee!r} is not defined before its caller", call.span)
        if self._in_scope or self._function.func_type is FunctionKind.INCORE:
            raise VerifyError(f"{call.callee!r} is called on a core", call.span)
        callee = self._program.functions[call.callee]
        if callee.func_type is FunctionKind.ORCHESTRATION:
            raise VerifyError(f"{call.callee!r} is an orchestration, which nobody calls", call.span)
        if len(call.operands) != len(callee.params):
            raise VerifyError(
                f"{call.callee!r} takes {len(callee.params)} operands, got {len(call.operands)}",
                call.span,
            )
        written: list[Type] = []
        for operand, param in zip(call.operands, callee.params, strict=True):
            given, wanted = self._use(operand, visible, call.span), param.var.type
            if not _accepts(wanted, given):
                self._same(f"{call.callee}: {param.name_hint!r}", wanted, given, call.span)
            if param.direction is not Direction.In:
                written.append(given)
        if len(written) != len(call.results):
            raise VerifyError(
                f"{call.callee!r} writes {len(written)} tensors, but the call has "
                f"{len(call.results)} results",
                call.span,
            )
        self._schedule(call.schedule, visible, call.span)
        for result, type_ in zip(call.results, written, strict=True):
            self._same(f"type of {result.name!r}", result.type, type_, call.span)
            self._bind(result, visible, call.span)
        self._task(call.schedule, visible, call.span)

    def _schedule(self, schedule: Schedule, visible: set[Var], span: Span) -> None:
        if schedule.blocks is not None:
            blocks = self._use(schedule.blocks, visible, span)
            self._same("block count", blocks, _INDEX, span)
        for dependency in schedule.deps:
            given = self._use(dependency, visible, span)
            if not isinstance(given, ScalarType | ArrayType) or given.dtype != TASK_ID:
                raise VerifyError(f"a dependency is a {show_type(given)}", span)
        for tensor in (*schedule.no_deps, *schedule.dumps):
            given = self._use(tensor, visible, span)
            if not isinstance(given, TensorType):
                raise VerifyError(f"{tensor.name!r} is a {show_type(given)}, not a tensor", span)

    def _task(self, schedule: Schedule, visible: set[Var], span: Span) -> None:
        if schedule.task is not None:
            self._same("task id", schedule.task.type, ScalarType(TASK_ID), span)
            self._bind(schedule.task, visible, span)

    def _for(self, loop: For, visible: set[Var]) -> None:
        for bound in (loop.start, loop.stop, loop.step):
            self._same("loop bound", self._use(bound, visible, loop.span), _INDEX, loop.span)
        if (loop.stage >= 1) != (loop.kind is LoopKind.PIPELINE) or loop.stage < 0:
            raise VerifyError(f"stage {loop.stage} of a pl.{loop.kind.value} loop", loop.span)
        inside = set(visible)
        self._same("loop variable", loop.var.type, _INDEX, loop.span)
        self._bind(loop.var, inside, loop.span)
        self._bind_carried(loop, visible, inside)
        self._block(loop.body, inside)
        self._carry_on(loop, visible, inside)

    def _while(self, loop: While, visible: set[Var]) -> None:
        inside = set(visible)
        self._bind_carried(loop, visible, inside)
        deciding = set(inside)
        self._block(loop.condition_body, deciding)
        condition = self._use(loop.condition, deciding, loop.span)
        self._same("condition", condition, ScalarType(BOOL), loop.span)
        self._block(loop.body, inside)
        self._carry_on(loop, visible, inside)

    def _bind_carried(self, loop: For | While, visible: set[Var], inside: set[Var]) -> None:
        if len(loop.yields) != len(loop.carried):
            raise VerifyError("a loop must yield each carried value", loop.span)
        for carried in loop.carried:
            given = self._use(carried.init, visible, loop.span)
            self._same(f"carried {carried.arg.name!r}", given, carried.arg.type, loop.span)
            self._bind(carried.arg, inside, loop.span)

    def _carry_on(self, loop: For | While, visible: set[Var], inside: set[Var]) -> None:
        for carried, value in zip(loop.carried, loop.yields, strict=True):
            what = f"carried {carried.arg.name!r}"
            self._same(what, self._use(value, inside, loop.span), carried.arg.type, loop.span)
            self._same(what, carried.result.type, carried.arg.type, loop.span)
            self._bind(carried.result, visible, loop.span)

    def _if(self, branch: If, visible: set[Var]) -> None:
        condition = self._use(branch.condition, visible, branch.span)
        self._same("condition", condition, ScalarType(BOOL), branch.span)
        for body, yields in (
            (branch.then_body, branch.then_yields),
            (branch.else_body, branch.else_yields),
        ):
            if len(yields) != len(branch.results):
                raise VerifyError("each branch must yield every result", branch.span)
            inside = set(visible)
            self._block(body, inside)
            for result, value in zip(branch.results, yields, strict=True):
                given = self._use(value, inside, branch.span)
                self._same(f"result {result.name!r}", given, result.type, branch.span)
        for result in branch.results:
            self._bind(result, visible, branch.span)

    def _scope(self, scope: Scope, visible: set[Var]) -> None:
        if self._form is Form.LOWERED:
            raise VerifyError("a scope was not outlined", scope.span)
        if self._in_scope or self._function.func_type is FunctionKind.INCORE:
            raise VerifyError("a scope stands on a core", scope.span)
        self._schedule(scope.schedule, visible, scope.span)
        inside = set(visible)
        self._in_scope = True
        self._block(scope.body, inside)
        self._in_scope = False
        # Tensors leave a scope, and scalars that can be computed before it.
        visible |= {var for var in inside if isinstance(var.type, TensorType | ScalarType)}
        self._task(scope.schedule, visible, scope.span)

    def _manual_scope(self, scope: ManualScope, visible: set[Var]) -> None:
        if self._in_scope or self._function.func_type is FunctionKind.INCORE:
            raise VerifyError("a manual scope stands on a core", scope.span)
        self._block(scope.body, visible)

    def _return(self, statement: Return, visible: set[Var]) -> None:
        types = tuple(self._use(value, visible, statement.span) for value in statement.values)
        if types != self._function.return_types:
            raise VerifyError("the returned values are not of the declared types", statement.span)
        outputs = {p.var for p in self._function.params if p.direction is not Direction.In}
        for value in statement.values:
            if value not in outputs:
                raise VerifyError("only outputs can be returned", statement.span)


_INDEX = ScalarType(INDEX)
_INCORE = FunctionKind.INCORE


def _accepts(wanted: Type, given: Type) -> bool:
    """Whether an argument fits a parameter; a dynamic extent takes any."""
    if not isinstance(wanted, TensorType) or not isinstance(given, TensorType):
        return wanted == given
    return (
        wanted.dtype == given.dtype
        and wanted.layout is given.layout
        and len(wanted.shape) == len(given.shape)
        and all(map(extent_fits, wanted.shape, given.shape))
    )
