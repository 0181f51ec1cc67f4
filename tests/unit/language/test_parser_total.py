"""The parser is total: whatever a kernel holds, it gives a valid program or a ParserError."""

from __future__ import annotations

import ast
import builtins
import math
import random

import pypto.language as pl
import pytest
from pypto.ir.dtypes import BF16, FP32, INT32
from pypto.ir.nodes import DynDim, FunctionKind, ScalarType, TensorType
from pypto.ir.structure import assert_structural_equal
from pypto.ir.verifier import Form, verify
from pypto.language.parser.diagnostics.exceptions import ParserError
from pypto.language.parser.program import parse_program
from pypto.language.source import ConstValue, FunctionSource

HEAD = "def k(x: pl.Tensor, h: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32, c: pl.constexpr):\n"
M = DynDim("M")
ARGUMENTS = {
    "x": TensorType((M, 64), FP32),
    "h": TensorType((16, 64), BF16),
    "y": TensorType((M, 64), FP32),
    "n": ScalarType(INT32),
    "c": ConstValue(3),
}


def plain(value):
    return value


def source(text):
    tree = ast.parse(text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    scope = {**vars(builtins), "pl": pl, "math": math, "helper": HELPER, "core": CORE,
             "plain": plain, "TABLE": {"a": [1, 2]}}  # fmt: skip
    namespace = {name: scope[name] for name in names if name in scope}
    return FunctionSource(
        "k", "m:k", FunctionKind.ORCHESTRATION, lambda: tree, "k.py", 1, namespace,
        tuple(text.splitlines()),
    )  # fmt: skip


def _function(text, name, kind):
    tree = ast.parse(text).body[0]
    return FunctionSource(
        name, f"m:{name}", kind, lambda: tree, "k.py", 1, {"pl": pl}, tuple(text.splitlines())
    )


HELPER = _function("def helper(a, b=2):\n    return a, b\n", "helper", FunctionKind.INLINE)
CORE = _function(
    "def core(a: pl.Tensor, b: pl.Out[pl.Tensor]):\n"
    "    b = pl.store(pl.load(a, [0, 0], [8, 8]), [0, 0], b)\n    return b\n",
    "core", FunctionKind.INCORE,
)  # fmt: skip


def outcome(text):
    """The verified program or the error; anything else escapes."""
    try:
        program = parse_program(source(text), ARGUMENTS, name="p")
    except ParserError as error:
        return error
    verify(program, Form.FRONTEND)
    assert_structural_equal(pl.parse(program.as_python()), program)
    return program


NAMES = ["x", "h", "y", "n", "c", "t", "t", "u", "i", "m", "z", "pl", "math", "plain"]
CONSTANTS = [
    "0", "1", "-1", "16", "64", "2**70", "0.5", "1e400", "True", "None", "'s'", "b's'", "...",
    "[]", "()", "[0, 0]", "[16, 64]", "[8, 8]", "[n, 0]", "pl.FP32", "pl.FP16", "pl.Mem.Mat",
    "pl.Mem.Vec", "math.inf", "math.nan", "x.shape", "x.shape[0]", "t.shape", "x.dtype",
    "pl.Tensor", "pl.Tile[[16, 64], pl.FP32]", "pl.dynamic('M')", "TABLE['a'][0]",
    "pl.Level.CORE_GROUP", "pl.const(3, pl.INT32)", "pl.create_tile([16, 64])",
]  # fmt: skip
FUNCTIONS = [
    *(f"pl.{n}" for n in pl.__all__ if n[0].islower() and n not in ("jit", "tensor", "tile")),
    "helper", "core", "plain", "len", "min", "abs", "int", "float", "math.sqrt", "sum", "x", "n",
    "pl.tensor.dim", "x.bind_dynamic", "t.exp", "print", "pl.nothing",
]  # fmt: skip
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "<<",
    "&",
    "<",
    "==",
    "is",
    "and",
    "or",
    "in",
]
TARGETS = ["t", "u", "m", "n", "y", "c", "a, b", "y[:]", "y[0:16, :]", "y[n : n + 16]", "t.q"]
LOAD = "t = pl.load(x, [n, 0], [16, 64])"
LINES = [
    LOAD, "u = pl.exp(t)", "t = pl.add(t, u)", "y = pl.store(t, [0, 0], y)", "m = m + 1",
    "m = 0", "m = n", "z = pl.create_tensor([16, 64])", "z = core(x, z)", "u = t", "t = u", "pass",
    "return y", "break", "import os", "del t", "assert t", "r = pl.yield_(t)", "y[:] = t",
    "pl.static_print(t, m)", "u = pl.mul(x, 2.0)", "t = t + m", "n += 1", "h[:] = pl.exp(h)",
]  # fmt: skip


