"""What is written down of planned memory: of a program, and as a file."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from pypto.backend import BackendType
from pypto.compiler.memory_of_program import is_planned, memory_of
from pypto.compiler.memory_record import MemoryRecord, Place
from pypto.ir.dtypes import FP32, INDEX
from pypto.ir.nodes import (
    Carried,
    Const,
    Direction,
    For,
    Function,
    FunctionKind,
    MemorySpace,
    Op,
    Param,
    Program,
    Return,
    Scope,
    Span,
    TensorType,
    Var,
)
from pypto.ir.ops import infer_result
from pypto.ir.passes import limits_of, run_passes
from pypto_toolchains.json_fields import FieldError

LIMITS = limits_of(BackendType.Ascend910B)
SOURCES = {"tests:kernel": ("/home/me/kernel.py", 10), "tests:unused": ("/other.py", 1)}


def accumulating() -> Program:
    """Adds a tile to a carried one four times, in a scope of an orchestration."""
    x, out = (Var(name, TensorType((16, 64), FP32)) for name in ("x", "out"))
    zero, one, four = (Const(value, INDEX) for value in (0, 1, 4))
    attrs = {"shape": (16, 64), "space": MemorySpace.Vec, "has_valid": False}

    def load(name: str, line: int) -> tuple[Op, Var]:
        tile = Var(name, infer_result("tile.load", (x, zero, zero), attrs))
        span = Span("tests:kernel", line, 0)
        return Op("tile.load", (x, zero, zero), tile, span, MappingProxyType(attrs)), tile

    first, total = load("total", 3)
    again, more = load("more", 5)
    carried = Carried(total, Var("total", total.type), Var("total", total.type))
    summed = Var("total", total.type)
    add = Op("tile.add", (carried.arg, more), summed, Span("tests:kernel", 6, 0))
    index = Var("i", infer_result("scalar.add", (zero, one), {}))
    loop = For(
        index, zero, four, one, (carried,), (again, add), (summed,), Span("tests:kernel", 4, 0)
    )
    store = Op(
        "tile.store", (carried.result, zero, zero, out), Var("out", out.type),
        Span("tests:kernel", 7, 0),
    )  # fmt: skip
    span = Span("tests:kernel", 1, 0)
    function = Function(
        name="kernel",
        func_type=FunctionKind.ORCHESTRATION,
        params=(Param(x, Direction.In), Param(out, Direction.Out)),
        body=(Scope("rows", (first, loop, store), span), Return((out,), span)),
        return_types=(out.type,),
        span=span,
    )
    return Program("kernel", MappingProxyType({"kernel": function}), "kernel", SOURCES)


@pytest.fixture
def record() -> MemoryRecord:
    return memory_of(run_passes(accumulating(), LIMITS), LIMITS)


def test_every_tile_has_its_memory_and_its_time(record: MemoryRecord) -> None:
    (rows,) = record.functions
    assert rows.name == "rows"
    told = [(t.name, t.space, t.shape, t.dtype, t.bytes) for t in rows.tiles]
    assert set(told) == {(name, "Vec", (16, 64), "fp32", 4096) for name in ("total", "more")}
    (more,) = [tile for tile in rows.tiles if tile.name == "more"]
    totals = [tile for tile in rows.tiles if tile.name == "total"]
    assert len({tile.offset for tile in totals}) == 1, "the loop carries one buffer"
    assert abs(more.offset - totals[0].offset) >= 4096, "both are alive at once"
    assert min(t.first for t in totals) == 1
    stored = next(s for s in rows.statements if "tile.store" in s.text)
    assert max(t.last for t in totals) == stored.position


def test_statements_say_where_they_stand(record: MemoryRecord) -> None:
    (rows,) = record.functions
    told = [(s.depth, s.text, s.place.line) for s in rows.statements]
    assert told[:5] == [
        (0, "total = tile.load(x, 0, 0)", 3),
        (0, "for i in range(0, 4, 1)", 4),
        (1, "more = tile.load(x, 0, 0)", 5),
        (1, "total = tile.add(total, more)", 6),
        (0, "out = tile.store(total, 0, 0, out)", 7),
    ]
    # The end of the loop has a position of its own.
    assert [s.position for s in rows.statements][:5] == [1, 2, 3, 4, 6]
    assert record.sources == {"tests:kernel": ("/home/me/kernel.py", 10)}


def test_a_program_is_planned_only_by_the_pass() -> None:
    assert not is_planned(accumulating())
    assert is_planned(run_passes(accumulating(), LIMITS))


def test_the_file_says_the_same(record: MemoryRecord) -> None:
    assert MemoryRecord.parse(record.to_json().encode()) == record
    assert record.functions[0].tiles[0].place == Place("tests:kernel", 3)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"schema": 2}, "schema is 2, but this version reads 1"),
        ({"arch": 3}, "arch must be a non-empty string, not 3"),
        ({"functions": {}}, "functions must be an array"),
        ({"sources": {"m:k": ["file"]}}, r"sources\['m:k'\] has 1 items, not 2"),
        ({"extra": 1}, "unknown 'extra'"),
    ],
)
def test_another_file_is_refused(record: MemoryRecord, change: dict, text: str) -> None:
    document = {**json.loads(record.to_json()), **change}
    with pytest.raises(FieldError, match=text):
        MemoryRecord.parse(json.dumps(document).encode())


def test_a_tile_that_is_none_is_named(record: MemoryRecord) -> None:
    document = json.loads(record.to_json())
    document["functions"][0]["tiles"][1]["offset"] = "far"
    with pytest.raises(FieldError, match=r"functions\[0\]\.tiles\[1\]\.offset must be an integer"):
        MemoryRecord.parse(json.dumps(document).encode())
