"""Loops, branches, elements and subscripts as programs, which are read back as printed too."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.ir.dtypes import BOOL, INT32
from pypto.ir.nodes import For, If, LoopKind, Op, While
from pypto.ir.passes.rewrite import walk

ROWS = 16


def statements(program, kind):
    return [s for s in walk(program.functions[program.entry].body) if isinstance(s, kind)]


def ops(program):
    return [s.op for s in statements(program, Op)]


@pytest.mark.conforms("language.86", "language.87")
def test_loops_have_kinds(lang):
    stage = 3

    def kernel(n: pl.Scalar[pl.INT32]):
        for i in pl.range(4):
            for j in pl.parallel(i, ROWS, 2):
                for k in pl.pipeline(n, stage=stage):
                    pl.static_print(j, k)

    loops = statements(lang.parse(kernel, n=INT32), For)
    assert [(loop.kind, loop.stage) for loop in loops] == [
        (LoopKind.SEQUENTIAL, 0),
        (LoopKind.PARALLEL, 0),
        (LoopKind.PIPELINE, 3),
    ]


@pytest.mark.conforms("language.59", "language.83")
def test_explicit_values_are_carried_as_written(lang):
    """Also those that nothing changes and nobody reads."""

    def kernel(n: pl.Scalar[pl.INT32]):
        for i, (a, b, c) in pl.range(n, init_values=[0, 1.5, n]):
            x, y, z = pl.yield_(a + i, b, c)
        for (k,) in pl.while_(init_values=(y,)):
            pl.cond(k > 2.0)
            pl.yield_(k * 0.5)

    program = lang.parse(kernel, n=INT32)
    (loop,) = statements(program, For)
    assert [carried.arg.name for carried in loop.carried] == ["a", "b", "c"]
    assert loop.yields[1:] == (loop.carried[1].arg, loop.carried[2].arg)
    (repeated,) = statements(program, While)
    assert repeated.carried[0].init is loop.carried[1].result
    assert [s.op for s in repeated.condition_body] == ["scalar.gt"]
    assert [s.op for s in repeated.body] == ["scalar.mul"]


@pytest.mark.conforms("language.88")
def test_unrolled_loops_leave_no_node(lang):
    def kernel(n: pl.Scalar[pl.INT32]):
        total = n
        for i in pl.unroll(ROWS // 4):
            for j in pl.unroll(2, 6, 3):
                total = total + (i * 10 + j)
        pl.static_assert(ROWS == 16)

    program = lang.parse(kernel, n=INT32)
    assert not statements(program, For)
    added = [op.operands[1].value for op in statements(program, Op)]
    assert added == [i * 10 + j for i in range(4) for j in (2, 5)]


@pytest.mark.conforms("language.92")
def test_results_of_a_branch_are_kept_in_the_order_written(lang):
    def kernel(flag: pl.Scalar[pl.BOOL], n: pl.Scalar[pl.INT32]):
        if flag:
            z, a = pl.yield_(n, 1)
        elif n > 3:
            z, a = pl.yield_(n + 1, 1)
        else:
            z, a = pl.yield_(3, 1)

    outer, inner = statements(lang.parse(kernel, flag=BOOL, n=INT32), If)
    assert [result.name for result in outer.results] == ["z", "a"]
    assert [result.name for result in inner.results] == ["z", "a"]
    assert outer.else_yields == inner.results


def test_a_branch_that_yields_may_be_all_of_an_arm(lang):
    def kernel(n: pl.Scalar[pl.INT32], k: pl.Scalar[pl.INT32]):
        if n > 3:
            if n > 4:
                k = pl.yield_(n)
            else:
                k = pl.yield_(3)
        if n > 5:
            k = k + 1
        else:
            if n > 4:
                k = pl.yield_(n)
            else:
                k = pl.yield_(4)
        m = k * 2  # noqa: F841

    first, _, second, _ = statements(lang.parse(kernel, n=INT32, k=INT32), If)
    assert [result.name for result in (*first.results, *second.results)] == ["k", "k"]


@pytest.mark.conforms("language.90")
def test_a_known_branch_yields_at_once(lang):
    def kernel(n: pl.Scalar[pl.INT32]):
        if ROWS > 4:
            k, m = pl.yield_(ROWS, 2)
        else:
            k, m = pl.yield_(n, 3)
        pl.static_assert(k == 16 and m == 2)

    assert not statements(lang.parse(kernel, n=INT32), If)


@pytest.mark.conforms("language.98", "language.99")
def test_elements_are_read_and_written(lang):
    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        k = x[n, 3]
        out[0, 0] = k
        pl.tensor.write(out, [0, n], 2)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 64])
            t[0, n] += pl.tensor.read(x, [0, n])
            pl.tile.write(t, [1, n], t[2, n])
            out[0:8, :] = t

    program = lang.parse(kernel, x=lang.tensor(64, 64), n=INT32, out=lang.tensor(64, 64))
    assert [op for op in ops(program) if op != "scalar.cast"] == [
        "tensor.read",
        "tensor.write",
        "tensor.write",
        "tile.load",
        "tile.read",
        "tensor.read",
        "scalar.add",
        "tile.write",
        "tile.read",
        "tile.write",
        "tile.store",
    ]


@pytest.mark.conforms("language.99")
def test_a_written_tile_is_carried_by_its_name(lang):
    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 64])
            for i in pl.range(n):
                if i > 2:
                    pl.write(t, [0, i], 1.0)
            out[0:8, :] = t

    program = lang.parse(kernel, x=lang.tensor(64, 64), n=INT32, out=lang.tensor(64, 64))
    (loop,) = statements(program, For)
    (branch,) = statements(program, If)
    assert [carried.arg.name for carried in loop.carried] == ["t"]
    assert loop.yields == branch.results
    assert branch.else_yields == (loop.carried[0].arg,)


@pytest.mark.conforms("language.102")
def test_extents_fold_where_starts_do_not(lang):
    C = 8

    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(4):
                a = x[i * C : (i + 1) * C, n : C + n]
                b = x[2 * i + 1 : i + i + 9, n - 4 : n + 4]
                out[i * C : i * C + C, 0:C] = a + b

    program = lang.parse(kernel, x=lang.tensor(64, 64), n=INT32, out=lang.tensor(64, 64))
    shapes = [op.attrs["shape"] for op in statements(program, Op) if op.op == "tensor.slice"]
    assert shapes == [(8, 8), (8, 8)]


@pytest.mark.conforms("language.101", "language.104")
def test_parts_of_tiles_stay_matrices(lang):
    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, 64])
            pl.static_assert(t[0:8].shape == (8, 64))
            pl.static_assert(t[n].shape == (1, 64))
            pl.static_assert(t[:, n].shape == (1, 16))
            pl.static_assert(t[:, n : n + 1].shape == (16, 1))
            out[0:16, :] = t

    lang.parse(kernel, x=lang.tensor(64, 64), n=INT32, out=lang.tensor(64, 64))


@pytest.mark.conforms("language.64")
def test_a_scalar_of_a_block_is_known_after_it(lang):
    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            half = n // 2
            out[0:1, :] = pl.load(x, [half, 0], [1, 64])
        for i in pl.range(half):
            pl.static_print(i)

    program = lang.parse(kernel, x=lang.tensor(64, 64), n=INT32, out=lang.tensor(64, 64))
    (loop,) = statements(program, For)
    (halved,) = [op for op in statements(program, Op) if op.op == "scalar.floordiv"]
    (bound,) = [op for op in statements(program, Op) if op.result is loop.stop]
    assert bound.operands == (halved.result,)