class Kernels:
    """Random kernel bodies, most of them wrong."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def expression(self, depth):
        pick = self.random.choice
        if depth == 0 or self.random.random() < 0.3:
            return pick(NAMES) if self.random.random() < 0.6 else pick(CONSTANTS)
        part = lambda: self.expression(depth - 1)  # noqa: E731
        kind = self.random.randrange(10)
        if kind < 5:
            arguments = [part() for _ in range(self.random.randrange(4))]
            extra = ["", "", "", "mode='rint'", "target_memory=pl.Mem.Mat", "clamp=True", "b=3"]
            return f"{pick(FUNCTIONS)}({', '.join([*arguments, pick(extra)]).removesuffix(', ')})"
        if kind == 5:
            return f"({part()} {pick(OPERATORS)} {part()})"
        if kind == 6:
            return f"({pick(['-', 'not ', '~'])}{part()})"
        if kind == 7:
            return f"({part()})[{pick([part(), part() + ':' + part()])}]"
        if kind == 8:
            return f"({part()} if {part()} else {part()})"
        return pick([f"[{part()}, {part()}]", f"[q for q in {part()}]", f"(*{part()}, 1)"])

    def statement(self, depth):
        """The lines of one statement."""
        pick, expression = self.random.choice, self.expression
        kind = self.random.randrange(14 if depth else 8)
        if kind < 4:
            return [pick(LINES)]
        if kind < 6:
            return [f"{pick(TARGETS)} = {expression(3)}"]
        if kind == 6:
            return [pick([f"{pick(NAMES)} += {expression(2)}", expression(3)])]
        if kind == 7:
            return [f"{pick(NAMES)}: {expression(1)} = {expression(2)}"]
        body = ["    " + line for _ in range(self.random.randint(1, 4))
                for line in self.statement(depth - 1)]  # fmt: skip
        if kind < 10:
            return ["with pl.at(level=pl.Level.CORE_GROUP):", f"    {LOAD}", *body]
        if kind == 10:
            other = ["    " + line for line in self.statement(depth - 1)]
            return [f"if {pick(['n > 1', 'c', expression(2)])}:", *body, "else:", *other]
        if kind == 11:
            return [f"for i in pl.range({pick(['n', '4', expression(1)])}):", *body]
        if kind == 12:
            head = f"for i, (t,) in pl.range(4, init_values=({expression(1)},)):"
            return [head, *body, f"    u = pl.yield_({expression(1)})"]
        return [f"{pick(['if', 'while'])} {expression(1)}:", *body]


@pytest.mark.conforms("language.35", "language.97")
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", range(8))
def test_any_body_gives_a_program_or_a_parser_error(seed):
    kernels, accepted = Kernels(seed), 0
    for _ in range(6):
        body = ["    pass"]
        for _ in range(30):  # what is accepted stays, so that kernels grow
            longer = [*body, *("    " + line for line in kernels.statement(3))]
            text = HEAD + "\n".join(longer) + "\n"
            try:
                compile(text, "k.py", "exec")
            except SyntaxError:  # such as an assignment to a literal
                continue
            first, second = outcome(text), outcome(text)
            if isinstance(first, ParserError):
                assert str(first) == str(second)
            else:
                assert first.as_python() == second.as_python()
                body, accepted = longer, accepted + 1
    assert accepted > 10  # the grammar reaches valid kernels too
