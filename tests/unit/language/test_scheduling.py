"""Blocks, submitted tasks, declared order, arrays: what they become, and that it reads back.

``lang.parse`` prints every program and reads the text, so each of these is a round trip too.
"""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.ir.dtypes import INT32
from pypto.ir.nodes import AtomicType, Call, ManualScope, Op, Scope
from pypto.ir.passes.rewrite import walk


def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    at = pl.tile.get_block_idx() * pl.tile.get_block_num()
    out = pl.store(pl.mul(pl.load(x, [at, 0], [16, 64]), 2), [at, 0], out)
    return out


def quiet(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)


# What lang.incore makes of them takes their place in the kernels below.
FUNCTIONS = {"doubled": doubled, "quiet": quiet}


@pytest.fixture
def parsed(lang, monkeypatch):
    for name, function in FUNCTIONS.items():
        monkeypatch.setitem(globals(), name, lang.incore(function))

    def parse(kernel, **scalars):
        wide = lang.tensor(64, 64)
        return lang.parse(kernel, x=wide, out=wide, **scalars)

    return parse


def tasks(program):
    return [s for s in walk(program.functions[program.entry].body) if isinstance(s, Call | Scope)]


def blocks_by_call(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.spmd(4) as tid:
        out = doubled(x, out)
    with pl.spmd(core_num=2, deps=[tid]):
        quiet(x, out)
    return out


@pytest.mark.conforms("language.69", "language.74")
def test_a_block_that_is_one_call_is_a_call(lang, parsed):
    program = parsed(blocks_by_call)
    assert lang.lines(program) == [
        "out_1, tid = pl.spmd_submit(doubled, x, out, core_num=4)",
        "out_2, _ = pl.spmd_submit(quiet, x, out_1, core_num=2, deps=[tid])",
        "return out",
    ]


def loop_over_blocks(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    for i in pl.spmd(n * 2, name_hint="rows"):
        out = pl.store(pl.load(x, [i, 0], [16, 64]), [i, 0], out)
    return out


@pytest.mark.conforms("language.69")
def test_a_loop_over_blocks_is_a_scope_that_knows_its_index(lang, parsed):
    program = parsed(loop_over_blocks, n=INT32)
    assert lang.lines(program) == [
        "mul = pl.scalar.mul(n, pl.const(2, pl.INT32))",
        "mul_1 = pl.scalar.cast(mul, dtype=pl.INDEX)",
        'with pl.spmd(mul_1, name_hint="rows"):',
        "    i = pl.tile.get_block_idx()",
        "    load = pl.tile.load(x, i, 0, shape=[16, 64])",
        "    out_1 = pl.tile.store(load, i, 0, out)",
        "return out",
    ]


def core_function_in_blocks(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.spmd(4):
        with pl.cluster():
            out = doubled(x, out)
        quiet(x, out)
    return out


@pytest.mark.conforms("language.69")
def test_core_functions_in_a_block_become_part_of_it(parsed):
    program = parsed(core_function_in_blocks)
    assert list(program.functions) == [program.entry]
    (scope,) = tasks(program)
    assert [s.op for s in scope.body if isinstance(s, Op)].count("tile.store") == 2


def clusters(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.cluster():
        out = doubled(x, out)
    with pl.cluster(name_hint="one_group"):
        out = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)
    return out


@pytest.mark.conforms("language.72")
def test_a_cluster_is_a_task_unless_it_holds_some(parsed):
    call, scope = tasks(parsed(clusters))
    assert isinstance(call, Call)
    assert isinstance(scope, Scope)
    assert scope.name_hint == "one_group"


def submitted(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    pl.dump_tag(x)
    with pl.manual_scope():
        ids: pl.Array[3, pl.TASK_ID] = pl.array.create(3, pl.TASK_ID)
        last: pl.TaskId = None
        for i in pl.range(3):
            out, last = pl.submit(doubled, pl.no_dep(x), out, deps=[last])
            ids[i] = last
        done = pl.submit(quiet, x, out=out, deps=[ids, [last, None]], dumps=[out])
    with pl.at(
        level=pl.Level.CORE_GROUP,
        deps=[done, ids[0], pl.array.read(ids, 1)],
        no_dep_args=[out],
        optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT), pl.cross_core_slot(slot_num=2)],
    ):
        out = pl.store(pl.load(out, [0, 0], [16, 64]), [0, 0], out)
    return out


@pytest.mark.conforms(
    "language.59",
    "language.66",
    "language.73",
    "language.75",
    "language.78",
    "language.79",
)
def test_submitted_tasks_carry_their_schedule(lang, parsed):
    program = parsed(submitted)
    assert lang.lines(program) == [
        "with pl.manual_scope():",
        "    ids = pl.array.create(dtype=pl.TASK_ID, size=3)",
        "    no_task = pl.task.none()",
        "    for i, (last,) in pl.range(0, 3, 1, init_values=(no_task,)):",
        "        out_1, task = pl.submit(doubled, x, out, deps=[last], no_dep_args=[x], dumps=[x])",
        "        pl.array.write(ids, i, task)",
        "        last_1 = pl.yield_(task)",
        "    out_2, done = pl.submit(quiet, x, out, deps=[ids, last_1], dumps=[x, out])",
        "ids_1 = pl.array.read(ids, 0)",
        "ids_2 = pl.array.read(ids, 1)",
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[done, ids_1, ids_2], no_dep_args=[out]):",
        "    load = pl.tile.load(out, 0, 0, shape=[16, 64])",
        "    out_3 = pl.tile.store(load, 0, 0, out)",
        "return out",
    ]
    assert any(isinstance(s, ManualScope) for s in program.functions[program.entry].body)


def merged(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    if n > 3:
        out, tid = pl.submit(doubled, x, out)
    else:
        with pl.at(level=pl.Level.CORE_GROUP) as tid:
            out = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)
    pl.submit(quiet, x, out, deps=[tid])
    return out


@pytest.mark.conforms("language.77")
def test_branches_hand_on_task_ids(lang, parsed):
    text = lang.lines(parsed(merged, n=INT32))
    assert text[-2:] == ["out_3, _ = pl.submit(quiet, x, out, deps=[tid])", "return out"]


def without_a_task_at_first(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    last = None
    for i in pl.range(n):
        if i > 2:
            out, tid = pl.submit(doubled, x, out, deps=[last])
        else:
            tid = None
        last = tid
    pl.submit(quiet, x, out, deps=[last])
    return out


@pytest.mark.conforms("language.77")
def test_none_becomes_the_id_of_no_task_where_a_task_may_follow(lang, parsed):
    assert lang.lines(parsed(without_a_task_at_first, n=INT32)) == [
        "n_1 = pl.scalar.cast(n, dtype=pl.INDEX)",
        "no_task = pl.task.none()",
        "for i, (last,) in pl.range(0, n_1, 1, init_values=(no_task,)):",
        "    gt = pl.scalar.gt(i, 2)",
        "    if gt:",
        "        out_1, task = pl.submit(doubled, x, out, deps=[last])",
        "        tid = pl.yield_(task)",
        "    else:",
        "        no_task_1 = pl.task.none()",
        "        tid = pl.yield_(no_task_1)",
        "    last_1 = pl.yield_(tid)",
        "out_2, _ = pl.submit(quiet, x, out, deps=[last_1])",
        "return out",
    ]


def added(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    for i in pl.spmd(4):
        tile = pl.load(x, [i * 16, 0], [16, 64])
        out = pl.store(tile, [0, 0], out, atomic=pl.AtomicType.Add)
        out = pl.assemble(out, tile, [16, 0], atomic=pl.AtomicType.Add)
        out = pl.assemble(out, pl.add(x[0:16, :], 1.0), [32, 0], atomic=pl.AtomicType.Add)
        out = pl.store(tile, [48, 0], out, atomic=pl.AtomicType.None_)
    return out


@pytest.mark.conforms("language.80")
def test_atomic_stores_say_so_and_plain_ones_do_not(parsed):
    (scope,) = tasks(parsed(added))
    stores = [s for s in scope.body if isinstance(s, Op) and s.op.endswith(("store", "assemble"))]
    assert [dict(s.attrs).get("atomic") for s in stores] == [AtomicType.Add] * 3 + [None]
