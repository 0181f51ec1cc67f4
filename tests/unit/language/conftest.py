"""Kernels of the tests, from live functions to programs.

The decorators belong to a layer above the parser, so these tests make a ``FunctionSource`` from a
plain function themselves.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import keyword
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType

import pypto.language as pl
import pytest
from pypto.ir import printer
from pypto.ir.dtypes import FP32, DataType
from pypto.ir.nodes import (
    DynDim,
    FunctionKind,
    MemorySpace,
    Op,
    Program,
    ScalarType,
    TensorType,
)
from pypto.ir.spelling import spelled_attribute
from pypto.ir.structure import assert_structural_equal
from pypto.ir.type_text import RESERVED, Extents
from pypto.ir.verifier import Form, verify
from pypto.language.parser.program import parse_program
from pypto.language.source import ConstValue, FunctionSource


@dataclass(frozen=True)
class Kernel:
    """A function and its kind, as a decorator would record it."""

    function: FunctionType
    kind: FunctionKind


def incore(function: FunctionType) -> Kernel:
    return Kernel(function, FunctionKind.INCORE)


def inline(function: FunctionType) -> Kernel:
    return Kernel(function, FunctionKind.INLINE)


def source_of(
    kernel: Kernel | FunctionType, known: dict[FunctionType, FunctionSource] | None = None
) -> FunctionSource:
    """The source of a function with every global and closure variable as its namespace."""
    if isinstance(kernel, FunctionType):
        kernel = Kernel(kernel, FunctionKind.ORCHESTRATION)
    function = kernel.function
    known = {} if known is None else known
    if function in known:
        return known[function]
    raw, first = inspect.getsourcelines(function)
    opening = ["if 1:"] if raw[0][0].isspace() else []
    lines = [*opening, *(line.rstrip("\n") for line in raw)]
    tree = ast.parse("\n".join(lines)).body[0]
    if isinstance(tree, ast.If):
        (tree,) = tree.body
    assert isinstance(tree, ast.FunctionDef)
    namespace: dict[str, object] = {}
    source = FunctionSource(
        name=function.__name__,
        unit=f"kernels:{function.__name__}",
        kind=kernel.kind,
        tree_of=lambda: tree,
        file=inspect.getsourcefile(function) or "",
        first_line=first + tree.lineno - 1 - len(opening),
        namespace=namespace,
        lines=tuple(lines),
    )
    known[function] = source
    closure = inspect.getclosurevars(function)
    free = {**vars(builtins), **function.__globals__, **closure.nonlocals}
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        free[name] = cell.cell_contents
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {"pl"}
    for name, value in free.items():
        if isinstance(value, Kernel):
            namespace[name] = source_of(value, known)
        elif name in used:
            namespace[name] = value
    return source


def tensor(*shape: int | str, dtype: DataType = FP32) -> TensorType:
    """A tensor type; strings are dynamic extents."""
    return TensorType(tuple(DynDim(d) if isinstance(d, str) else d for d in shape), dtype)


def parse(kernel: Kernel | FunctionType, **arguments: object) -> Program:
    """The program of a kernel; numbers stand for constexpr values, dtypes for scalars."""
    typed: dict[str, TensorType | ScalarType | ConstValue] = {}
    for name, value in arguments.items():
        if isinstance(value, TensorType | ScalarType | ConstValue):
            typed[name] = value
        elif isinstance(value, DataType):
            typed[name] = ScalarType(value)
        else:
            typed[name] = ConstValue(value)
    program = parse_program(source_of(kernel), typed, name="program")
    verify(program, Form.FRONTEND)
    assert_structural_equal(pl.parse(program.as_python()), program)
    return program


class Plain(printer._Printer):
    """Prints operations as the representation has them, not as the language says them."""

    def op(self, op: Op) -> str:
        arguments = [self.operand(operand) for operand in op.operands]
        arguments += [
            f"{key}={spelled_attribute(value)}".replace("pl.Mem.", "")
            for key, value in sorted(op.attrs.items())
            if (key, value) not in (("has_valid", False), ("space", MemorySpace.Vec))
        ]
        family, name = op.op.split(".")
        word = f"{name}_" if keyword.iskeyword(name) else name
        text = f"pl.{family}.{word}({', '.join(arguments)})"
        return text if op.result is None else f"{self.name(op.result)} = {text}"


def lines(program: Program, function: str | None = None) -> list[str]:
    """The statements of a function (the entry unless named), without types and defaults."""
    plain = Plain(program.functions, Extents(RESERVED), method=False)
    found = program.functions[function or program.entry]
    for param in found.params:
        plain.name(param.var)
    return [line for statement in found.body for line in plain.statement(statement)]


@dataclass(frozen=True)
class Language:
    """What the tests of this folder work with."""

    parse: Callable[..., Program]
    tensor: Callable[..., TensorType]
    incore: Callable[[FunctionType], Kernel]
    inline: Callable[[FunctionType], Kernel]
    source_of: Callable[..., FunctionSource]
    lines: Callable[..., list[str]]


@pytest.fixture
def lang() -> Language:
    return Language(parse, tensor, incore, inline, source_of, lines)
