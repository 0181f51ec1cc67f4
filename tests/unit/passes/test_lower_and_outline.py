"""Scopes become functions, tensor-level operations become tile operations."""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Callable

import pypto.language as pl
import pytest
from pypto.ir.dtypes import FP16, FP32, INT32
from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    Call,
    Direction,
    DynDim,
    Function,
    FunctionKind,
    MemorySpace,
    Op,
    Program,
    ScalarType,
    TensorType,
)
from pypto.ir.passes import TargetLimits, run_passes
from pypto.ir.passes.rewrite import walk
from pypto.language.parser.program import parse_program
from pypto.language.source import FunctionSource

Lower = Callable[..., Program]
Type = TensorType | ScalarType


def source_of(text: str, kind: FunctionKind, namespace: dict[str, object]) -> FunctionSource:
    text = textwrap.dedent(text).strip() + "\n"
    tree = ast.parse(text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return FunctionSource(
        name=tree.name,
        unit=f"tests:{tree.name}",
        kind=kind,
        tree_of=lambda: tree,
        file="kernel.py",
        first_line=1,
        namespace={**vars(builtins), "pl": pl, **namespace},
        lines=tuple(text.splitlines()),
    )


@pytest.fixture
def lower(limits: TargetLimits) -> Lower:
    """Parse and lower a kernel; `helpers` are texts of InCore functions it calls."""

    def run(text: str, helpers: tuple[str, ...] = (), **types: Type) -> Program:
        sources = [source_of(h, FunctionKind.INCORE, {}) for h in helpers]
        namespace: dict[str, object] = {s.name: s for s in sources}
        entry = source_of(text, FunctionKind.ORCHESTRATION, namespace)
        return run_passes(parse_program(entry, types, name=entry.name), limits)

    return run


def tensor(*shape: int | str, dtype: object = FP32) -> TensorType:
    return TensorType(tuple(DynDim(d) if isinstance(d, str) else d for d in shape), dtype)  # type: ignore[arg-type]


def ops(function: Function) -> list[str]:
    return [s.op for s in walk(function.body) if isinstance(s, Op)]


def calls(program: Program) -> list[Call]:
    return [s for s in walk(program.functions[program.entry].body) if isinstance(s, Call)]


def directions(function: Function) -> dict[str, Direction]:
    return {p.name_hint: p.direction for p in function.params}


@pytest.mark.conforms("language.60", "language.61")
def test_a_scope_becomes_a_function_with_the_directions_of_its_use(lower: Lower) -> None:
    program = lower(
        """
        def kernel(x: pl.Tensor, y: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                a = pl.load(x, [0, 0], [8, 8])
                b = pl.load(y, [0, 0], [8, 8])
                y = pl.store(a, [0, 0], y)
                out = pl.store(b, [0, 0], out)
            return out
        """,
        x=tensor(8, 8),
        y=tensor(8, 8),
        out=tensor(8, 8),
    )
    (call,) = calls(program)
    assert call.callee == "kernel_incore_0"
    callee = program.functions[call.callee]
    assert callee.func_type is FunctionKind.INCORE
    assert directions(callee) == {"x": Direction.In, "y": Direction.InOut, "out": Direction.Out}
    assert list(program.functions) == ["kernel_incore_0", "kernel"]


@pytest.mark.conforms("language.60")
def test_a_hint_names_the_function_once(lower: Lower) -> None:
    program = lower(
        """
        def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            for i in pl.range(2):
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
                    out = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], out)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
                out = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], out)
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], out)
            return out
        """,
        x=tensor(8, 8),
        out=tensor(8, 8),
    )
    names = [c.callee for c in calls(program)]
    assert names[0] == "copy"
    assert len(set(names)) == 3
    assert all(name.startswith(("copy", "kernel_incore_")) for name in names)


@pytest.mark.conforms("language.67")
def test_whole_tensors_are_loaded_once_and_values_stay_on_chip(lower: Lower) -> None:
    program = lower(
        """
        def kernel(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                s = pl.add(x, y)
                out[:] = pl.mul(pl.exp(s), x)
            return out
        """,
        x=tensor(8, 8),
        y=tensor(8, 8),
        out=tensor(8, 8),
    )
    function = program.functions["kernel_incore_0"]
    assert ops(function) == [
        "tile.load",
        "tile.load",
        "tile.add",
        "tile.exp",
        "tile.mul",
        "tile.store",
    ]


@pytest.mark.conforms("language.67")
def test_a_store_makes_loaded_tensors_stale(lower: Lower) -> None:
    program = lower(
        """
        def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.neg(x)
                out[:] = pl.add(x, out)
            return out
        """,
        x=tensor(8, 8),
        out=tensor(8, 8),
    )
    loads = [o for o in ops(program.functions["kernel_incore_0"]) if o == "tile.load"]
    assert len(loads) == 3


@pytest.mark.conforms("language.63")
def test_a_value_that_escapes_its_scope_lives_in_a_new_tensor(lower: Lower) -> None:
    program = lower(
        """
        def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                staged = pl.exp(x)
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.neg(staged)
            return out
        """,
        x=tensor(8, 8),
        out=tensor(8, 8),
    )
    entry = program.functions["kernel"]
    assert ops(entry) == ["tensor.create"]
    first, second = calls(program)
    assert directions(program.functions[first.callee])["staged"] is Direction.Out
    assert second.operands[0] is first.results[0]


def test_a_product_of_computed_values_goes_through_global_memory(lower: Lower) -> None:
    program = lower(
        """
        def kernel(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.matmul(pl.exp(x), w)
            return out
        """,
        x=tensor(16, 32),
        w=tensor(32, 16),
        out=tensor(16, 16),
    )
    function = program.functions["kernel_incore_0"]
    spaces = [
        s.attrs["space"] for s in walk(function.body) if isinstance(s, Op) and s.op == "tile.load"
    ]
    assert spaces == [MemorySpace.Vec, MemorySpace.Mat, MemorySpace.Mat]
    assert ops(program.functions["kernel"]) == ["tensor.create"]


@pytest.mark.conforms("language.144")
def test_a_tensor_level_accumulation_stays_in_acc(lower: Lower) -> None:
    program = lower(
        """
        def kernel(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                c = pl.matmul(a, b)
                for k in pl.range(3):
                    c = pl.matmul_acc(c, a, b)
                out[:] = c
            return out
        """,
        a=tensor(16, 16),
        b=tensor(16, 16),
        out=tensor(16, 16),
    )
    names = ops(program.functions["kernel_incore_0"])
    assert "tile.matmul_acc" in names
    assert "tile.add" not in names


def test_an_accumulation_onto_a_tensor_is_a_product_and_an_addition(lower: Lower) -> None:
    program = lower(
        """
        def kernel(c: pl.Tensor, a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.matmul_acc(c, a, b)
            return out
        """,
        c=tensor(16, 16),
        a=tensor(16, 16),
        b=tensor(16, 16),
        out=tensor(16, 16),
    )
    names = ops(program.functions["kernel_incore_0"])
    assert "tile.matmul" in names
    assert "tile.add" in names


def test_leading_extents_known_at_run_time_only_cannot_be_collapsed(lower: Lower) -> None:
    with pytest.raises(CompileError, match="x has extents that are known at run time only") as e:
        lower(
            """
            def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
                with pl.at(level=pl.Level.CORE_GROUP):
                    out[:] = pl.neg(x)
                return out
            """,
            x=tensor("N", 8, 8),
            out=tensor("N", 8, 8),
        )
    assert e.value.span is not None
    assert e.value.span.line == 3


def test_a_matrix_of_fp16_is_narrowed_after_the_product(lower: Lower) -> None:
    program = lower(
        """
        def kernel(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.matmul(a, b)
            return out
        """,
        a=tensor(16, 16, dtype=FP16),
        b=tensor(16, 16, dtype=FP16),
        out=tensor(16, 16, dtype=FP16),
    )
    assert ops(program.functions["kernel_incore_0"])[-1] == "tile.store"


def test_an_output_that_is_read_is_inout_for_the_runtime(lower: Lower) -> None:
    program = lower(
        """
        def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            out = accumulate(x, out)
            return out
        """,
        helpers=(
            """
            def accumulate(x: pl.Tensor, out: pl.Out[pl.Tensor]):
                t = pl.add(pl.load(x, [0, 0], [8, 8]), pl.load(out, [0, 0], [8, 8]))
                out = pl.store(t, [0, 0], out)
                return out
            """,
        ),
        x=tensor(8, 8),
        out=tensor(8, 8),
    )
    assert directions(program.functions["accumulate"])["out"] is Direction.InOut
    # Callers see what the entry declares.
    assert directions(program.functions["kernel"])["out"] is Direction.Out


@pytest.mark.conforms("language.62")
def test_scalars_and_loop_counters_become_parameters_after_the_tensors(lower: Lower) -> None:
    program = lower(
        """
        def kernel(n: pl.Scalar[pl.INT32], x: pl.Tensor, s: pl.Scalar[pl.FP32],
                   out: pl.Out[pl.Tensor]):
            for i in pl.range(0, 16, 8):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.mul(pl.load(x, [i, 0], [8, 8]), s)
                    if n > 2:
                        t = pl.neg(t)
                    out = pl.store(t, [i, 0], out)
            return out
        """,
        n=ScalarType(INT32),
        x=tensor(16, 8),
        s=ScalarType(FP32),
        out=tensor(16, 8),
    )
    params = program.functions["kernel_incore_0"].params
    assert [p.name_hint for p in params] == ["x", "out", "i", "s", "n"]
