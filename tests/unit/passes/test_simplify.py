"""What is computed for nothing goes, and nothing else does."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import pypto.language as pl
import pytest
from pypto.ir.nodes import Const, For, If, Op, Program, Stmt
from pypto.ir.passes import TargetLimits
from pypto.ir.passes.rewrite import walk
from pypto.ir.passes.simplify import simplify
from pypto.ir.verifier import Form, verify

HEAD = """
import pypto.language as pl

T = pl.Tensor[[64, 64], pl.FP32]


@pl.program
class kernels:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: T, out: pl.Out[T], n: pl.INDEX):
"""


def parsed(body: str) -> Program:
    return pl.parse(HEAD + textwrap.indent(textwrap.dedent(body).strip(), " " * 8) + "\n")


def body_of(program: Program) -> Sequence[Stmt]:
    return program.functions["f"].body


def simple(body: str, limits: TargetLimits) -> Sequence[Stmt]:
    program = simplify(parsed(body), limits)
    verify(program, Form.FRONTEND)
    return body_of(program)


def ops(body: Sequence[Stmt]) -> list[str]:
    return [s.op for s in walk(body) if isinstance(s, Op)]


def test_a_loop_that_runs_once_is_its_body(limits: TargetLimits) -> None:
    body = simple(
        """
        t = pl.load(x, [0, 0], [8, 64])
        for i in pl.range(3, 4):
            t = pl.add(t, pl.load(x, [i * 8, 0], [8, 64]))
        out = pl.store(t, [0, 0], out)
        """,
        limits,
    )
    assert ops(body) == ["tile.load", "tile.load", "tile.add", "tile.store"]
    second = body[1]
    assert isinstance(second, Op)
    assert second.operands[1] == Const(24, second.operands[1].dtype)  # type: ignore[union-attr]
    assert second.span.line == 4


def test_a_loop_that_never_runs_hands_on_what_it_was_given(limits: TargetLimits) -> None:
    body = simple(
        """
        t = pl.load(x, [0, 0], [8, 64])
        for i in pl.range(4, 4):
            t = pl.neg(t)
        out = pl.store(t, [0, 0], out)
        """,
        limits,
    )
    assert ops(body) == ["tile.load", "tile.store"]


@pytest.mark.parametrize("stop", ["2", "n"])
def test_loops_that_may_run_more_often_stay(limits: TargetLimits, stop: str) -> None:
    body = simple(
        f"""
        for i in pl.range({stop}):
            out = pl.store(pl.load(x, [0, 0], [8, 64]), [i, 0], out)
        """,
        limits,
    )
    assert any(isinstance(s, For) for s in body)


def test_equal_arithmetic_is_done_once(limits: TargetLimits) -> None:
    body = simple(
        """
        for i in pl.range(n):
            a = pl.load(x, [i * 8 + 1, 0], [8, 64])
            out = pl.store(a, [i * 8 + 1, 0], out)
        """,
        limits,
    )
    assert ops(body) == ["scalar.mul", "scalar.add", "tile.load", "tile.store"]


def test_arithmetic_of_one_arm_is_not_known_in_the_other(limits: TargetLimits) -> None:
    body = simple(
        """
        t = pl.load(x, [0, 0], [8, 64])
        if n > 3:
            out = pl.store(t, [n * 8, 0], out)
        else:
            out = pl.store(t, [n * 8, 0], out)
        out = pl.store(t, [n * 8, 0], out)
        """,
        limits,
    )
    assert ops(body).count("scalar.mul") == 3


def test_what_a_loop_knows_its_branches_know(limits: TargetLimits) -> None:
    body = simple(
        """
        t = pl.load(x, [0, 0], [8, 64])
        for i in pl.range(2, 3):
            if i > 1:
                t = pl.neg(t)
            else:
                t = pl.abs(t)
        out = pl.store(t, [0, 0], out)
        """,
        limits,
    )
    assert not any(isinstance(s, If | For) for s in body)
    assert ops(body) == ["tile.load", "tile.neg", "tile.store"]


def test_what_nobody_reads_is_dropped(limits: TargetLimits) -> None:
    body = simple(
        """
        t = pl.load(x, [0, 0], [8, 64])
        u = pl.exp(pl.add(t, t))
        m = n * 3 + 1
        out = pl.store(t, [0, 0], out)
        """,
        limits,
    )
    assert ops(body) == ["tile.load", "tile.store"]


def test_what_may_end_in_a_fault_stays(limits: TargetLimits) -> None:
    body = simple(
        """
        t = pl.load(x, [n, 0], [8, 64])
        m = 7 // n
        v = pl.read(x, [n, n])
        """,
        limits,
    )
    assert set(ops(body)) == {"tile.load", "scalar.floordiv", "tensor.read"}


@pytest.mark.parametrize(
    ("written", "op"),
    [
        ("pl.div(k, k)", "tile.div"),
        ("pl.div(k, m)", "tile.divs"),
        ("pl.div(7, k)", "tile.rdivs"),
        ("pl.row_expand_div(k, pl.row_max(k, None))", "tile.row_expand_div"),
        ("pl.fmod(k, m)", "tile.fmods"),
        ("pl.set_validshape(t, n, 3)", "tile.set_validshape"),
    ],
)
def test_operations_that_check_their_operands_when_they_run_stay(
    limits: TargetLimits, written: str, op: str
) -> None:
    body = simple(
        f"""
        t = pl.load(x, [0, 0], [8, 64])
        k = pl.cast(t, pl.INT32)
        m = pl.cast(n, pl.INT32)
        unread = {written}
        """,
        limits,
    )
    assert op in ops(body)


def test_a_sum_that_its_type_would_wrap_is_left_to_the_chip(limits: TargetLimits) -> None:
    body = simple(
        """
        for i in pl.range(9223372036854775807, 9223372036854775807):
            out = pl.store(pl.load(x, [0, 0], [8, 64]), [i, 0], out)
        for j in pl.range(9223372036854775806, 9223372036854775807):
            out = pl.store(pl.load(x, [0, 0], [8, 64]), [j + 5, 0], out)
        """,
        limits,
    )
    assert ops(body) == ["tile.load", "scalar.add", "tile.store"]


def test_orchestration_functions_stay_as_they_are(limits: TargetLimits) -> None:
    text = """
import pypto.language as pl

T = pl.Tensor[[64, 64], pl.FP32]


@pl.program
class kernels:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, out: pl.Out[T]):
        for i in pl.range(1):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(x, [i, 0], [8, 64]), [i, 0], out)
        return out
"""
    program = pl.parse(text)
    assert simplify(program, limits).functions["main"] is program.functions["main"]


def test_valid_regions_that_are_run_time_values_stay_so(limits: TargetLimits) -> None:
    # What reads the tile was typed when nobody knew how much of it is valid.
    body = simple(
        """
        for i in pl.range(0, 8, 8):
            t = pl.load(x, [i, 0], [8, 64], valid_shape=[pl.min(11 - i, 8), 64])
            out = pl.store(pl.neg(t), [i, 0], out)
        """,
        limits,
    )
    assert ops(body) == ["scalar.add", "tile.load", "tile.neg", "tile.store"]
