"""The text of loops that run while a condition holds, and of single elements."""

from __future__ import annotations

import re
from types import MappingProxyType

import pytest
from pypto.backend import BackendType
from pypto.codegen import generate
from pypto.ir.dtypes import BOOL, FP32, INDEX
from pypto.ir.nodes import (
    Carried,
    Const,
    Direction,
    Function,
    FunctionKind,
    MemorySpace,
    Op,
    Param,
    Program,
    Return,
    ScalarType,
    Scope,
    Span,
    Stmt,
    TensorType,
    TileType,
    Var,
    While,
)
from pypto.ir.passes import limits_of, run_passes

SPAN = Span("tests:kernel", 2, 4)
TENSOR = TensorType((8, 16), FP32)
TILE = TileType((8, 16), FP32, MemorySpace.Vec, (8, 16))
ZERO, ONE = Const(0, INDEX), Const(1, INDEX)


def index(name: str) -> Var:
    return Var(name, ScalarType(INDEX))


def program(*body: Stmt) -> Program:
    params = (Param(X, Direction.In), Param(OUT, Direction.Out), Param(N, Direction.In))
    entry = Function(
        "kernel", FunctionKind.ORCHESTRATION, params, (*body, Return((), SPAN)), (), SPAN
    )
    return Program("kernel", MappingProxyType({"kernel": entry}), "kernel")


X, OUT, N = Var("x", TENSOR), Var("out", TENSOR), index("n")


def generated(*body: Stmt) -> tuple[list[str], list[str]]:
    """The lines of the kernel, and those of the orchestration."""
    limits = limits_of(BackendType.Ascend910B)
    sources = generate(run_passes(program(*body), limits), "a2a3")
    text = sources.kernels[0].pto if sources.kernels else ""
    bare = [re.sub(r' loc\(".*?":\d+:\d+\)', "", line).strip() for line in text.splitlines()]
    return bare, [line.strip() for line in sources.orchestration.splitlines()]


def counting(*inside: Stmt) -> tuple[While, Var]:
    """From 0 to ``n``."""
    arg, result, after, more = index("k"), index("k_out"), index("k_next"), Var("more", BOOL_TYPE)
    loop = While(
        (Carried(ZERO, arg, result),),
        (Op("scalar.lt", (arg, N), more, SPAN),),
        more,
        (*inside, Op("scalar.add", (arg, ONE), after, SPAN)),
        (after,),
        SPAN,
    )
    return loop, result


BOOL_TYPE = ScalarType(BOOL)
CREATED = MappingProxyType({"shape": (8, 16), "symbols": (), "dtype": FP32})


def element_of_x(at: Var, into: Var) -> tuple[Op, Op]:
    read = Var("read", ScalarType(FP32))
    return (
        Op("tensor.read", (X, ZERO, at), read, SPAN),
        Op("tensor.write", (OUT, at, ZERO, read), into, SPAN),
    )


def test_a_while_loop_on_a_core() -> None:
    loop, result = counting()
    kernel, _ = generated(Scope("", (loop, *element_of_x(result, Var("out", TENSOR))), SPAN))
    start = kernel.index(next(line for line in kernel if "scf.while" in line))
    assert kernel[start : start + 12] == [
        "%k_out = scf.while (%k = %c0_index) : (index) -> (index) {",
        "%more = arith.cmpi slt, %k, %arg2 : index",
        "scf.condition(%more) %k : index",
        "} do {",
        "^body(%k_0: index):",
        "%k_next = arith.addi %k_0, %c1_index : index",
        "scf.yield %k_next : index",
        "}",
        "%read = pto.load_scalar %x_view[%c0_index, %k_out] : !pto.tensor_view<?x?xf32> -> f32",
        "pto.store_scalar %read, %out_view[%k_out, %c0_index] : f32, !pto.tensor_view<?x?xf32>",
        "return",
        "}",
    ]


