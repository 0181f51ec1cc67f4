"""A program as text: Python-like, deterministic, one line an operation.

The text parses as Python and shows every type; it is for people and for tests, not an input.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from pypto.ir.dtypes import BOOL, FP32, INDEX
from pypto.ir.nodes import (
    PLAIN,
    ArrayType,
    AttrValue,
    Call,
    Carried,
    Direction,
    DynDim,
    For,
    Function,
    If,
    ManualScope,
    MemorySpace,
    Op,
    Operand,
    Param,
    Program,
    Return,
    ScalarType,
    Schedule,
    Scope,
    Stmt,
    TensorType,
    Type,
    Var,
    While,
)

_INDENT = "    "


def print_program(program: Program) -> str:
    """The text of a whole program, callees first."""
    head = f"# pypto program: {program.name}, entry: {program.entry}\n"
    return "\n\n".join([head, *(print_function(f) for f in program.functions.values())])


def print_function(function: Function) -> str:
    """The text of one function."""
    return "\n".join(_Printer().function(function)) + "\n"


def print_type(type_: Type) -> str:
    """The text of a type, as an annotation."""
    if isinstance(type_, ScalarType):
        return f"pl.Scalar[{type_.dtype!r}]"
    if isinstance(type_, ArrayType):
        return f"pl.Array[{type_.size}, {type_.dtype!r}]"
    if isinstance(type_, TensorType):
        return f"pl.Tensor[{_shape(type_.shape)}, {type_.dtype!r}]"
    text = f"{_shape(type_.shape)}, {type_.dtype!r}, pl.Mem.{type_.space.name}"
    if type_.valid != type_.shape:
        text += f", {_shape(type_.valid)}"
    return f"pl.Tile[{text}]"


def _shape(shape: Sequence[int | DynDim | None]) -> str:
    parts = [_identifier(d.symbol) if isinstance(d, DynDim) else str(d) for d in shape]
    return f"[{', '.join(parts)}]"


def _identifier(name: str) -> str:
    """A name that Python accepts."""
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    if not text or text[0].isdigit() or keyword.iskeyword(text):
        return f"_{text}"
    return text


def _attribute(value: AttrValue) -> str:
    if isinstance(value, MemorySpace):
        return f"pl.Mem.{value.name}"
    if isinstance(value, tuple):
        return f"[{', '.join(repr(item) for item in value)}]"
    return _number(value) if isinstance(value, float) else repr(value)


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'


class _Printer:
    """Names the variables of one function, in the order in which they appear."""

    def __init__(self) -> None:
        self._names: dict[Var, str] = {}
        self._taken: set[str] = set()

    def name(self, var: Var) -> str:
        if var not in self._names:
            base = _identifier(var.name)
            name, count = base, 0
            while name in self._taken:
                count += 1
                name = f"{base}_{count}"
            self._taken.add(name)
            self._names[var] = name
        return self._names[var]

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Var):
            return self.name(operand)
        value, dtype = operand.value, operand.dtype
        text = _number(value) if isinstance(value, float) else repr(value)
        return text if dtype in (INDEX, BOOL, FP32) else f"pl.const({text}, {dtype!r})"

    def operands(self, operands: Sequence[Operand]) -> str:
        return ", ".join(self.operand(operand) for operand in operands)

    def function(self, function: Function) -> Iterator[str]:
        params = ", ".join(self.param(param) for param in function.params)
        yield f"# {function.func_type.value}, from {function.span.unit}"
        yield f"def {function.name}({params}):"
        if function.external is not None:
            for part in function.external.parts:
                yield f"{_INDENT}# {part.core_type}: {Path(part.source).name}"
            yield f"{_INDENT}..."
            return
        yield from self.block(function.body, _INDENT)

    def param(self, param: Param) -> str:
        text = print_type(param.var.type)
        if param.direction is not Direction.In:
            text = f"pl.{param.direction.value}[{text}]"
        return f"{self.name(param.var)}: {text}"

    def block(self, body: Sequence[Stmt], pad: str) -> Iterator[str]:
        if not body:
            yield f"{pad}pass"
        for statement in body:
            for line in self.statement(statement):
                yield pad + line

    def statement(self, statement: Stmt) -> Iterator[str]:
        match statement:
            case Op():
                yield self.op(statement)
            case Call():
                yield self.call(statement)
            case For():
                yield from self.loop(statement)
            case While():
                yield from self.while_loop(statement)
            case If():
                yield from self.branch(statement)
            case Scope():
                yield self.scope_head(statement)
                yield from self.block(statement.body, _INDENT)
            case ManualScope(body=body):
                yield "with pl.manual_scope():"
                yield from self.block(body, _INDENT)
            case Return(values=values):
                yield f"return {self.operands(values)}".rstrip()

    def call(self, call: Call) -> str:
        schedule, arguments = call.schedule, self.operands(call.operands)
        text = f"{call.callee}({arguments})"
        if schedule != PLAIN:
            count = [] if schedule.blocks is None else [f"core_num={self.operand(schedule.blocks)}"]
            parts = [call.callee, *([arguments] if arguments else []), *count]
            function = "submit" if schedule.blocks is None else "spmd_submit"
            text = f"pl.{function}({', '.join(parts + self.schedule(schedule))})"
        task = () if schedule.task is None else (schedule.task,)
        left = ", ".join(self.name(r) for r in (*call.results, *task))
        return f"{left} = {text}" if left else text

    def scope_head(self, scope: Scope) -> str:
        schedule = scope.schedule
        hint = [f'name_hint="{scope.name_hint}"'] if scope.name_hint else []
        arguments = ", ".join(hint + self.schedule(schedule))
        opener = "pl.at(level=pl.Level.CORE_GROUP"
        if schedule.blocks is not None:
            opener = f"pl.spmd({self.operand(schedule.blocks)}"
        name = "" if schedule.task is None else f" as {self.name(schedule.task)}"
        return f"with {opener}{', ' if arguments else ''}{arguments}){name}:"

    def schedule(self, schedule: Schedule) -> list[str]:
        """The keywords of a schedule, its block count aside."""
        words = (
            ("deps", schedule.deps),
            ("no_dep_args", schedule.no_deps),
            ("dumps", schedule.dumps),
        )
        return [f"{word}=[{self.operands(values)}]" for word, values in words if values]

    def op(self, op: Op) -> str:
        arguments = [self.operand(operand) for operand in op.operands]
        arguments += [f"{key}={_attribute(value)}" for key, value in sorted(op.attrs.items())]
        family, name = op.op.split(".")
        word = f"{name}_" if keyword.iskeyword(name) else name
        text = f"pl.{family}.{word}({', '.join(arguments)})"
        if op.op == "task.none":
            text = "None"
        if op.result is None:
            return text
        return f"{self.name(op.result)}: {print_type(op.result.type)} = {text}"

    def loop(self, loop: For) -> Iterator[str]:
        arguments = self.operands((loop.start, loop.stop, loop.step))
        if loop.stage:
            arguments += f", stage={loop.stage}"
        function = f"pl.{loop.kind.value}"
        if not loop.carried:
            yield f"for {self.name(loop.var)} in {function}({arguments}):"
            yield from self.block(loop.body, _INDENT)
            return
        inits, names = self.carried(loop.carried)
        head = f"for {self.name(loop.var)}, {names} in "
        yield f"{head}{function}({arguments}, init_values={inits}):"
        if loop.body:
            yield from self.block(loop.body, _INDENT)
        yield _INDENT + self.yielded([c.result for c in loop.carried], loop.yields)

    def while_loop(self, loop: While) -> Iterator[str]:
        inits, names = self.carried(loop.carried)
        yield f"for {names} in pl.while_(init_values={inits}):"
        if loop.condition_body:
            yield from self.block(loop.condition_body, _INDENT)
        yield f"{_INDENT}pl.cond({self.operand(loop.condition)})"
        if loop.body:
            yield from self.block(loop.body, _INDENT)
        if loop.carried:
            yield _INDENT + self.yielded([c.result for c in loop.carried], loop.yields)

    def carried(self, carried: Sequence[Carried]) -> tuple[str, str]:
        """The initial values and the arguments, each as a tuple."""
        inits = "".join(f"{self.operand(c.init)}, " for c in carried)
        names = "".join(f"{self.name(c.arg)}, " for c in carried)
        return f"({inits.rstrip(' ')})", f"({names.rstrip(' ')})"

    def branch(self, branch: If) -> Iterator[str]:
        yield f"if {self.operand(branch.condition)}:"
        yield from self.arm(branch, branch.then_body, branch.then_yields)
        if branch.else_body or branch.results:
            yield "else:"
            yield from self.arm(branch, branch.else_body, branch.else_yields)

    def arm(self, branch: If, body: Sequence[Stmt], yields: Sequence[Operand]) -> Iterator[str]:
        if body or not yields:
            yield from self.block(body, _INDENT)
        if yields:
            yield _INDENT + self.yielded(branch.results, yields)

    def yielded(self, results: Sequence[Var], yields: Sequence[Operand]) -> str:
        left = ", ".join(self.name(result) for result in results)
        return f"{left} = pl.yield_({self.operands(yields)})"
