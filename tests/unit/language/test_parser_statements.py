"""Loops, branches, scopes, assignments: what each becomes."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.ir.dtypes import FP16, FP32, INDEX, INT32
from pypto.ir.nodes import Carried, For, FunctionKind, If, Op, Return, Scope, TensorType, TileType

ROWS = 16


def in_scope(lang, kernel, **arguments):
    """The statements of the kernel's only scope."""
    (scope,) = [
        s
        for s in lang.parse(kernel, **arguments).functions[kernel.__name__].body
        if isinstance(s, Scope)
    ]
    return scope.body


def copy_rows(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Copies."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
        for r in pl.range(0, x.shape[0], ROWS):
            out = pl.store(pl.load(x, [r, 0], [ROWS, 64]), [r, 0], out)
    return out


@pytest.mark.conforms("language.82", "language.133")
def test_a_loop_that_stores_carries_nothing_and_returns_the_parameter(lang):
    program = lang.parse(copy_rows, x=lang.tensor(64, 64), out=lang.tensor(64, 64))
    assert lang.lines(program) == [
        'with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):',
        "    for r in pl.range(0, 64, 16):",
        "        load = pl.tile.load(x, r, 0, shape=[16, 64])",
        "        out_1 = pl.tile.store(load, r, 0, out)",
        "return out",
    ]


@pytest.mark.conforms("language.30")
def test_a_dynamic_extent_is_read_once_where_it_is_used(lang):
    program = lang.parse(copy_rows, x=lang.tensor("M", 64), out=lang.tensor("M", 64))
    assert lang.lines(program)[:3] == [
        'with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):',
        "    dim = pl.tensor.dim(x, axis=0)",
        "    for r in pl.range(0, dim, 16):",
    ]


def running_sum(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.load(x, [0, 0], [16, 64])
        for i in pl.range(1, 4):
            part = pl.load(x, [i * 16, 0], [16, 64])
            acc = pl.add(acc, part)
        out[:] = acc


@pytest.mark.conforms("language.44", "language.85")
def test_a_rebound_tile_is_carried_and_a_temporary_is_not(lang):
    body = in_scope(lang, running_sum, x=lang.tensor(64, 64), out=lang.tensor(16, 64))
    (loop,) = [s for s in body if isinstance(s, For)]
    (carried,) = loop.carried
    assert (carried.arg.name, carried.arg.type) == ("acc", carried.init.type)
    assert isinstance(loop.yields[0].type, TileType)
    store = body[-1]
    assert isinstance(store, Op)
    assert store.op == "tile.store"
    assert store.operands[0] is carried.result


def carry_scalars(out: pl.Out[pl.Tensor], n: pl.INT32):
    offset = 0
    scale = 1
    for i in pl.range(n):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.full([1, 8], pl.FP32, 1.0)
            out = pl.store(pl.mul(tile, scale), [offset, 0], out)
        offset = offset + 1
        scale = scale * 0.5
    return out


@pytest.mark.conforms("language.44", "language.96")
def test_scalars_are_carried_in_the_type_they_become(lang):
    program = lang.parse(carry_scalars, out=lang.tensor(64, 8), n=INT32)
    (loop,) = [s for s in program.functions["carry_scalars"].body if isinstance(s, For)]
    types = {c.arg.name: (c.arg.type.dtype, c.init.value) for c in loop.carried}
    assert types == {"offset": (INDEX, 0), "scale": (FP32, 1.0)}


def unread_rebinding(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        out = pl.store(t, [0, 0], out)
        for i in pl.range(4):
            t = pl.load(x, [0, 0], [8, 8])
            out = pl.store(t, [0, 0], out)


def test_a_name_that_is_always_written_first_is_no_carried_value(lang):
    body = in_scope(lang, unread_rebinding, x=lang.tensor(64, 64), out=lang.tensor(64, 64))
    assert [s.carried for s in body if isinstance(s, For)] == [()]


def nested(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.full([16, 16], pl.FP32, 0.0)
        for i in pl.range(2):
            for j in pl.range(2):
                acc = pl.add(acc, pl.load(x, [i * 16, j * 16], [16, 16]))
        out = pl.store(acc, [0, 0], out)


@pytest.mark.conforms("language.85")
def test_a_value_is_carried_through_both_loops(lang):
    body = in_scope(lang, nested, x=lang.tensor(64, 64), out=lang.tensor(16, 16))
    outer = next(s for s in body if isinstance(s, For))
    inner = next(s for s in outer.body if isinstance(s, For))
    assert inner.carried[0].init is outer.carried[0].arg
    assert outer.yields[0] is inner.carried[0].result


def explicit(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        start = pl.load(x, [0, 0], [16, 64])
        for i, (acc, k) in pl.range(1, 4, init_values=(start, 1)):
            nxt = pl.add(acc, pl.load(x, [k * 16, 0], [16, 64]))
            total, last = pl.yield_(nxt, k + 1)
        out = pl.store(total, [0, 0], out)
        out = pl.store(start, [0, 0], out)


@pytest.mark.conforms("language.84")
def test_init_values_give_the_names_of_the_last_yield_and_keep_the_first(lang):
    body = in_scope(lang, explicit, x=lang.tensor(64, 64), out=lang.tensor(16, 64))
    loop = next(s for s in body if isinstance(s, For))
    assert [c.arg.name for c in loop.carried] == ["acc", "k"]
    first, second = body[-2:]
    assert first.operands[0] is loop.carried[0].result
    assert second.operands[0] is loop.carried[0].init


def never_really_rebound(x: pl.Tensor, out: pl.Out[pl.Tensor], flag: pl.constexpr):
    size = 16
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(4):
            if flag:
                size = size + 1
            out = pl.store(pl.load(x, [0, 0], [size, 16]), [0, 0], out)


@pytest.mark.conforms("language.90")
def test_a_name_rebound_in_a_dead_branch_stays_known(lang):
    tensors = {"x": lang.tensor(64, 64), "out": lang.tensor(64, 64)}
    body = in_scope(lang, never_really_rebound, flag=False, **tensors)
    assert body[0].carried == ()


def branch(x: pl.Tensor, out: pl.Out[pl.Tensor], first: pl.Scalar[pl.BOOL], n: pl.INT32):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 16])
        factor = 1
        if first:
            t = pl.exp(t)
        elif n > 3:
            t = pl.neg(t)
            factor = 2.5
        out = pl.store(pl.mul(t, factor), [0, 0], out)


@pytest.mark.conforms("language.91")
def test_branches_yield_what_is_read_afterwards(lang):
    kinds = {"first": pl.BOOL, "n": INT32}
    body = in_scope(lang, branch, x=lang.tensor(16, 16), out=lang.tensor(16, 16), **kinds)
    outer = next(s for s in body if isinstance(s, If))
    assert [r.name for r in outer.results] == ["factor", "t"]
    assert [r.type.dtype for r in outer.results] == [FP32, FP32]
    inner = next(s for s in outer.else_body if isinstance(s, If))
    assert inner.then_yields[0].value == 2.5
    assert inner.else_yields[0].value == 1.0


def branch_with_yield(x: pl.Tensor, out: pl.Out[pl.Tensor], first: pl.Scalar[pl.BOOL]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 16])
        if first:
            r = pl.yield_(pl.exp(t))
        else:
            r = pl.yield_(t)
        out = pl.store(r, [0, 0], out)


@pytest.mark.conforms("language.92")
def test_yield_in_both_branches_names_the_result(lang):
    body = in_scope(
        lang, branch_with_yield, x=lang.tensor(16, 16), out=lang.tensor(16, 16), first=pl.BOOL
    )
    assert [r.name for s in body if isinstance(s, If) for r in s.results] == ["r"]


def branch_that_stores(x: pl.Tensor, out: pl.Out[pl.Tensor], first: pl.Scalar[pl.BOOL]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 16])
        if first:
            out = pl.store(t, [0, 0], out)
        else:
            out = pl.store(pl.neg(t), [0, 0], out)
    return out


@pytest.mark.conforms("language.91")
def test_a_branch_that_only_stores_has_no_result(lang):
    body = in_scope(
        lang, branch_that_stores, x=lang.tensor(16, 16), out=lang.tensor(16, 16), first=pl.BOOL
    )
    assert [s.results for s in body if isinstance(s, If)] == [()]


def read_after_a_branch(x: pl.Tensor, out: pl.Out[pl.Tensor], first: pl.Scalar[pl.BOOL]):
    a = pl.create_tensor([16, 16])
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 16])
        if first:
            a = pl.store(t, [0, 0], a)
        else:
            a = pl.store(pl.neg(t), [0, 0], a)
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.load(a, [0, 0], [16, 16]), [0, 0], out)
    return out


