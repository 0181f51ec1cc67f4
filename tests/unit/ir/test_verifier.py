"""Broken programs, one invariant at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pypto.ir.dtypes import BOOL, FP32, INDEX, INT32, TASK_ID
from pypto.ir.errors import VerifyError
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
from pypto.ir.verifier import Form, verify

SPAN = Span("m:f", 1, 0)
TENSOR = TensorType((16, 16), FP32)
TILE = TileType((16, 16), FP32, MemorySpace.Vec, (16, 16))
ZERO, FOUR, ONE = (Const(n, INDEX) for n in (0, 4, 1))
IDS = {"size": 2, "dtype": TASK_ID}
LOAD = {"shape": (16, 16), "space": MemorySpace.Vec, "has_valid": False}

x, out = Var("x", TENSOR), Var("out", TENSOR)


def load(result):
    return Op("tile.load", (x, ZERO, ZERO), result, SPAN, LOAD)


def store(tile):
    return Op("tile.store", (tile, ZERO, ZERO, out), Var("out", TENSOR), SPAN)


def tile(name="t"):
    return Var(name, TILE)


def incore(*body, returned=()):
    params = (Param(x, Direction.In), Param(out, Direction.Out))
    statements = (*body, Return(returned, SPAN))
    types = tuple(v.type for v in returned)
    return Function("f", FunctionKind.INCORE, params, statements, types, SPAN)


def program(*functions):
    return Program("p", {f.name: f for f in functions}, functions[-1].name)


def entry(*body):
    params = (Param(x, Direction.In), Param(out, Direction.Out))
    return Function("e", FunctionKind.ORCHESTRATION, params, (*body, Return((), SPAN)), (), SPAN)


def good():
    t, acc, arg, result = tile(), tile("acc"), tile("arg"), tile("result")
    loop = For(
        Var("i", ScalarType(INDEX)), ZERO, FOUR, ONE, (Carried(acc, arg, result),),
        (Op("tile.add", (arg, t), step := tile("step"), SPAN),), (step,), SPAN,
    )  # fmt: skip
    core = incore(load(t), load(acc), loop, store(result), returned=(out,))
    return program(core, entry(Call("f", (x, out), (Var("out", TENSOR),), SPAN)))


def test_a_good_program_passes_in_both_forms():
    verify(good(), Form.FRONTEND)
    verify(good(), Form.LOWERED)


def test_a_while_loop_passes():
    arg, result, grown = (Var("k", ScalarType(INDEX)) for _ in range(3))
    more = Var("more", ScalarType(BOOL))
    loop = While(
        (Carried(ZERO, arg, result),),
        (Op("scalar.lt", (arg, FOUR), more, SPAN),),
        more,
        (Op("scalar.add", (arg, ONE), grown, SPAN),),
        (grown,),
        SPAN,
    )
    after = Op("scalar.add", (result, ONE), Var("n", ScalarType(INDEX)), SPAN)
    verify(program(incore(loop, after)), Form.FRONTEND)
    staged = replace(_loop(), kind=LoopKind.PIPELINE, stage=2)
    verify(program(incore(staged)), Form.LOWERED)


def test_a_scheduled_task_passes_and_its_id_is_bound_afterwards():
    first, second = (Var(name, ScalarType(TASK_ID)) for name in ("first", "second"))
    ids = Var("ids", ArrayType(2, TASK_ID))
    call = Call("f", (x, out), (Var("o", TENSOR),), SPAN, Schedule(FOUR, (), (x,), (x,), first))
    again = Call("f", (x, out), (Var("p", TENSOR),), SPAN, Schedule(deps=(first, ids), task=second))
    inside = ManualScope((Op("array.create", (), ids, SPAN, IDS), call), SPAN)
    write = Op("array.write", (ids, ONE, second), None, SPAN)
    verify(program(incore(returned=()), entry(inside, again, write)), Form.FRONTEND)


def broken():
    """Name -> (program, message)."""
    t, u = tile(), tile("u")
    cond = Var("c", ScalarType(BOOL))
    add = Op("tile.add", (t, t), u, SPAN)
    compare = Op("scalar.lt", (ZERO, ONE), cond, SPAN)
    exp = Op("tile.exp", (t,), u, SPAN)
    core = incore()
    yield "bound twice", program(incore(load(t), load(t))), "'t' is bound twice"
    yield "before", program(incore(exp, load(t))), "'t' is used before it is bound"
    arm = If(cond, (load(t),), (), (), (), (), SPAN)
    yield "outside", program(incore(compare, arm, exp)), "'t' is used outside its block"
    wrong = Var("w", replace(TILE, shape=(8, 16), valid=(8, 16)))
    yield "type", program(incore(load(wrong))), "type of 'w'"
    yield "operands", program(incore(load(t), Op("tile.add", (t, x), u, SPAN))), "must be a tile"
    yield "unknown", program(incore(Op("tile.nothing", (), u, SPAN))), "no operation 'tile.nothing'"
    yield "entry", Program("p", {"f": core}, "g"), "the entry 'g' is not a function"
    yield "name", Program("p", {"g": core}, "g"), "function 'f' is listed as 'g'"
    yield "no return", program(replace(entry(), body=())), "does not end in return"
    early = incore(Return((), SPAN), load(t))
    yield "early return", program(early), "return does not end its function"
    yield "returned input", program(incore(returned=(x,))), "only outputs can be returned"
    yield "declared", program(replace(core, return_types=(TENSOR,))), "not of the declared types"
    yield "inline", program(replace(core, func_type=FunctionKind.INLINE)), "was not spliced"
    call = Call("f", (x, out), (Var("o", TENSOR),), SPAN)
    yield "callee", program(entry(call)), "'f' is not defined before its caller"
    task = Var("tid", ScalarType(TASK_ID))
    wide = replace(call, schedule=Schedule(Const(4, INT32)))
    yield "blocks", program(core, entry(wide)), "block count"
    after = replace(call, schedule=Schedule(deps=(FOUR,)))
    yield "dependency", program(core, entry(after)), "a dependency is a scalar index"
    early_id = replace(call, schedule=Schedule(deps=(task,), task=task))
    yield "own id", program(core, entry(early_id)), "'tid' is used before it is bound"
    number = replace(call, schedule=Schedule(task=Var("tid", ScalarType(INDEX))))
    yield "task id", program(core, entry(number)), "task id: scalar index and task id"
    hidden = replace(call, schedule=Schedule(no_deps=(Var("z", TENSOR),)))
    yield "no_deps", program(core, entry(hidden)), "'z' is used before it is bound"
    ids = Op("array.create", (), Var("a", ArrayType(2, TASK_ID)), SPAN, IDS)
    yield "array", program(incore(ids)), "array.create stands on a core"
    yield "manual scope", program(incore(ManualScope((), SPAN))), "a manual scope stands on a core"
    few = replace(call, operands=(x,))
    yield "arity", program(core, entry(few)), "takes 2 operands, got 1"
    yield "results", program(core, entry(replace(call, results=()))), "writes 1 tensors"
    other = Var("y", TensorType((8, 8), FP32))
    made = Op("tensor.create", (), other, SPAN, {"shape": (8, 8), "symbols": (), "dtype": FP32})
    fewer = replace(call, operands=(other, out))
    yield "argument", program(core, entry(made, fewer)), "f: 'x'"
    yield "bounds", program(incore(_loop(stop=Const(4, INT32)))), "loop bound"
    carried = Carried(ZERO, Var("k", ScalarType(INDEX)), Var("r", ScalarType(INDEX)))
    yield "yields", program(incore(_loop(carried=(carried,)))), "must yield each carried value"
    mixed = _loop(carried=(carried,), yields=(Const(1.0, FP32),))
    yield "carried", program(incore(mixed)), "carried 'k'"
    unequal = If(cond, (), (ZERO,), (), (), (Var("r", ScalarType(INDEX)),), SPAN)
    yield "arms", program(incore(compare, unequal)), "each branch must yield every result"
    number = If(ZERO, (), (), (), (), (), SPAN)
    yield "condition", program(incore(number)), "condition: scalar index and scalar bool"
    yield "placement", program(entry(load(t))), "tile.load has no place here"
    yield "on core", program(core, entry(Scope("", (call,), SPAN))), "is called on a core"
    nested = entry(Scope("", (Scope("", (), SPAN),), SPAN))
    yield "nested", program(nested), "a scope stands on a core"
    leak = entry(Scope("", (load(t),), SPAN), Scope("", (exp,), SPAN))
    yield "leak", program(leak), "'t' is used outside its block"
    scalar_out = replace(core, params=(Param(Var("n", ScalarType(INDEX)), Direction.Out),))
    yield "scalar output", program(scalar_out), "scalar 'n' cannot be an output"
    unstaged = replace(_loop(), kind=LoopKind.PIPELINE)
    yield "no stage", program(incore(unstaged)), "stage 0 of a pl.pipeline loop"
    staged = replace(_loop(), kind=LoopKind.PARALLEL, stage=2)
    yield "stage", program(incore(staged)), "stage 2 of a pl.parallel loop"
    decided = While((), (compare,), cond, (), (), SPAN)
    yield "deciding", program(incore(replace(decided, condition=ZERO))), "condition: scalar index"
    arm_of = If(cond, (), (), (), (), (), SPAN)
    yield "while body", program(incore(replace(decided, body=(arm_of,)))), "outside its block"
    yield "unyielded", program(incore(replace(decided, carried=(carried,)))), "must yield each"
    yield "unused", program(incore(load(t), add, store(u), store(tile("z")))), "'z' is used before"


def _loop(stop=FOUR, carried=(), yields=()):
    return For(Var("i", ScalarType(INDEX)), ZERO, stop, ONE, carried, (), yields, SPAN)


@pytest.mark.parametrize(("culprit", "message"), [(p, m) for _, p, m in broken()],
                         ids=[name for name, _, _ in broken()])  # fmt: skip
def test_a_broken_invariant_is_named(culprit, message):
    with pytest.raises(VerifyError) as caught:
        verify(culprit, Form.FRONTEND)
    assert message in str(caught.value)


def test_lowered_form_has_no_scopes_and_no_computing_tensor_operations():
    verify(program(entry(Scope("", (), SPAN))), Form.FRONTEND)
    with pytest.raises(VerifyError, match="a scope was not outlined"):
        verify(program(entry(Scope("", (), SPAN))), Form.LOWERED)
    exp = Op("tensor.exp", (x,), Var("y", TENSOR), SPAN)
    verify(program(incore(exp)), Form.FRONTEND)
    with pytest.raises(VerifyError, match=r"tensor\.exp has no place here"):
        verify(program(incore(exp)), Form.LOWERED)


@pytest.mark.parametrize("form", Form)
def test_tiles_may_have_addresses_and_copies(form):
    acc = Var("a", replace(TILE, space=MemorySpace.Acc))
    create = {"shape": (16, 16), "dtype": FP32, "space": MemorySpace.Acc}
    body = (
        Op("tile.create", (), acc, SPAN, {**create, "addr": 0}),
        Op("tile.move", (acc,), Var("b", acc.type), SPAN, {"space": MemorySpace.Acc, "addr": 64}),
    )
    verify(program(incore(*body)), form)


def test_only_what_makes_a_tile_has_an_address():
    one, result = Const(1, INDEX), Var("n", ScalarType(INDEX))
    body = (Op("scalar.add", (one, one), result, SPAN, {"addr": 0}),)
    with pytest.raises(VerifyError, match="takes the attributes"):
        verify(program(incore(*body)), Form.LOWERED)


def test_a_dynamic_parameter_accepts_any_extent():
    dynamic = TensorType((DynDim("M"), 16), FP32)
    params = tuple(
        Param(Var(n, dynamic), d) for n, d in (("a", Direction.In), ("b", Direction.Out))
    )
    core = Function("f", FunctionKind.INCORE, params, (Return((), SPAN),), (), SPAN)
    verify(program(core, entry(Call("f", (x, out), (Var("o", TENSOR),), SPAN))), Form.FRONTEND)
