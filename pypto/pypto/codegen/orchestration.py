"""The entry function as C++ that submits tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto.codegen.abi import KernelAbi
from pypto.codegen.cpp_scalars import HELPERS, cpp_type
from pypto.codegen.dispatch import Dispatch
from pypto.codegen.orchestration_operations import write_op
from pypto.codegen.orchestration_text import OrchestrationText
from pypto.codegen.scheduling import schedule_lines
from pypto.codegen.scratch import scratch_tensors
from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    Call,
    Const,
    Dim,
    Direction,
    DynDim,
    For,
    Function,
    If,
    ManualScope,
    Op,
    Operand,
    Program,
    Return,
    ScalarType,
    Scope,
    Stmt,
    TensorType,
    Var,
    While,
)
from pypto.ir.passes.aliases import written_positions
from pypto.ir.passes.rewrite import blocks
from pypto.ir.typing_rules import type_of

_ADD = {Direction.In: "add_input", Direction.Out: "add_output", Direction.InOut: "add_inout"}


def orchestration_text(program: Program, dispatches: Mapping[str, Dispatch], abi: KernelAbi) -> str:
    """The text of `orchestration/<entry>.cpp`.

    `dispatches` says by function what a call of it submits; `abi` is the entry's own interface.
    """
    writer = _Writer(program, dispatches)
    body = writer.entry(program.functions[program.entry], abi)
    helpers = [h.text for h in HELPERS if any(f"{h.name}(" in b or f"{h.name}<" in b for b in body)]
    count = len(abi.parameters)
    lines = ['#include "pypto_rt/pto_orchestration_api.h"']
    if any("_power" in b for b in body):
        lines.append('#include "pypto_rt/scalar_power.h"')
    lines.append("")
    if helpers:
        lines += ["namespace {", "", *"\n".join(helpers).splitlines(), "", "}  // namespace", ""]
    lines += [
        'extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs&) {',
        f"  return PTO2OrchestrationConfig{{.expected_arg_count = {count}}};",
        "}",
        "",
        'extern "C" void aicpu_orchestration_entry(const ChipTaskArgs& orch_args) {',
        *body,
        "}",
    ]
    return "\n".join(lines) + "\n"


class _Writer:
    def __init__(self, program: Program, dispatches: Mapping[str, Dispatch]) -> None:
        self._program = program
        self._dispatches = dispatches
        self._text = OrchestrationText()
        self._tasks = 0
        self._scratch: frozenset[Var] = frozenset()

    def entry(self, function: Function, abi: KernelAbi) -> list[str]:
        self._scratch = scratch_tensors(self._program, function)
        if not abi.parameters:
            self._text.line("(void)orch_args;")
        for index, var in enumerate(abi.tensors):
            name = self._text.new("ext", var)
            self._text.line(f"const ChipTensor& {name} = orch_args.tensor({index}).ref();")
        for index, var in enumerate(abi.scalars):
            name, type_ = self._text.new("s", var), cpp_type(var.type.dtype)
            self._text.line(f"const {type_} {name} = from_u64<{type_}>(orch_args.scalar({index}));")
        self._scoped(function.body, own_scope=True)
        return self._text.lines

    def _scoped(self, body: Sequence[Stmt], *, own_scope: bool) -> None:
        """A body, in a scope of the runtime where that lets it free tensors early."""
        if own_scope:
            self._text.line("PTO2_SCOPE() {")
            self._text.depth += 1
        self._write(body)
        if own_scope:
            self._text.depth -= 1
            self._text.line("}")

    def _write(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            match stmt:
                case Op():
                    write_op(self._text, stmt, per_core=stmt.result in self._scratch)
                case Call():
                    self._write_call(stmt)
                case For():
                    self._write_loop(stmt)
                case While():
                    self._write_while(stmt)
                case If():
                    self._write_branch(stmt)
                case Return():
                    pass  # the caller holds every tensor that can be returned
                case ManualScope():
                    # No block of its own: what it binds is used after it.
                    self._text.line("rt_manual_begin();")
                    self._write(stmt.body)
                    self._text.line("rt_manual_end();")
                case Scope():
                    raise CompileError("a scope was not outlined", stmt.span)

    def _write_call(self, call: Call) -> None:
        callee = self._program.functions[call.callee]
        self._text.at(call.span)
        params = f"params_t{self._tasks}"
        self._tasks += 1
        self._text.line(f"CoreTaskArgs {params};")
        pairs = list(zip(call.operands, callee.params, strict=True))
        schedule = call.schedule
        tensors = [operand for operand, p in pairs if isinstance(p.var.type, TensorType)]
        self._require_extents([(operand, param.var) for operand, param in pairs])
        for operand, param in pairs:
            if isinstance(param.var.type, TensorType):
                hidden = operand in schedule.no_deps
                add = "add_no_dep" if hidden else _ADD[param.direction]
                self._text.line(f"{params}.{add}({self._text.value(operand)});")
        for operand, param in pairs:
            if isinstance(param.var.type, ScalarType):
                self._text.line(f"{params}.add_scalar({self._text.value(operand)});")
        for line in schedule_lines(schedule, params, tensors, self._text.value):
            self._text.line(line)
        submission = self._dispatches[call.callee].submission(params)
        if schedule.task is not None:
            submission = f"const TaskId {self._text.new('task', schedule.task)} = {submission}"
        self._text.line(submission)
        for result, position in zip(call.results, written_positions(callee), strict=True):
            self._text.alias(result, self._text.value(call.operands[position]))

    def _require_extents(self, pairs: list[tuple[Operand, Var]]) -> None:
        """See to it that run-time extents are those that the parameters' types say.

        Where a type has a constant it is that, and where several have one symbol they are one.
        """
        first: dict[str, tuple[Dim, str]] = {}
        for operand, parameter in pairs:
            given, wanted = type_of(operand), parameter.type
            if not isinstance(given, TensorType) or not isinstance(wanted, TensorType):
                continue
            tensor = self._text.value(operand)
            for axis, (have, want) in enumerate(zip(given.shape, wanted.shape, strict=True)):
                if isinstance(want, DynDim):
                    known, extent = first.setdefault(
                        want.symbol, (have, f"{tensor}.shapes[{axis}]")
                    )
                    if have != known:
                        self._text.line(f"require_extent({tensor}, {axis}, {extent});")
                elif isinstance(have, DynDim):
                    self._text.line(f"require_extent({tensor}, {axis}, {want});")

    def _write_loop(self, loop: For) -> None:
        carried = self._declare_carried(loop)
        start, stop, step = (self._text.value(o) for o in (loop.start, loop.stop, loop.step))
        if not isinstance(loop.step, Const):
            self._text.at(loop.span)
            name = self._text.unused("step")
            self._text.line(f"const int64_t {name} = loop_step({step});")
            step = name
        elif int(loop.step.value) < 1:
            raise CompileError("the step of a range must be positive", loop.span)
        var = self._text.new("s", loop.var)
        advance = f"{var} += {step}"
        if not isinstance(loop.step, Const):
            advance = f"{var} = advanced({var}, {step})"
        # A run that has failed or was cancelled submits nothing more.
        self._text.line(
            f"for (int64_t {var} = {start}; {var} < {stop} && !rt_is_fatal(); {advance}) {{"
        )
        self._text.depth += 1
        self._write_round(loop, carried)
        self._text.depth -= 1
        self._text.line("}")

    def _write_while(self, loop: While) -> None:
        carried = self._declare_carried(loop)
        # A run that has failed or was cancelled submits nothing more.
        self._text.line("while (!rt_is_fatal()) {")
        self._text.depth += 1
        self._text.line(f"if (!({self._write_condition(loop)})) break;")
        self._write_round(loop, carried)
        self._text.depth -= 1
        self._text.line("}")

    def _write_condition(self, loop: While) -> str:
        """What a round needs to know whether it runs, as an expression.

        Nothing but the truth value outlives the statements before it: tensors that they create
        are freed before the round, also where the round hands its own on to the next.
        """
        if not _creates(loop.condition_body):
            self._write(loop.condition_body)
            return self._text.value(loop.condition)
        name = self._text.unused("s_more")
        self._text.line(f"bool {name} = false;")
        self._text.line("PTO2_SCOPE() {")
        self._text.depth += 1
        self._write(loop.condition_body)
        self._text.line(f"{name} = {self._text.value(loop.condition)};")
        self._text.depth -= 1
        self._text.line("}")
        return name

    def _declare_carried(self, loop: For | While) -> list[str]:
        """A variable for each carried value, which is its argument and its result alike."""
        names = []
        for c in loop.carried:
            type_, init = self._type(c.arg), self._text.value(c.init)
            names.append(self._text.new("v", c.arg))
            self._text.line(f"{type_} {names[-1]} = {init};")
            self._text.alias(c.result, names[-1])
        return names

    def _write_round(self, loop: For | While, carried: Sequence[str]) -> None:
        """One iteration. Tensors that it creates are freed at its end, unless one is carried."""
        own_scope = _creates(loop.body) and not _hands_on(loop)
        if own_scope:
            self._text.line("PTO2_SCOPE() {")
            self._text.depth += 1
        self._write(loop.body)
        self._assign(carried, loop.yields)
        if own_scope:
            self._text.depth -= 1
            self._text.line("}")

    def _assign(self, targets: Sequence[str], values: Sequence[Operand]) -> None:
        """All at once: a value may name another target."""
        sources = [self._text.value(v) for v in values]
        if len(targets) > 1 and set(targets) & set(sources):
            fresh = [self._text.unused(f"{target}_next") for target in targets]
            for name, source in zip(fresh, sources, strict=True):
                self._text.line(f"const auto {name} = {source};")
            sources = fresh
        for target, source in zip(targets, sources, strict=True):
            if target != source:
                self._text.line(f"{target} = {source};")

    def _write_branch(self, branch: If) -> None:
        for result in branch.results:
            self._text.line(f"{self._type(result)} {self._text.new('v', result)}{{}};")
        targets = [self._text.value(r) for r in branch.results]
        self._text.line(f"if ({self._text.value(branch.condition)}) {{")
        self._text.depth += 1
        self._write(branch.then_body)
        self._assign(targets, branch.then_yields)
        self._text.depth -= 1
        if branch.else_body or targets:
            self._text.line("} else {")
            self._text.depth += 1
            self._write(branch.else_body)
            self._assign(targets, branch.else_yields)
            self._text.depth -= 1
        self._text.line("}")

    def _type(self, var: Var) -> str:
        return "ChipTensor" if isinstance(var.type, TensorType) else cpp_type(var.type.dtype)


def _creates(body: Sequence[Stmt]) -> bool:
    """Whether a body creates tensors that no loop inside it frees."""
    return any(
        (isinstance(s, Op) and s.op == "tensor.create")
        or (
            _creates(s.body) and _hands_on(s)
            if isinstance(s, For | While)
            else any(_creates(b.body) for b in blocks(s))
        )
        for s in body
    )


def _hands_on(loop: For | While) -> bool:
    """Whether an iteration may hand a tensor that it created to the next."""
    return any(isinstance(c.arg.type, TensorType) for c in loop.carried)