def test_a_while_loop_in_orchestration() -> None:
    inside = element_of_x(N, Var("out", TENSOR))
    loop, result = counting(*inside)
    more = index("twice")
    _, lines = generated(loop, Op("scalar.add", (result, result), more, SPAN))
    start = lines.index("while (!rt_is_fatal()) {")
    assert lines[start - 1] == "int64_t v_k = int64_t{0};"
    assert [line for line in lines[start:] if not line.startswith("PTO2_AT")][:8] == [
        "while (!rt_is_fatal()) {",
        "const bool s_more = v_k < s_n;",
        "if (!(s_more)) break;",
        "const float s_read = get_tensor_data<float>(ext_x, {int64_t{0}, s_n});",
        "set_tensor_data<float>(ext_out, {s_n, int64_t{0}}, s_read);",
        "const int64_t s_k_next = wrapped<int64_t>(static_cast<uint64_t>(v_k) + "
        "static_cast<uint64_t>(int64_t{1}));",
        "v_k = s_k_next;",
        "}",
    ]
    assert lines[start - 1 :].count('PTO2_AT("tests:kernel", 2, 4);') == 2  # reading and writing


@pytest.mark.parametrize("carried", [False, True])
def test_what_a_condition_creates_is_freed_before_the_round(carried: bool) -> None:
    more, fresh, seen = Var("more", BOOL_TYPE), Var("fresh", TENSOR), Var("seen", ScalarType(FP32))
    arg = Var("kept", TENSOR)
    loop = While(
        (Carried(X, arg, Var("last", TENSOR)),) if carried else (),
        (
            Op("tensor.create", (), fresh, SPAN, CREATED),
            Op("tensor.read", (fresh, ZERO, ZERO), seen, SPAN),
            Op("scalar.lt", (seen, Const(1.0, FP32)), more, SPAN),
        ),
        more,
        element_of_x(N, Var("out", TENSOR)),
        (arg,) if carried else (),
        SPAN,
    )
    _, lines = generated(loop)
    start = lines.index("while (!rt_is_fatal()) {")
    inside = [line for line in lines[start:] if not line.startswith("PTO2_AT")]
    assert inside[:3] == ["while (!rt_is_fatal()) {", "bool s_more = false;", "PTO2_SCOPE() {"]
    end = inside.index("}")
    assert any("alloc_tensors(" in line for line in inside[:end])
    assert inside[end - 1 : end + 2] == ["s_more = s_more_0;", "}", "if (!(s_more)) break;"]


def written_tile(*, kept: bool) -> list[str]:
    attrs = {"shape": (8, 16), "space": MemorySpace.Vec, "has_valid": False}
    tile, changed = Var("t", TILE), Var("t_written", TILE)
    body: list[Stmt] = [
        Op("tile.load", (X, ZERO, ZERO), tile, SPAN, MappingProxyType(attrs)),
        Op("tile.write", (tile, ONE, N, Const(2.0, FP32)), changed, SPAN),
        Op("tile.store", (changed, ZERO, ZERO, OUT), Var("out", TENSOR), SPAN),
    ]
    if kept:
        body.append(Op("tile.store", (tile, ZERO, ZERO, OUT), Var("out", TENSOR), SPAN))
    return generated(Scope("", tuple(body), SPAN))[0]


def test_a_tile_is_written_in_place_where_nobody_reads_it_again() -> None:
    kernel = written_tile(kept=False)
    assert sum("pto.alloc_tile" in line for line in kernel) == 1
    assert not any("pto.tmov" in line for line in kernel)
    (line,) = [line for line in kernel if "pto.store_scalar" in line]
    assert line.startswith("pto.store_scalar %cst, %t[%c1_index, %arg2] : f32, !pto.tile_buf<")


def test_a_tile_that_is_read_again_is_copied_first() -> None:
    kernel = written_tile(kept=True)
    assert sum("pto.alloc_tile" in line for line in kernel) == 2
    copied = [i for i, line in enumerate(kernel) if line.startswith("pto.tmov ins(%t :")]
    written = [i for i, line in enumerate(kernel) if "pto.store_scalar %cst, %t_written[" in line]
    assert len(copied) == len(written) == 1
    assert copied[0] < written[0]
