"""Calls of other kernel functions, and of Python's."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pypto.language as pl
import pytest
from pypto.ir.dtypes import BF16, FP16, FP32, INDEX, INT32
from pypto.ir.nodes import Call, Const, Direction, DynDim, FunctionKind, Op, Scope, TensorType
from pypto.ir.passes.rewrite import walk
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserTypeError,
    UnsupportedFeatureError,
)

M = pl.dynamic("M")
CONFIG = SimpleNamespace(rows=16, half=SimpleNamespace(cols=32))


def add_kernel(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    t = pl.add(pl.load(a, [0, 0], [16, 16]), pl.load(b, [0, 0], [16, 16]))
    c = pl.store(t, [0, 0], c)
    return c


def two_outputs(a: pl.Tensor, first: pl.Out[pl.Tensor], scale: pl.FP32, second: pl.Out[pl.Tensor]):
    t = pl.load(a, [0, 0], [16, 16])
    first = pl.store(t, [0, 0], first)
    second = pl.store(pl.mul(t, scale), [0, 0], second)
    return second, first


def update(state: pl.Tensor):
    pl.store(pl.neg(pl.load(state, [0, 0], [16, 16])), [0, 0], state)


def dynamic_copy(x: pl.Tensor[[M, 16], pl.FP32], y: pl.Out[pl.Tensor[[M, 16], pl.FP32]]):
    for r in pl.range(0, M, 16):
        y = pl.store(pl.load(x, [r, 0], [16, 16]), [r, 0], y)
    return y


def sized(x: pl.Tensor, y: pl.Out[pl.Tensor], size: pl.constexpr = 8):
    y = pl.store(pl.load(x, [0, 0], [size, 16]), [0, 0], y)
    return y


def calls_of(program):
    return [s for s in program.functions[program.entry].body if isinstance(s, Call)]


@pytest.fixture
def square(lang):
    return lang.tensor(16, 16)


@pytest.mark.conforms("language.47", "language.111", "language.113")
def test_a_call_gives_the_output_it_writes(lang, square):
    helper = lang.incore(add_kernel)

    def entry(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
        c = helper(a, b, c)
        c = helper(a, c=c, b=c)
        return c

    program = lang.parse(entry, a=square, b=square, c=square)
    assert list(program.functions) == ["add_kernel", "entry"]
    first, second = calls_of(program)
    assert first.results[0] is second.operands[2] is second.operands[1]
    function = program.functions["add_kernel"]
    assert function.func_type is FunctionKind.INCORE
    assert [p.direction for p in function.params] == [Direction.In, Direction.In, Direction.Out]


@pytest.mark.conforms("language.112")
def test_several_outputs_unpack_in_the_order_of_the_return(lang, square):
    helper = lang.incore(two_outputs)

    def entry(a: pl.Tensor, x: pl.Out[pl.Tensor], y: pl.Out[pl.Tensor]):
        p, q = helper(a, x, 2, y)
        p = helper(q, p, 0.5, q)
        return x, y

    first, second = calls_of(lang.parse(entry, a=square, x=square, y=square))
    assert first.operands[2] == Const(2.0, FP32)
    # results are in declaration order, the tuple in the order of the return
    assert second.operands == (
        first.results[0],
        first.results[1],
        Const(0.5, FP32),
        first.results[0],
    )


@pytest.mark.conforms("language.20")
def test_a_written_input_becomes_an_output_all_the_way_up(lang, square):
    helper = lang.incore(update)

    def entry(state: pl.Tensor):
        helper(state)

    program = lang.parse(entry, state=square)
    for name in ("update", "entry"):
        assert [p.direction for p in program.functions[name].params] == [Direction.InOut]


@pytest.mark.conforms("language.47", "language.114")
def test_equal_types_share_a_function_and_others_do_not(lang, square):
    helper = lang.incore(add_kernel)

    def entry(a: pl.Tensor, c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor]):
        helper(a, a, c)
        helper(a, a, c)
        helper(a, a, d)

    program = lang.parse(entry, a=square, c=square, d=lang.tensor(32, 16))
    assert [call.callee for call in calls_of(program)] == [
        "add_kernel",
        "add_kernel",
        "add_kernel_1",
    ]


@pytest.mark.conforms("language.47", "language.113", "language.115")
def test_constexpr_arguments_make_functions_of_their_own(lang, square):
    helper = lang.incore(sized)

    def entry(a: pl.Tensor, c: pl.Out[pl.Tensor]):
        helper(a, c)
        helper(a, c, 4)
        helper(a, c, size=8)

    calls = calls_of(lang.parse(entry, a=square, c=square))
    assert [call.callee for call in calls] == ["sized", "sized_1", "sized"]
    assert all(len(call.operands) == 2 for call in calls)


@pytest.mark.conforms("language.27")
def test_a_dynamic_parameter_takes_any_extent(lang, square):
    helper = lang.incore(dynamic_copy)

    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], u: pl.Tensor, v: pl.Out[pl.Tensor]):
        helper(x, y)
        helper(u, v)

    wide = lang.tensor(32, 16)
    program = lang.parse(entry, x=square, y=square, u=wide, v=wide)
    assert list(program.functions) == ["dynamic_copy", "entry"]
    params = program.functions["dynamic_copy"].params
    assert [p.var.type for p in params] == [TensorType((DynDim("M"), 16), FP32)] * 2


@pytest.mark.conforms("language.31")
def test_one_dynamic_symbol_is_one_extent(lang, square):
    helper = lang.incore(dynamic_copy)

    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        helper(x, y)

    message = (
        "'x' and 'y' share the extent M.0, but axis 0 of 'x' has 16 elements and axis 0 of 'y'"
    )
    with pytest.raises(ParserTypeError, match=message):
        lang.parse(entry, x=square, y=lang.tensor(32, 16))

    def creates(x: pl.Tensor):
        helper(x, pl.create_tensor([32, 16], dtype=pl.FP32))
        helper(pl.create_tensor([16, 16], dtype=pl.FP32), pl.create_tensor([32, 16], dtype=pl.FP32))

    with pytest.raises(InvalidOperationError, match=r"argument 'y' is a tensor fp32\[32, 16\]"):
        lang.parse(creates, x=square)


@pytest.mark.conforms("language.49")
def test_an_inline_function_leaves_none_behind(lang, square):
    def body(t: pl.Tile, factor, rows: pl.INDEX = 16):
        """Works on tiles."""
        half = pl.mul(t, factor)
        return half, rows

    helper = lang.inline(body)

    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            half, rows = helper(pl.load(x, [0, 0], [16, 16]), factor=0.5)
            y = pl.store(half, [rows - 16, 0], y)
        return y

    program = lang.parse(entry, x=square, y=square)
    assert list(program.functions) == ["entry"]
    scope = program.functions["entry"].body[0]
    assert isinstance(scope, Scope)
    assert [s.span.unit.split(":")[-1] for s in scope.body] == ["entry", "body", "entry"]


@pytest.mark.conforms("language.49", "language.50")
def test_an_inline_function_may_hold_scopes_and_tensors(lang, square):
    def stage(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        middle = pl.create_tensor([16, 16], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            middle[:] = pl.exp(x)
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.neg(middle)

    helper = lang.inline(stage)

    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        helper(x, y)
        return y

    with pytest.warns(DeprecationWarning, match="Direction annotations are deprecated"):
        program = lang.parse(entry, x=square, y=square)
    kinds = [type(s).__name__ for s in program.functions["entry"].body]
    assert kinds == ["Op", "Scope", "Scope", "Return"]


@pytest.mark.conforms("language.49", "language.57")
def test_helpers_call_helpers(lang, square):
    inner = lang.inline(lambda_free_double)

    def outer(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        t = inner(pl.load(x, [0, 0], [16, 16]))
        y = pl.store(t, [0, 0], y)
        return y

    helper = lang.incore(outer)

    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        return helper(x, y)

    program = lang.parse(entry, x=square, y=square)
    ops = [s.op for s in program.functions["outer"].body if isinstance(s, Op)]
    assert ops == ["tile.load", "tile.add", "tile.store"]


def lambda_free_double(t):
    return pl.add(t, t)


@pytest.mark.conforms("language.58")
def test_recursion_is_refused(lang, square):
    def again(x: pl.Tensor):
        helper(x)

    helper = lang.inline(again)

    def entry(x: pl.Tensor):
        helper(x)

    with pytest.raises(UnsupportedFeatureError, match="'again' calls itself"):
        lang.parse(entry, x=square)


@pytest.mark.conforms("language.38")
def test_numbers_come_from_closures_globals_and_attributes(lang, square):
    offset = 4
    table = {"cols": [8, 16]}

    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [offset, 0], [CONFIG.rows - 8, CONFIG.half.cols // 2])
            t = pl.mul(t, 1 / math.sqrt(64))
            t = pl.add(t, -math.inf if offset > 9 else min(2, offset))
            y = pl.store(t, [offset, len(table["cols"]) * 0], y)

    lines = lang.lines(lang.parse(entry, x=square, y=square))
    assert [line.strip() for line in lines[1:5]] == [
        "t = pl.tile.load(x, 4, 0, shape=[8, 16])",
        "t_1 = pl.tile.muls(t, 0.125)",
        "t_2 = pl.tile.adds(t_1, 2.0)",
        "y_1 = pl.tile.store(t_2, 4, 0, y)",
    ]


@pytest.mark.conforms("language.18", "language.95")
def test_run_time_scalars_meet_in_one_type(lang, square):
    def entry(y: pl.Out[pl.Tensor], n: pl.INT32, f: pl.FP32):
        big = n * 2 + y.shape[0]
        ratio = n / 4
        low = min(n, 3, max(big, 0))
        inside = ((0 <= n < 8) and not (f == 0)) or n == 12
        with pl.at(level=pl.Level.CORE_GROUP):
            if inside:
                t = pl.full([16, 16], pl.FP32, 1)
                y = pl.store(pl.mul(t, ratio * f - abs(n)), [low, big % 16 // 2], y)

    program = lang.parse(entry, y=square, n=INT32, f=FP32)
    ops = [s for s in program.functions["entry"].body if isinstance(s, Op)]
    by_name = {op.result.name: op.result.type.dtype for op in ops}
    assert by_name["ratio"] == FP32
    assert by_name["big"] == INT32
    assert by_name["low"] == INT32 if "low" in by_name else True
    assert by_name["inside"] == pl.BOOL


@pytest.mark.conforms("language.127", "language.128", "language.129")
def test_elementwise_forms(lang, square):
    def entry(x: pl.Tensor, v: pl.Tensor, r: pl.Tensor, h: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], [16, 16])
            col = pl.load(v, [0, 0], [16, 1])
            row = pl.load(r, [0, 0], [1, 16])
            half = pl.load(h, [0, 0], [16, 16])
            a = a + 1
            a = 1 - a
            a = 2.0 / a
            a = pl.maximum(0, a)
            a = pl.sub(a, col)
            a = row * a
            a = pl.add(half, a)
            a = -a
            y[:] = a

    program = lang.parse(
        entry,
        x=square,
        v=lang.tensor(16, 1),
        r=lang.tensor(1, 16),
        h=lang.tensor(16, 16, dtype=BF16),
        y=square,
    )
    scope = program.functions["entry"].body[0]
    assert [s.op.split(".")[1] for s in scope.body[4:]] == [
        "adds",
        "rsubs",
        "rdivs",
        "maxs",
        "row_expand_sub",
        "col_expand_mul",
        "cast",
        "add",
        "neg",
        "store",
    ]


@pytest.mark.conforms("language.132")
def test_a_clamped_load_is_valid_where_the_tensor_is(lang):
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for r in pl.range(0, x.shape[0], 16):
                t = pl.load(x, [r, 0], [16, 64], clamp=True)
                y = pl.store(t, [r, 0], y)

    program = lang.parse(entry, x=lang.tensor("M", 40), y=lang.tensor("M", 40))
    loop = next(s for s in program.functions["entry"].body[0].body if not isinstance(s, Op))
    load = next(s for s in loop.body if s.op == "tile.load")
    assert load.result.type.valid == (None, 40)
    assert load.operands[-1] == Const(40, INDEX)


@pytest.mark.conforms("language.131")
def test_tensors_of_one_and_three_axes(lang):
    def entry(v: pl.Tensor, c: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(v, [4], [8])
            y = pl.store(pl.add(t, pl.load(c, [1, 0, 0], [1, 1, 8])), [0, 0], y)
            y = pl.store(pl.load(c, [1, 0, 0], [1, 8]), [0, 0], y)

    shapes = {"v": lang.tensor(16), "c": lang.tensor(2, 4, 8), "y": lang.tensor(4, 8)}
    body = lang.parse(entry, **shapes).functions["entry"].body[0].body
    assert body[0].result.type.shape == (1, 8)


@pytest.mark.conforms("language.42", "language.135", "language.146", "language.148")
def test_casts_and_shapes(lang, square):
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], f: pl.FP32):
        created = pl.create_tensor([x.shape[0] * 2, 8], dtype=pl.FP16)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.cast(pl.load(x, [0, 0], [16, 16]), pl.FP16, mode="rint")
            t = pl.reshape(t, [8, -1])
            t = pl.concat(t, t)
            k = pl.cast(f, pl.INT32)
            t = pl.mul(t, pl.const(2, pl.FP16))
            pl.store(pl.reshape(t, [64, 8]), [k, 0], created)
        return y

    dynamic = lang.tensor("M", 16)
    body = lang.parse(entry, x=dynamic, y=square, f=FP32).functions["entry"].body
    create = body[2]
    assert create.op == "tensor.create"
    assert create.attrs["shape"] == (None, 8)
    tiles = [s.result.type for s in body[-2].body if s.op.startswith("tile")][:4]
    assert [t.shape for t in tiles] == [(16, 16), (16, 16), (8, 32), (8, 64)]
    assert {t.dtype for t in tiles[1:]} == {FP16}


@pytest.mark.conforms("language.113", "language.114", "language.115")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("helper(x)", "missing argument 'y'; it takes (x, y, size)"),
        ("helper(x, y, 4, 5)", "takes 3 positional arguments, but got 4"),
        ("helper(x, y, x=x)", "'x' is given twice"),
        ("helper(x, y, wide=3)", "has no parameter 'wide'"),
        ("helper(x, 3)", "not 3 (missing inferred tensor metadata for parameter 'y')"),
        ("helper(x, y, n)", "argument 'size' is pl.constexpr"),
    ],
)
def test_wrong_arguments_are_named(lang, square, call, message, tmp_path):
    helper = lang.incore(sized)
    text = f"def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32):\n    {call}\n"
    path = tmp_path / "wrong.py"
    path.write_text(text)
    names = {"helper": helper, "pl": pl}
    exec(compile(text, str(path), "exec"), names)
    with pytest.raises(ParserTypeError) as caught:
        lang.parse(names["entry"], x=square, y=square, n=INT32)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (2, 5)


@pytest.mark.conforms("language.154")
def test_full_is_of_the_level_that_its_block_works_on(lang, square):
    def tiles(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.full([16, 16], pl.FP32, 0)
            for _ in pl.range(4):
                total = pl.add(total, pl.load(x, [0, 0], [16, 16]))
            y = pl.store(total, [0, 0], y)

    def tensors(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.full([16, 16], pl.FP32, 0)
            for _ in pl.range(4):
                total = pl.add(total, x)
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.tile.full([16, 16], pl.FP32, 1)
            y = pl.store(tile, [0, 0], y)
            y[:] = pl.mul(total, 2.0)

    load = 2.0  # a word of tiles as the name of a value

    def values(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, pl.full([16, 16], pl.FP32, load))

    def filled(kernel):
        program = lang.parse(kernel, x=square, y=square)
        body = next(iter(program.functions.values())).body
        return [s.op for s in walk(body) if isinstance(s, Op) and s.op.endswith(".full")]

    assert filled(tiles) == ["tile.full"]
    assert filled(values) == ["tensor.full"]
    assert filled(tensors) == ["tensor.full", "tile.full"]
