"""The text of programs: Python syntax, unique names, every type."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from pypto.ir.dtypes import BOOL, FP16, FP32, INDEX, INT32, TASK_ID
from pypto.ir.nodes import (
    ArrayType,
    Call,
    Carried,
    Const,
    Direction,
    DynDim,
    For,
    Function,
    FunctionKind,
    If,
    LoopKind,
    ManualScope,
    MemorySpace,
    Op,
    Param,
    Program,
    Return,
    ScalarType,
    Schedule,
    Scope,
    Span,
    TensorType,
    TileType,
    Var,
    While,
)
from pypto.ir.printer import print_program, print_type

SPAN = Span("kernels:entry", 3, 4)


def sample():
    tensor = TensorType((DynDim("rows$0"), 64), FP16)
    x, out, n = Var("x", tensor), Var("out", tensor), Var("class", ScalarType(INT32))
    cond = Var("not", ScalarType(BOOL))
    tile = TileType((16, 64), FP16, MemorySpace.Vec, (None, 64))
    a, b, c, r = Var("t", tile), Var("t", tile), Var("t", tile), Var("t", tile)
    attrs = {"shape": (16, 64), "space": MemorySpace.Vec, "has_valid": True}
    zero, sixteen = Const(0, INDEX), Const(16, INDEX)
    body = (
        Op("scalar.eq", (n, Const(3, INT32)), cond, SPAN),
        Scope(
            "stage",
            (
                Op("tile.load", (x, zero, zero, sixteen, Const(64, INDEX)), a, SPAN, attrs),
                For(
                    Var("i", ScalarType(INDEX)), zero, sixteen, Const(1, INDEX),
                    (Carried(a, b, r),),
                    (Op("tile.muls", (b, Const(float("inf"), FP16)), c, SPAN),), (c,), SPAN,
                ),
                If(cond, (Op("tile.store", (r, zero, zero, out), Var("out", tensor), SPAN),), (),
                   (), (), (), SPAN),
            ),
            SPAN,
        ),
        Call("helper", (x, out), (Var("out", tensor),), SPAN),
        Return((out,), SPAN),
    )  # fmt: skip
    params = (Param(x, Direction.In), Param(out, Direction.Out), Param(n, Direction.In))
    entry = Function("entry", FunctionKind.ORCHESTRATION, params, body, (tensor,), SPAN)
    return Program("sample", {"entry": entry}, "entry")


@pytest.mark.conforms("language.59")
def test_the_text_is_pinned_and_parses():
    text = sample().as_python()
    ast.parse(text)
    assert text == sample().as_python()
    assert text.splitlines() == [
        "import pypto.language as pl",
        "",
        'rows_0 = pl.dynamic("rows_0")',
        "",
        "",
        "@pl.program(strict_ssa=True)",
        "class sample:",
        "    @pl.function(type=pl.FunctionType.Orchestration)",
        "    def entry(self, x: pl.Tensor[[rows_0, 64], pl.FP16], out: pl.Out[pl.Tensor[[rows_0, "
        "64], pl.FP16]], _class: pl.Scalar[pl.INT32]) -> pl.Tensor[[rows_0, 64], pl.FP16]:",
        "        _not: pl.Scalar[pl.BOOL] = _class == pl.const(3, pl.INT32)",
        '        with pl.at(level=pl.Level.CORE_GROUP, name_hint="stage"):',
        "            t: pl.Tile[[16, 64], pl.FP16, pl.TileView(valid_shape=[None, 64])] = "
        "pl.load(x, [0, 0], [16, 64], valid_shape=[16, 64])",
        "            for i, (t_1,) in pl.range(0, 16, 1, init_values=(t,)):",
        "                t_2: pl.Tile[[16, 64], pl.FP16, pl.TileView(valid_shape=[None, 64])] = "
        'pl.tile.muls(t_1, pl.const(float("inf"), pl.FP16))',
        "                t_3 = pl.yield_(t_2)",
        "            if _not:",
        "                out_1: pl.Tensor[[rows_0, 64], pl.FP16] = pl.store(t_3, [0, 0], out)",
        "        out_2 = self.helper(x, out)",
        "        return out",
    ]


def test_types():
    assert print_type(ScalarType(FP32)) == "pl.Scalar[pl.FP32]"
    assert print_type(TensorType((4, DynDim("M")), FP32)) == "pl.Tensor[[4, M], pl.FP32]"
    tile = TileType((4, 8), FP32, MemorySpace.Acc, (4, 8))
    assert print_type(tile) == "pl.Tile[[4, 8], pl.FP32, pl.Mem.Acc]"


def test_a_name_that_ends_in_a_number_stays_unique():
    tensor = TensorType((4, 4), FP32)
    names = ["x_1", "x", "x", "x_1"]
    params = tuple(Param(Var(name, tensor), Direction.In) for name in names)
    function = Function("f", FunctionKind.INCORE, params, (Return((), SPAN),), (), SPAN)
    tree = ast.parse(function.as_python()).body[-1]
    assert isinstance(tree, ast.FunctionDef)
    shown = [argument.arg for argument in tree.args.args]
    assert len(set(shown)) == 4
    assert shown[:2] == ["x_1", "x"]


def test_the_kind_of_a_loop_is_printed():
    i, arg, result = (Var(name, ScalarType(INDEX)) for name in ("i", "k", "k"))
    zero, four, one = Const(0, INDEX), Const(4, INDEX), Const(1, INDEX)
    grown = Var("k_next", ScalarType(INDEX))
    more = Var("more", ScalarType(BOOL))
    body = (
        For(i, zero, four, one, (), (), (), SPAN, LoopKind.PARALLEL),
        For(Var("i", i.type), zero, four, one, (), (), (), SPAN, LoopKind.PIPELINE, 2),
        While(
            (Carried(zero, arg, result),),
            (Op("scalar.lt", (arg, four), more, SPAN),),
            more,
            (Op("scalar.add", (arg, one), grown, SPAN),),
            (grown,),
            SPAN,
        ),
        While((), (), Const(False, BOOL), (), (), SPAN),
        Return((), SPAN),
    )
    entry = Function("entry", FunctionKind.ORCHESTRATION, (), body, (), SPAN)
    text = Program("loops", {"entry": entry}, "entry").as_python()
    ast.parse(text)
    assert text.splitlines()[7:] == [
        "        for i in pl.parallel(0, 4, 1):",
        "            pass",
        "        for i_1 in pl.pipeline(0, 4, 1, stage=2):",
        "            pass",
        "        for (k,) in pl.while_(init_values=(0,)):",
        "            more: pl.Scalar[pl.BOOL] = k < 4",
        "            pl.cond(more)",
        "            k_next: pl.Scalar[pl.INDEX] = k + 1",
        "            k_1 = pl.yield_(k_next)",
        "        for () in pl.while_(init_values=()):",
        "            pl.cond(False)",
    ]


def test_schedules_and_manual_scopes_print_as_they_are_written():
    tensor, task = TensorType((16, 16), FP32), ScalarType(TASK_ID)
    x, n = Var("x", tensor), Var("n", ScalarType(INDEX))
    first, second, third = Var("first", task), Var("second", task), Var("third", task)
    ids = Var("ids", ArrayType(4, TASK_ID))
    index = Var("i", ScalarType(INDEX))
    inside = (Op("tile.get_block_idx", (), index, SPAN),)
    body = (
        Op("array.create", (), ids, SPAN, {"size": 4, "dtype": TASK_ID}),
        ManualScope(
            (
                Scope("", inside, SPAN, Schedule(n, (), (x,), (x,), first)),
                Op("array.write", (ids, Const(0, INDEX), first), None, SPAN),
            ),
            SPAN,
        ),
        Call("f", (x,), (), SPAN, Schedule(None, (ids, first), task=second)),
        Call("f", (x,), (), SPAN, Schedule(Const(8, INDEX), (second,))),
        Op("task.none", (), third, SPAN),
        Return((), SPAN),
    )
    params = (Param(x, Direction.In), Param(n, Direction.In))
    entry = Function("entry", FunctionKind.ORCHESTRATION, params, body, (), SPAN)
    text = entry.as_python()
    ast.parse(text)
    assert text.splitlines()[5:] == [
        "    ids: pl.Array[4, pl.TASK_ID] = pl.array.create(dtype=pl.TASK_ID, size=4)",
        "    with pl.manual_scope():",
        "        with pl.spmd(n, no_dep_args=[x], dumps=[x]) as first:",
        "            i: pl.Scalar[pl.INDEX] = pl.tile.get_block_idx()",
        "        pl.array.write(ids, 0, first)",
        "    second = pl.submit(f, x, deps=[ids, first])",
        "    pl.spmd_submit(f, x, core_num=8, deps=[second])",
        "    third: pl.Scalar[pl.TASK_ID] = None",
    ]


def test_places_are_comments_that_say_the_line_of_the_source():
    plain = print_program(sample()).splitlines()
    placed = [line.partition("  # ") for line in print_program(sample(), places=True).splitlines()]
    assert [text for text, _, _ in placed] == plain
    assert {place for _, _, place in placed} == {"", "kernels:entry:3"}
    known = replace(sample(), sources={"kernels:entry": ("/home/me/kernel.py", 100)})
    text = print_program(known, places=True)
    assert text.replace("  # kernel.py:102", "") == "\n".join(plain) + "\n"
