"""A program as text of the language, from which ``pl.parse`` makes an equal program.

The text is a Python module: run-time extents, then a class whose methods are the functions. It
shows every type, binds every name once, and is the same for the same program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from pypto.ir.nodes import (
    PLAIN,
    Call,
    Carried,
    Const,
    Direction,
    DynDim,
    For,
    Function,
    FunctionKind,
    If,
    ManualScope,
    Op,
    Operand,
    Param,
    Program,
    Return,
    Schedule,
    Scope,
    Span,
    Stmt,
    TensorType,
    Type,
    Var,
    While,
)
from pypto.ir.spelling import spelled, spelled_attribute, spelled_const
from pypto.ir.type_text import RESERVED, Extents, identifier, print_type

__all__ = ["print_function", "print_program", "print_type", "python_print"]

_INDENT = "    "
_IMPORT = "import pypto.language as pl"
_KINDS = {
    FunctionKind.ORCHESTRATION: "Orchestration",
    FunctionKind.INCORE: "InCore",
    FunctionKind.INLINE: "Inline",
    FunctionKind.OPAQUE: "Opaque",
}


def print_program(program: Program, *, annotated: bool = True, places: bool = False) -> str:
    """The text of a whole program, callees first.

    What operations bind is ``annotated`` with its type, and a tile with its address. With
    ``places``, each statement ends in a comment: the line of the user's source that it is from, of
    a file where the program knows that, or else of a function.
    """
    name = identifier(program.name, RESERVED)
    params = {p.name_hint for f in program.functions.values() for p in f.params}
    extents = Extents(RESERVED | params | {name, *program.functions})
    methods: list[str] = []
    for function in program.functions.values():
        sources = program.sources if places else None
        printer = _Printer(
            program.functions, extents, method=True, annotated=annotated, sources=sources
        )
        methods += ["", *(_INDENT + line if line else "" for line in printer.function(function))]
    return _module(extents, ["@pl.program(strict_ssa=True)", f"class {name}:", *methods[1:]])


def print_function(function: Function) -> str:
    """The text of one function; those that it calls are not part of it."""
    params = {param.name_hint for param in function.params}
    extents = Extents(RESERVED | params | {function.name})
    printer = _Printer({function.name: function}, extents, method=False)
    return _module(extents, list(printer.function(function)))


def python_print(node: Program | Function) -> str:
    """The text of a program or of a function."""
    return node.as_python()


def _module(extents: Extents, definition: Sequence[str]) -> str:
    declared = extents.declarations()
    head = [_IMPORT, *(["", *declared] if declared else [])]
    return "\n".join([*head, "", "", *definition]) + "\n"


class _Printer:
    """Names the variables of one function, in the order in which they appear."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        extents: Extents,
        *,
        method: bool,
        annotated: bool = True,
        sources: Mapping[str, tuple[str, int]] | None = None,
    ) -> None:
        self._functions = functions
        self._extents = extents
        self._method = method
        self._annotated = annotated
        self._sources = sources
        self._names: dict[Var, str] = {}
        self._taken: set[str] = set()
        # The run-time extents of the parameters, which annotations may use.
        self._known: set[DynDim] = set()

    def name(self, var: Var) -> str:
        if var not in self._names:
            self._names[var] = identifier(var.name, self._taken)
            self._taken.add(self._names[var])
        return self._names[var]

    def operand(self, operand: Operand) -> str:
        return self.name(operand) if isinstance(operand, Var) else spelled_const(operand)

    def operands(self, operands: Sequence[Operand]) -> str:
        return ", ".join(self.operand(operand) for operand in operands)

    # --- functions -------------------------------------------------------------------------

    def function(self, function: Function) -> Iterator[str]:
        for param in function.params:  # extents are declared before anything can be called so
            self.type(param.var.type)
            if isinstance(param.var.type, TensorType):
                self._known |= {d for d in param.var.type.shape if isinstance(d, DynDim)}
        self._taken = set(RESERVED | self._extents.names)
        yield f"@pl.function({', '.join(self.options(function))})"
        own = ["self"] if self._method else []
        params = ", ".join([*own, *(self.param(param) for param in function.params)])
        yield f"def {function.name}({params}){self.returned(function)}:"
        if function.external is not None:
            yield f"{_INDENT}..."
            return
        body = function.body
        if body and isinstance(body[-1], Return) and not body[-1].values:
            body = body[:-1]
        yield from self.block(body, _INDENT)

    def options(self, function: Function) -> Iterator[str]:
        """The arguments of the decorator."""
        yield f"type=pl.FunctionType.{_KINDS[function.func_type]}"
        if not self._method:
            yield "strict_ssa=True"
        if function.attrs:
            items = (f'"{k}": {spelled_attribute(v)}' for k, v in function.attrs.items())
            yield f"attrs={{{', '.join(items)}}}"
        external = function.external
        if external is None:
            return
        parts = {part.core_type: part.source for part in external.parts}
        given: dict[str, object] = {"core_type": "mixed" if len(parts) > 1 else next(iter(parts))}
        if len(parts) > 1:
            given |= {f"{core}_source": source for core, source in parts.items()}
        else:
            given["source"] = external.parts[0].source
        if external.dual_aiv_dispatch:
            given["dual_aiv_dispatch"] = True
        if external.include_dirs:
            given["include_dirs"] = list(external.include_dirs)
        yield f"external_source={given!r}"

    def param(self, param: Param) -> str:
        text = self.type(param.var.type)
        if param.direction is not Direction.In:
            text = f"pl.{param.direction.value}[{text}]"
        return f"{self.name(param.var)}: {text}"

    def returned(self, function: Function) -> str:
        """The annotation of what is returned, where every type has one."""
        types = function.return_types
        if not types or not all(self.has_annotation(type_) for type_ in types):
            return ""
        texts = ", ".join(self.type(type_) for type_ in types)
        return f" -> {texts}" if len(types) == 1 else f" -> tuple[{texts}]"

    def type(self, type_: Type) -> str:
        return print_type(type_, self._extents)

    def has_annotation(self, type_: Type) -> bool:
        """Whether an annotation can say a type: an extent that a function makes has no name."""
        if not isinstance(type_, TensorType):
            return True
        return all(not isinstance(dim, DynDim) or dim in self._known for dim in type_.shape)

    # --- statements ------------------------------------------------------------------------

    def block(self, body: Sequence[Stmt], pad: str) -> Iterator[str]:
        if not body:
            yield f"{pad}pass"
        for statement in body:
            lines = self.statement(statement)
            yield pad + next(lines) + self.place(statement.span)
            for line in lines:
                yield pad + line

    def place(self, span: Span) -> str:
        """A comment with the line that a span begins on, if such are asked for."""
        if self._sources is None:
            return ""
        if span.unit not in self._sources:
            return f"  # {span.unit}:{span.line}"
        file, first = self._sources[span.unit]
        return f"  # {PurePath(file).name}:{first + span.line - 1}"

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

    def op(self, op: Op) -> str:
        # Where every operand is a number, plain numbers would be computed with at once; a plain
        # number of bits that a type does not have would be refused as a mistake.
        exact = all(isinstance(operand, Const) for operand in op.operands)
        exact = exact or op.op == "scalar.shl" or op.op == "scalar.shr"
        texts = [
            spelled_const(operand, exact=exact and op.op.startswith("scalar."))
            if isinstance(operand, Const)
            else self.name(operand)
            for operand in op.operands
        ]
        text = spelled(op, texts)
        if op.result is None:
            return text
        return f"{self.name(op.result)}{self.annotation(op)} = {text}"

    def annotation(self, op: Op) -> str:
        assert op.result is not None
        if not self._annotated or not self.has_annotation(op.result.type):
            return ""
        address = op.attrs.get("addr")
        assert address is None or isinstance(address, int)
        return f": {print_type(op.result.type, self._extents, address)}"

    def call(self, call: Call) -> str:
        callee = f"self.{call.callee}" if self._method else call.callee
        schedule, arguments = call.schedule, self.operands(call.operands)
        text = f"{callee}({arguments})"
        if schedule != PLAIN:
            count = [] if schedule.blocks is None else [f"core_num={self.operand(schedule.blocks)}"]
            parts = [callee, *([arguments] if arguments else []), *count]
            function = "submit" if schedule.blocks is None else "spmd_submit"
            text = f"pl.{function}({', '.join(parts + self.schedule(schedule))})"
        names = [self.name(var) for var in self.results(call)]
        if schedule.task is not None:
            names.append(self.name(schedule.task))
        elif schedule != PLAIN and names:
            names.append("_")  # the id of the task, which nobody reads
        left = ", ".join(names)
        return f"{left} = {text}" if left else text

    def results(self, call: Call) -> tuple[Var, ...]:
        """The results that the call evaluates to, in the order in which the callee returns them.

        The others can only be called what was given for them.
        """
        callee = self._functions.get(call.callee)
        if callee is None or not call.results:
            return call.results
        written = [i for i, p in enumerate(callee.params) if p.direction is not Direction.In]
        by_param = {
            callee.params[i].var: result for i, result in zip(written, call.results, strict=True)
        }
        last = callee.body[-1] if callee.body else None
        if not isinstance(last, Return) or not last.values:
            return call.results
        returned = tuple(by_param[value] for value in last.values if isinstance(value, Var))
        for position, result in zip(written, call.results, strict=True):
            operand = call.operands[position]
            if result not in returned and isinstance(operand, Var):
                self._names[result] = self.name(operand)
        return returned

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
