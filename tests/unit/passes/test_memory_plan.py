"""The table of what memory planning decided."""

from __future__ import annotations

from types import SimpleNamespace

from pypto.ir.dtypes import FP32
from pypto.ir.nodes import MemorySpace, Program
from pypto.ir.passes import TargetLimits
from pypto.ir.passes.copy_carried import copy_carried_tiles
from pypto.ir.passes.memory_plan import PlacedTile, memory_plan
from pypto.ir.passes.place_operands import place_operands
from pypto.ir.passes.plan_memory import plan_memory


def table(program: Program, limits: TargetLimits) -> tuple[PlacedTile, ...]:
    lowered = plan_memory(copy_carried_tiles(place_operands(program, limits), limits), limits)
    return memory_plan(lowered.functions["f"])


def test_a_result_takes_the_place_of_an_operand_that_dies(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    x, out = kit.tensor("x", 16, 8), kit.tensor("out", 16, 8)
    b = kit.Body()
    first, second = b.load(x, 0, 0, shape=(8, 8)), b.load(x, 8, 0, shape=(8, 8))
    b.store(b.op("tile.add", first, second, to="total"), out)
    b.store(second, out, 8, 0)
    rows = [
        (t.name, t.offset, t.first, t.last) for t in table(kit.incore([x, out], b.stmts), limits)
    ]
    assert rows == [("tile", 0, 1, 3), ("tile", 256, 2, 5), ("total", 0, 3, 4)]


def test_a_row_says_what_the_tile_is_and_where_it_was_written(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    x, out = kit.tensor("x", 16, 8), kit.tensor("out", 16, 8)
    b = kit.Body()
    b.store(b.load(x, shape=(5, 3)), out)
    (row,) = table(kit.incore([x, out], b.stmts), limits)
    assert (row.space, row.shape, row.dtype) == (MemorySpace.Vec, (5, 3), FP32)
    assert row.size == 64  # 60 bytes, and whole blocks of 32
    assert row.span == b.stmts[0].span


def test_tiles_that_a_loop_and_a_branch_hand_on_stand_where_they_came_from(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    x, out = kit.tensor("x", 16, 8), kit.tensor("out", 16, 8)
    b = kit.Body()
    start = b.load(x, shape=(8, 8))
    (total,) = b.loop(kit.index(3), [start], lambda n, _i, v: (n.op("tile.add", v[0], v[0]),))
    (taken,) = b.branch(
        kit.truth(True),
        lambda n: [n.op("tile.neg", total, to="taken")],
        lambda n: [n.op("tile.abs", total, to="taken")],
    )
    b.store(taken, out)
    rows = table(kit.incore([x, out], b.stmts), limits)
    offsets: dict[str, set[int]] = {}
    for row in rows:
        offsets.setdefault(row.name, set()).add(row.offset)
    # The branch may still read the loop's result while an arm writes its own.
    assert offsets == {"tile": {0}, "v": {0}, "taken": {256}}
