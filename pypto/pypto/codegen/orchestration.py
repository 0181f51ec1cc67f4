"""The entry function as C++ that submits tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto.codegen.abi import KernelAbi
from pypto.codegen.cpp_scalars import HELPERS, cpp_expression, cpp_type
from pypto.codegen.dispatch import Dispatch
from pypto.codegen.literals import cpp_literal
from pypto.codegen.names import Names, identifier
from pypto.codegen.scheduling import created_array, element, may_miss, schedule_lines
from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    Call,
    Const,
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
    Span,
    Stmt,
    TensorType,
    Var,
    While,
)
from pypto.ir.ops import OPS
from pypto.ir.passes.aliases import written_positions
from pypto.ir.passes.rewrite import blocks
from pypto.ir.typing_rules import type_of

_ADD = {Direction.In: "add_input", Direction.Out: "add_output", Direction.InOut: "add_inout"}
_INDENT = "  "


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
        self._names = Names()
        self._values: dict[Var, str] = {}
        self._lines: list[str] = []
        self._depth = 1
        self._tasks = 0

    def entry(self, function: Function, abi: KernelAbi) -> list[str]:
        if not abi.parameters:
            self._line("(void)orch_args;")
        for index, var in enumerate(abi.tensors):
            name = self._new("ext", var)
            self._line(f"const ChipTensor& {name} = orch_args.tensor({index}).ref();")
        for index, var in enumerate(abi.scalars):
            name, type_ = self._new("s", var), cpp_type(var.type.dtype)
            self._line(f"const {type_} {name} = from_u64<{type_}>(orch_args.scalar({index}));")
        self._scoped(function.body, own_scope=True)
        return self._lines

    def _line(self, text: str) -> None:
        self._lines.append(_INDENT * self._depth + text)

    def _at(self, span: Span | None) -> None:
        """Name the place of a statement that may end the run."""
        if span is not None:
            unit = span.unit.replace("\\", "\\\\").replace('"', '\\"')
            self._line(f'PTO2_AT("{unit}", {span.line}, {span.column});')

    def _new(self, prefix: str, var: Var) -> str:
        name = self._names.new(f"{prefix}_{identifier(var.name)}")
        self._values[var] = name
        return name

    def _value(self, operand: Operand) -> str:
        return cpp_literal(operand) if isinstance(operand, Const) else self._values[operand]

    def _scoped(self, body: Sequence[Stmt], *, own_scope: bool) -> None:
        """A body, in a scope of the runtime where that lets it free tensors early."""
        if own_scope:
            self._line("PTO2_SCOPE() {")
            self._depth += 1
        self._write(body)
        if own_scope:
            self._depth -= 1
            self._line("}")

    def _write(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            match stmt:
                case Op():
                    self._write_op(stmt)
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
                    self._line("rt_manual_begin();")
                    self._write(stmt.body)
                    self._line("rt_manual_end();")
                case Scope():
                    raise CompileError("a scope was not outlined", stmt.span)

    def _write_op(self, op: Op) -> None:
        if op.op == "array.write":
            self._write_array(op)
            return
        assert op.result is not None
        if op.op.startswith("scalar."):
            self._write_scalar(op, op.result)
            return
        match op.op:
            case "tensor.dim":
                tensor, axis = self._value(op.operands[0]), op.attrs["axis"]
                name = self._new("s", op.result)
                self._line(f"const int64_t {name} = static_cast<int64_t>({tensor}.shapes[{axis}]);")
            case "task.none":
                self._line(f"const TaskId {self._new('task', op.result)}{{}};")
            case "array.create":
                self._line(created_array(op, self._new("a", op.result)))
            case "array.read":
                self._read_array(op)
            case "tensor.read" | "tensor.write":
                self._write_element(op)
            case "tensor.create":
                self._write_create(op)
            case "tensor.reshape":
                self._write_reshape(op)
            case "tensor.view":
                self._write_view(op)
            case _:
                raise CompileError(
                    f"Misplaced tensor op '{op.op}' in Orchestration function (should be inside "
                    "InCore block): put it inside `with pl.at(level=pl.Level.CORE_GROUP):` or into "
                    "a @pl.jit.incore function",
                    op.span,
                )

    def _write_scalar(self, op: Op, result: Var) -> None:
        assert isinstance(result.type, ScalarType)
        expression = cpp_expression(op, tuple(self._value(o) for o in op.operands))
        if OPS[op.op].faults:
            self._at(op.span)
        type_ = cpp_type(result.type.dtype)
        self._line(f"const {type_} {self._new('s', result)} = {expression};")

    def _write_element(self, op: Op) -> None:
        """Read or write one element; the run waits for the tasks that use it."""
        container, *rest = op.operands
        assert op.result is not None and isinstance(container, Var)
        assert isinstance(container.type, TensorType)
        self._at(op.span)
        values = [self._value(o) for o in rest]
        rank, type_ = len(container.type.shape), cpp_type(container.type.dtype)
        place = f"{self._value(container)}, {{{', '.join(values[:rank])}}}"
        if op.op == "tensor.read":
            name = self._new("s", op.result)
            self._line(f"const {type_} {name} = get_tensor_data<{type_}>({place});")
            return
        self._line(f"set_tensor_data<{type_}>({place}, {values[-1]});")
        self._values[op.result] = self._value(container)

    def _read_array(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, ScalarType)
        if may_miss(op):
            self._at(op.span)
        place = element(op.operands[0], op.operands[1], self._value)
        type_ = cpp_type(op.result.type.dtype)
        self._line(f"const {type_} {self._new('s', op.result)} = {place};")

    def _write_array(self, op: Op) -> None:
        array, index, value = op.operands
        if may_miss(op):
            self._at(op.span)
        self._line(f"{element(array, index, self._value)} = {self._value(value)};")

    def _write_create(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, TensorType)
        self._at(op.span)
        name, type_ = self._new("t", op.result), op.result.type
        values = iter(op.operands)
        extents = [
            str(extent) if isinstance(extent, int) else f"extent({self._value(next(values))})"
            for extent in type_.shape
        ]
        self._line(f"const uint32_t {name}_shape[] = {{{', '.join(extents)}}};")
        dtype = type_.dtype.constant_name
        manual = ", true" if op.attrs.get("manual_dep") else ""
        self._line(
            f"const auto {name}_memory = alloc_tensors("
            f"TensorCreateInfo({name}_shape, {len(extents)}, DType::{dtype}{manual}));"
        )
        self._line(f"const ChipTensor& {name} = {name}_memory.get_ref(0);")
        if (init := op.attrs.get("init_value")) is not None:
            assert isinstance(init, bool | int | float)
            value = cpp_literal(Const(init, type_.dtype))
            self._line(f"rt_fill<{cpp_type(type_.dtype)}>({name}, {value});")

    def _write_reshape(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, TensorType)
        source, name = self._value(op.operands[0]), self._new("t", op.result)
        extents = ", ".join(str(extent) for extent in op.result.type.shape)
        rank = len(op.result.type.shape)
        self._line(f"const uint32_t {name}_shape[] = {{{extents}}};")
        self._line(f"const ChipTensor {name} = {source}.reshape({name}_shape, {rank});")

    def _write_view(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.operands[0], Var)
        source, *values = [self._value(o) for o in op.operands]
        shape, drop = op.attrs["shape"], op.attrs["drop"]
        assert isinstance(shape, tuple) and isinstance(drop, tuple)
        self._at(op.span)
        name, sizes = self._new("t", op.result), iter(values[len(shape) :])
        extents = [str(e) if isinstance(e, int) else next(sizes) for e in shape]
        self._line(f"const int64_t {name}_shape[] = {{{', '.join(extents)}}};")
        self._line(f"const int64_t {name}_offset[] = {{{', '.join(values[: len(shape)])}}};")
        # From the last to the first, so that the numbers of the others stay right.
        dropped = "".join(f".without_axis({axis})" for axis in reversed(drop))
        self._line(
            f"const ChipTensor {name} = {source}.view({name}_shape, {name}_offset){dropped};"
        )

    def _write_call(self, call: Call) -> None:
        callee = self._program.functions[call.callee]
        self._at(call.span)
        params = f"params_t{self._tasks}"
        self._tasks += 1
        self._line(f"CoreTaskArgs {params};")
        pairs = list(zip(call.operands, callee.params, strict=True))
        schedule = call.schedule
        tensors = [operand for operand, p in pairs if isinstance(p.var.type, TensorType)]
        for operand, param in pairs:
            self._require_extents(operand, param.var)
        for operand, param in pairs:
            if isinstance(param.var.type, TensorType):
                hidden = operand in schedule.no_deps
                add = "add_no_dep" if hidden else _ADD[param.direction]
                self._line(f"{params}.{add}({self._value(operand)});")
        for operand, param in pairs:
            if isinstance(param.var.type, ScalarType):
                self._line(f"{params}.add_scalar({self._value(operand)});")
        for line in schedule_lines(schedule, params, tensors, self._value):
            self._line(line)
        submission = self._dispatches[call.callee].submission(params)
        if schedule.task is not None:
            submission = f"const TaskId {self._new('task', schedule.task)} = {submission}"
        self._line(submission)
        for result, position in zip(call.results, written_positions(callee), strict=True):
            self._values[result] = self._value(call.operands[position])

    def _require_extents(self, operand: Operand, parameter: Var) -> None:
        """See to it that run-time extents are those that a parameter's type has as constants."""
        given, wanted = type_of(operand), parameter.type
        if not isinstance(given, TensorType) or not isinstance(wanted, TensorType):
            return
        for axis, (have, want) in enumerate(zip(given.shape, wanted.shape, strict=True)):
            if isinstance(have, DynDim) and isinstance(want, int):
                self._line(f"require_extent({self._value(operand)}, {axis}, {want});")

    def _write_loop(self, loop: For) -> None:
        carried = self._declare_carried(loop)
        start, stop, step = (self._value(o) for o in (loop.start, loop.stop, loop.step))
        if not isinstance(loop.step, Const):
            self._at(loop.span)
            name = self._names.new("step")
            self._line(f"const int64_t {name} = loop_step({step});")
            step = name
        elif int(loop.step.value) < 1:
            raise CompileError("the step of a range must be positive", loop.span)
        var = self._new("s", loop.var)
        advance = f"{var} += {step}"
        if not isinstance(loop.step, Const):
            advance = f"{var} = advanced({var}, {step})"
        # A run that has failed or was cancelled submits nothing more.
        self._line(f"for (int64_t {var} = {start}; {var} < {stop} && !rt_is_fatal(); {advance}) {{")
        self._depth += 1
        self._write_round(loop, carried)
        self._depth -= 1
        self._line("}")

    def _write_while(self, loop: While) -> None:
        carried = self._declare_carried(loop)
        # A run that has failed or was cancelled submits nothing more.
        self._line("while (!rt_is_fatal()) {")
        self._depth += 1
        self._line(f"if (!({self._write_condition(loop)})) break;")
        self._write_round(loop, carried)
        self._depth -= 1
        self._line("}")

    def _write_condition(self, loop: While) -> str:
        """What a round needs to know whether it runs, as an expression.

        Nothing but the truth value outlives the statements before it: tensors that they create
        are freed before the round, also where the round hands its own on to the next.
        """
        if not _creates(loop.condition_body):
            self._write(loop.condition_body)
            return self._value(loop.condition)
        name = self._names.new("s_more")
        self._line(f"bool {name} = false;")
        self._line("PTO2_SCOPE() {")
        self._depth += 1
        self._write(loop.condition_body)
        self._line(f"{name} = {self._value(loop.condition)};")
        self._depth -= 1
        self._line("}")
        return name

    def _declare_carried(self, loop: For | While) -> list[str]:
        """A variable for each carried value, which is its argument and its result alike."""
        names = []
        for c in loop.carried:
            type_, init = self._type(c.arg), self._value(c.init)
            names.append(self._new("v", c.arg))
            self._line(f"{type_} {names[-1]} = {init};")
            self._values[c.result] = names[-1]
        return names

    def _write_round(self, loop: For | While, carried: Sequence[str]) -> None:
        """One iteration. Tensors that it creates are freed at its end, unless one is carried."""
        own_scope = _creates(loop.body) and not _hands_on(loop)
        if own_scope:
            self._line("PTO2_SCOPE() {")
            self._depth += 1
        self._write(loop.body)
        self._assign(carried, loop.yields)
        if own_scope:
            self._depth -= 1
            self._line("}")

    def _assign(self, targets: Sequence[str], values: Sequence[Operand]) -> None:
        """All at once: a value may name another target."""
        sources = [self._value(v) for v in values]
        if len(targets) > 1 and set(targets) & set(sources):
            fresh = [self._names.new(f"{target}_next") for target in targets]
            for name, source in zip(fresh, sources, strict=True):
                self._line(f"const auto {name} = {source};")
            sources = fresh
        for target, source in zip(targets, sources, strict=True):
            if target != source:
                self._line(f"{target} = {source};")

    def _write_branch(self, branch: If) -> None:
        for result in branch.results:
            self._line(f"{self._type(result)} {self._new('v', result)}{{}};")
        targets = [self._values[r] for r in branch.results]
        self._line(f"if ({self._value(branch.condition)}) {{")
        self._depth += 1
        self._write(branch.then_body)
        self._assign(targets, branch.then_yields)
        self._depth -= 1
        if branch.else_body or targets:
            self._line("} else {")
            self._depth += 1
            self._write(branch.else_body)
            self._assign(targets, branch.else_yields)
            self._depth -= 1
        self._line("}")

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
