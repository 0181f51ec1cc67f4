"""What a task reads and writes is found out from what it does, however it gets at its tensors."""

from __future__ import annotations

import textwrap

import pypto.language as pl
import pytest
from pypto.ir.nodes import Call, Direction, Program
from pypto.ir.passes import TargetLimits, run_passes
from pypto.ir.passes.rewrite import walk

HEAD = """
import pypto.language as pl

T = pl.Tensor[[16, 64], pl.FP32]


@pl.program
class kernels:
"""


def lowered(limits: TargetLimits, text: str) -> Program:
    body = textwrap.indent(textwrap.dedent(text).strip(), "    ")
    return run_passes(pl.parse(HEAD + body + "\n"), limits)


def uses(program: Program, name: str) -> dict[str, Direction]:
    """The directions of a function's tensors."""
    return {p.name_hint: p.direction for p in program.functions[name].params}


def scope(body: str, params: str = "x: T, y: pl.InOut[T], out: pl.Out[T], n: pl.INDEX") -> str:
    lines = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return (
        "@pl.function(type=pl.FunctionType.Orchestration)\n"
        f"def main(self, {params}):\n"
        '    with pl.at(level=pl.Level.CORE_GROUP, name_hint="work"):\n' + lines
    )


READ, WRITE, BOTH = Direction.In, Direction.Out, Direction.InOut

BODIES = {
    "a load and a store": (
        "t = pl.load(x, [0, 0], [16, 64])\nout = pl.store(t, [0, 0], out)",
        {"x": READ, "out": WRITE},
    ),
    "a store in a loop": (
        """
        for i in pl.range(n):
            t = pl.load(x, [0, 0], [8, 64])
            out = pl.store(t, [i * 8, 0], out)
        """,
        {"x": READ, "out": WRITE},
    ),
    "a load of what an earlier turn of a loop stored": (
        """
        for i in pl.range(n):
            t = pl.load(y, [0, 0], [8, 64])
            y = pl.store(t, [8, 0], y)
        """,
        {"y": BOTH},
    ),
    "a read in one arm and a write in the other": (
        """
        if n > 3:
            t = pl.load(y, [0, 0], [8, 64])
            out = pl.store(t, [0, 0], out)
        else:
            s = pl.load(x, [0, 0], [8, 64])
            y = pl.store(s, [0, 0], y)
        """,
        {"x": READ, "y": BOTH, "out": WRITE},
    ),
    "a loop in a branch in a loop": (
        """
        for i in pl.range(n):
            if i % 2 == 0:
                for j in pl.range(2):
                    y = pl.store(pl.load(x, [0, 0], [8, 64]), [j * 8, 0], y)
        """,
        {"x": READ, "y": WRITE},
    ),
    "whole tensors": ("out[:] = pl.add(x, y)", {"x": READ, "y": READ, "out": WRITE}),
    "an assignment in place": ("y[:] = pl.add(x, y)", {"x": READ, "y": BOTH}),
    "a region": ("out[0:8, :] = x[8:16, :]", {"x": READ, "out": WRITE}),
    "a region moved within its tensor": ("y[0:8, :] = y[8:16, :]", {"y": BOTH}),
    "another shape of the same memory": (
        "t = pl.load(pl.reshape(y, [64, 16]), [0, 0], [64, 16])\nout = pl.store(pl.reshape(t, "
        "[16, 64]), [0, 0], out)",
        {"y": READ, "out": WRITE},
    ),
    "an element read and one written": (
        "v = pl.read(x, [1, 2])\npl.write(y, [3, 4], v)",
        {"x": READ, "y": WRITE},
    ),
    "a sum onto memory": (
        "y = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], y, atomic=pl.AtomicType.Add)",
        {"x": READ, "y": BOTH},
    ),
    "an input that is written": (
        "x = pl.store(pl.load(x, [0, 0], [8, 64]), [8, 0], x)",
        {"x": BOTH},
    ),
    "an output that is read": (
        "y[:] = pl.neg(out)",
        {"y": WRITE, "out": READ},
    ),
}


@pytest.mark.conforms("language.61")
@pytest.mark.parametrize("name", BODIES)
def test_a_scope_reads_and_writes(name: str, limits: TargetLimits) -> None:
    body, expected = BODIES[name]
    found = uses(lowered(limits, scope(body)), "work")
    assert {n: d for n, d in found.items() if n != "n"} == expected


def test_large_tensors_keep_their_directions(limits: TargetLimits) -> None:
    params = (
        "x: pl.Tensor[[1000, 333], pl.FP32], y: pl.InOut[pl.Tensor[[1000, 333], pl.FP32]], "
        "out: pl.Out[pl.Tensor[[1000, 1], pl.FP32]]"
    )
    body = "y[:] = pl.add(x, y)\nout[:] = pl.row_sum(x)"
    found = uses(lowered(limits, scope(body, params)), "work")
    assert found == {"x": READ, "y": BOTH, "out": WRITE}


CALLEE = """
@pl.function(type=pl.FunctionType.InCore)
def update(self, cache: T, x: T):
    t = pl.load(x, [0, 0], [16, 64])
    cache = pl.store(t, [0, 0], cache)
"""


@pytest.mark.conforms("language.20")
def test_an_input_that_a_callee_writes_is_an_output_of_every_caller(limits: TargetLimits) -> None:
    text = CALLEE + (
        "\n@pl.function(type=pl.FunctionType.Orchestration)\n"
        "def main(self, k: T, x: T):\n"
        "    for i in pl.range(2):\n"
        "        self.update(k, x)\n"
    )
    program = lowered(limits, text)
    assert uses(program, "update") == {"cache": BOTH, "x": READ}
    assert uses(program, "main") == {"k": BOTH, "x": READ}
    (call,) = [s for s in walk(program.functions["main"].body) if isinstance(s, Call)]
    assert [result.name for result in call.results] == ["k"]


def test_what_an_inline_function_does_is_what_its_caller_does(limits: TargetLimits) -> None:
    text = """
    @pl.function(type=pl.FunctionType.Inline)
    def double(self, a: T, b: T):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="work"):
            b[:] = pl.add(a, a)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, y: pl.InOut[T]):
        self.double(x, y)
        self.double(y, x)
    """
    program = lowered(limits, text)
    works = [name for name in program.functions if name.startswith("work")]
    assert [uses(program, name) for name in works] == [
        {"x": READ, "y": WRITE},
        {"y": READ, "x": WRITE},
    ]
    assert uses(program, "main") == {"x": BOTH, "y": BOTH}