def test_a_tensor_written_in_both_branches_is_read_by_its_outer_name(lang):
    program = lang.parse(
        read_after_a_branch, x=lang.tensor(16, 16), out=lang.tensor(16, 16), first=pl.BOOL
    )
    created, *_, last, _ = program.functions["read_after_a_branch"].body
    assert last.body[0].operands[0] is created.result


def folded_branch(x: pl.Tensor, out: pl.Out[pl.Tensor], mode: pl.constexpr):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 16])
        if mode == "exp":
            t = pl.exp(t)
        elif mode is None:
            t = this_name_does_not_exist  # noqa: F821
        else:
            t = pl.neg(t)
        out = pl.store(t, [0, 0], out)


@pytest.mark.conforms("language.90")
@pytest.mark.parametrize(("mode", "op"), [("exp", "tile.exp"), ("other", "tile.neg")])
def test_a_known_condition_leaves_one_branch(lang, mode, op):
    body = in_scope(lang, folded_branch, x=lang.tensor(16, 16), out=lang.tensor(16, 16), mode=mode)
    assert [s.op for s in body] == ["tile.load", op, "tile.store"]


def tensor_values(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.mul(x, 2.0)
        for i in pl.range(3):
            acc = pl.add(acc, y)
        out[:] = acc


@pytest.mark.conforms("language.85")
def test_a_computed_tensor_is_carried_as_a_value(lang):
    kinds = dict.fromkeys(("x", "y", "out"), lang.tensor(16, 16))
    body = in_scope(lang, tensor_values, **kinds)
    loop = next(s for s in body if isinstance(s, For))
    assert isinstance(loop.carried[0], Carried)
    assert isinstance(loop.carried[0].arg.type, TensorType)
    assert body[-1].op == "tensor.assign"


def narrowing(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(a, b)
    return out


@pytest.mark.conforms("language.106", "language.145")
def test_a_product_is_narrowed_when_it_is_assigned(lang):
    half = lang.tensor(16, 16, dtype=FP16)
    body = in_scope(lang, narrowing, a=half, b=half, out=half)
    assert [s.op for s in body] == ["tensor.matmul", "tensor.cast", "tensor.assign"]
    body = in_scope(lang, narrowing, a=half, b=half, out=lang.tensor(16, 16))
    assert [s.op for s in body] == ["tensor.matmul", "tensor.assign"]


def regions(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 32])
        for k in pl.range(0, 64, 16):
            out[k : k + 16, 32:64] = t
        out[0:16] = pl.load(x, [0, 0], [16, 64])


@pytest.mark.conforms("language.105")
def test_a_tile_is_stored_where_the_slices_start(lang):
    program = lang.parse(regions, x=lang.tensor(64, 64), out=lang.tensor(64, 64))
    stores = [line.strip() for line in lang.lines(program) if "store" in line]
    assert stores == [
        "out_1 = pl.tile.store(t, k, 32, out)",
        "out_2 = pl.tile.store(load, 0, 0, out)",
    ]


def statements(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Assignments of every kind."""
    rows, cols = x.shape
    a = b = 2
    a += 1
    half: int = cols // 2
    (c, d), e = (a, b), x.dtype
    scale: pl.Scalar[pl.FP32] = 3
    with pl.at(level=pl.Level.CORE_GROUP) as first:
        t: pl.Tile[[16, 64], pl.FP32] = pl.load(x, [c, 0], [rows // 2, half * d])
        t -= pl.create_tile([16, 64], dtype=e)
        out[:] = t * scale
    with pl.at(level=pl.Level.CORE_GROUP, deps=[first, None]):
        pass
    return out


@pytest.mark.conforms("language.17", "language.32", "language.65")
def test_assignments_of_every_kind(lang):
    program = lang.parse(statements, x=lang.tensor(32, 64), out=lang.tensor(16, 64))
    assert [line.strip() for line in lang.lines(program)] == [
        "with pl.at(level=pl.Level.CORE_GROUP) as first:",
        "t = pl.tile.load(x, 3, 0, shape=[16, 64])",
        "create = pl.tile.create(dtype=pl.FP32, shape=[16, 64])",
        "t_1 = pl.tile.sub(t, create)",
        "muls = pl.tile.muls(t_1, 3.0)",
        "out_1 = pl.tile.store(muls, 0, 0, out)",
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[first]):",
        "pass",
        "return out",
    ]


def test_functions_end_in_a_return(lang):
    function = lang.parse(running_sum, x=lang.tensor(64, 64), out=lang.tensor(16, 64)).functions[
        "running_sum"
    ]
    assert isinstance(function.body[-1], Return)
    assert function.return_types == ()
    assert function.func_type is FunctionKind.ORCHESTRATION
