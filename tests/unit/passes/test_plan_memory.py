"""Placing, copying and planning keep the meaning of a program, and respect the limits."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pypto.ir.errors import CompileError
from pypto.ir.nodes import MemorySpace, Op, Operand, Program, Var
from pypto.ir.passes import TargetLimits
from pypto.ir.passes.copy_carried import copy_carried_tiles
from pypto.ir.passes.place_operands import place_operands
from pypto.ir.passes.plan_memory import plan_memory
from pypto.ir.passes.rewrite import walk


def planned(program: Program, limits: TargetLimits) -> Program:
    return plan_memory(copy_carried_tiles(place_operands(program, limits), limits), limits)


def ops_of(program: Program, name: str) -> list[Op]:
    return [s for s in walk(program.functions["f"].body) if isinstance(s, Op) and s.op == name]


def check(
    kit: SimpleNamespace, program: Program, limits: TargetLimits, **tensors: np.ndarray
) -> Program:
    lowered = planned(program, limits)
    expected = kit.outcome(program, tensors, None)
    actual = kit.outcome(lowered, tensors, limits)
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)
    return lowered


def values(*shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(-8, 8, shape).astype(np.float32)


def test_swapped_carried_tiles_keep_their_values(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    x, out = kit.tensor("x", 16, 8), kit.tensor("out", 16, 8)
    b = kit.Body()
    first, second = b.load(x, 0, 0, shape=(8, 8)), b.load(x, 8, 0, shape=(8, 8))
    a, c = b.loop(kit.index(3), [first, second], lambda _b, _i, args: (args[1], args[0]))
    b.store(a, out, 0, 0)
    b.store(c, out, 8, 0)
    check(kit, kit.incore([x, out], b.stmts, [out]), limits, x=values(16, 8), out=values(16, 8))


def test_a_rotation_of_three_keeps_its_values(kit: SimpleNamespace, limits: TargetLimits) -> None:
    x, out = kit.tensor("x", 24, 8), kit.tensor("out", 24, 8)
    b = kit.Body()
    tiles = [b.load(x, 8 * k, 0, shape=(8, 8)) for k in range(3)]
    done = b.loop(kit.index(4), tiles, lambda _b, _i, v: (v[1], v[2], v[0]))
    for k, tile in enumerate(done):
        b.store(tile, out, 8 * k, 0)
    check(kit, kit.incore([x, out], b.stmts, [out]), limits, x=values(24, 8), out=values(24, 8))


def test_a_loop_that_does_not_run_hands_on_what_it_was_given(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    x, out = kit.tensor("x", 8, 8), kit.tensor("out", 8, 8)
    b = kit.Body()
    start = b.load(x, shape=(8, 8))
    (total,) = b.loop(kit.index(0), [start], lambda n, _i, v: (n.op("tile.add", v[0], v[0]),))
    b.store(total, out)
    check(kit, kit.incore([x, out], b.stmts, [out]), limits, x=values(8, 8), out=values(8, 8))


def test_the_start_of_a_loop_survives_it_when_it_is_read_later(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    x, out = kit.tensor("x", 8, 8), kit.tensor("out", 8, 8)
    b = kit.Body()
    start = b.load(x, shape=(8, 8))
    (total,) = b.loop(kit.index(2), [start], lambda n, _i, v: (n.op("tile.add", v[0], v[0]),))
    b.store(b.op("tile.sub", total, start), out)
    check(kit, kit.incore([x, out], b.stmts, [out]), limits, x=values(8, 8), out=values(8, 8))


def test_an_accumulator_stays_in_place(kit: SimpleNamespace, limits: TargetLimits) -> None:
    a, w, out = kit.tensor("a", 8, 32), kit.tensor("w", 32, 8), kit.tensor("out", 8, 8)
    b = kit.Body()
    mat = MemorySpace.Mat

    def step(n: Any, _i: Var, v: Sequence[Var]) -> Sequence[Operand]:
        left = n.load(a, 0, 8, shape=(8, 8), space=mat)
        right = n.load(w, 8, 0, shape=(8, 8), space=mat)
        return (n.op("tile.matmul_acc", v[0], left, right),)

    left, right = b.load(a, shape=(8, 8), space=mat), b.load(w, shape=(8, 8), space=mat)
    acc = b.op("tile.matmul", left, right)
    (total,) = b.loop(kit.index(3), [acc], step)
    b.store(total, out)
    lowered = check(
        kit,
        kit.incore([a, w, out], b.stmts, [out]),
        limits,
        a=values(8, 32),
        w=values(32, 8),
        out=values(8, 8),
    )
    addresses = {
        op.attrs["addr"]
        for name in ("tile.matmul", "tile.matmul_acc")
        for op in ops_of(lowered, name)
    }
    assert addresses == {0}
    moved = [op.attrs["space"] for op in ops_of(lowered, "tile.move")]
    assert MemorySpace.Acc not in moved, "the accumulator is copied"


def test_elementwise_results_take_the_place_of_what_dies(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    x, out = kit.tensor("x", 64, 64), kit.tensor("out", 64, 64)
    b = kit.Body()
    tile = b.load(x, shape=(64, 64))
    for _ in range(40):
        tile = b.op("tile.neg", tile)
    b.store(tile, out)
    lowered = check(
        kit, kit.incore([x, out], b.stmts, [out]), limits, x=values(64, 64), out=values(64, 64)
    )
    assert {op.attrs["addr"] for op in ops_of(lowered, "tile.neg")} == {0}


def test_both_arms_of_a_branch_end_in_one_place(kit: SimpleNamespace, limits: TargetLimits) -> None:
    x, out = kit.tensor("x", 8, 8), kit.tensor("out", 8, 8)
    for taken in (True, False):
        b = kit.Body()
        tile = b.load(x, shape=(8, 8))
        (result,) = b.branch(
            kit.truth(taken), lambda n, t=tile: (n.op("tile.neg", t),), lambda _n, t=tile: (t,)
        )
        b.store(b.op("tile.add", result, tile), out)
        check(kit, kit.incore([x, out], b.stmts, [out]), limits, x=values(8, 8), out=values(8, 8))


def test_a_tile_that_is_too_large_is_named_with_its_line(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    x = kit.tensor("x", 512, 512)
    b = kit.Body()
    b.load(x, shape=(512, 512))
    message = "tile tile (fp32 [512, 512]) takes 1048576 bytes of Vec memory, but a2a3 has 196608"
    with pytest.raises(CompileError, match=re.escape(message)) as caught:
        planned(kit.incore([x], b.stmts), limits)
    assert caught.value.span is not None
    assert caught.value.span.line == 2


def test_a_tile_that_is_too_large_is_told_with_one_that_fits(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    x = kit.tensor("x", 512, 512)
    b = kit.Body()
    b.load(x, shape=(512, 512))
    message = "851968 bytes too many; use a smaller tile, such as [128, 256]"
    with pytest.raises(CompileError, match=re.escape(message)):
        planned(kit.incore([x], b.stmts), limits)


def test_too_many_tiles_at_once_are_named_with_their_lines(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    x, out = kit.tensor("x", 128, 128), kit.tensor("out", 128, 128)
    b = kit.Body()
    tiles = [b.load(x, shape=(128, 128)) for _ in range(4)]
    total = tiles[0]
    for tile in tiles[1:]:
        total = b.op("tile.add", total, tile)
    b.store(total, out)
    with pytest.raises(CompileError) as caught:
        planned(kit.incore([x, out], b.stmts, [out]), limits)
    error = caught.value
    assert error.message == (
        "tile tile (fp32 [128, 128]) takes 65536 bytes of Vec memory beside 3 that are still "
        "needed: 262144 bytes together, but a2a3 has 196608: 65536 bytes too many; use smaller "
        "tiles or fewer at once"
    )
    assert error.span is not None
    assert error.span.line == 5, "the fourth tile is the one that does not fit"
    assert [(span.line, text) for span, text in error.related] == [
        (line, "tile tile (fp32 [128, 128]) takes 65536 bytes") for line in (2, 3, 4)
    ]


def test_of_many_tiles_the_largest_are_named(kit: SimpleNamespace, limits: TargetLimits) -> None:
    x, out = kit.tensor("x", 64, 64), kit.tensor("out", 64, 64)
    b = kit.Body()
    tiles = [b.load(x, shape=(64, 64)) for _ in range(16)]
    for tile in tiles:
        b.store(tile, out)
    with pytest.raises(CompileError) as caught:
        planned(kit.incore([x, out], b.stmts, [out]), limits)
    assert [text for _span, text in caught.value.related] == [
        *["tile tile (fp32 [64, 64]) takes 16384 bytes"] * 6,
        "6 more tiles take 98304 bytes",
    ]


def test_small_tiles_move_out_of_the_way_of_a_large_one(
    kit: SimpleNamespace, limits: TargetLimits
) -> None:
    # Placed in order of use, the small tile in the middle would leave no gap for the large one.
    x, out = kit.tensor("x", 512, 128), kit.tensor("out", 512, 128)
    b = kit.Body()
    first = b.load(x, 0, 0, shape=(128, 128))
    small = b.load(x, 128, 0, shape=(1, 128))
    b.store(first, out)
    large = b.load(x, 0, 0, shape=(320, 128))
    b.store(large, out)
    b.store(small, out, 500, 0)
    program = kit.incore([x, out], b.stmts, [out])
    check(kit, program, limits, x=values(512, 128), out=values(512, 128))


class RandomFunction:
    """A random InCore function over 8 x 8 tiles, with nested loops, branches and rotations."""

    def __init__(self, kit: SimpleNamespace, seed: int) -> None:
        self.kit = kit
        self.rng = random.Random(seed)
        self.x, self.out = self.kit.tensor("x", 32, 8), self.kit.tensor("out", 64, 8)
        self.body = self.kit.Body()
        pool = [self.body.load(self.x, 8 * k, 0, shape=(8, 8)) for k in range(4)]
        pool = self.statements(self.body, pool, depth=0, counters=[])
        for k in range(8):
            self.body.store(self.rng.choice(pool), self.out, 8 * k, 0)

    def program(self) -> Program:
        return self.kit.incore([self.x, self.out], self.body.stmts, [self.out])

    def statements(
        self, b: Any, pool: Sequence[Var], depth: int, counters: Sequence[Var]
    ) -> list[Var]:
        pool = list(pool)
        for _ in range(self.rng.randint(1, 5)):
            kind = self.rng.random()
            if kind < 0.2 and depth < 3:
                pool += self.loop(b, pool, depth, counters)
            elif kind < 0.35 and depth < 3:
                pool += self.branch(b, pool, depth, counters)
            else:
                pool.append(self.compute(b, pool))
        return pool

    def compute(self, b: Any, pool: Sequence[Var]) -> Var:
        one, other = self.rng.choice(pool), self.rng.choice(pool)
        kind = self.rng.randint(0, 6)
        if kind == 0:
            return b.op("tile.maximum", one, other)
        if kind == 1:
            return b.op("tile.neg", one)
        if kind == 2:
            return b.op("tile.row_expand_sub", one, b.op("tile.row_max", other))
        if kind == 3:
            row = b.op("tile.reshape", b.op("tile.row_max", one), shape=(1, 8))
            return b.op("tile.maximum", other, b.op("tile.col_expand_mul", one, row))
        if kind == 4:
            return b.op("tile.adds", one, self.kit.number(float(self.rng.randint(-3, 3))))
        return b.op("tile.sub", one, other)

    def loop(self, b: Any, pool: Sequence[Var], depth: int, counters: Sequence[Var]) -> list[Var]:
        inits = [self.rng.choice(pool) for _ in range(self.rng.randint(1, 3))]

        def make(n: Any, counter: Var, args: list[Var]) -> Sequence[Operand]:
            inner = self.statements(n, [*pool, *args], depth + 1, [*counters, counter])
            # Prefer what makes trouble: other arguments, older tiles, the same twice.
            likely = [*args, *args, *inner[len(pool) :], self.rng.choice(pool)]
            return [self.rng.choice(likely) for _ in args]

        return b.loop(self.kit.index(self.rng.randint(0, 3)), inits, make)

    def branch(self, b: Any, pool: Sequence[Var], depth: int, counters: Sequence[Var]) -> list[Var]:
        condition: Operand = self.kit.truth(self.rng.random() < 0.5)
        if counters:
            parity = b.op("scalar.mod", self.rng.choice(counters), self.kit.index(2))
            condition = b.op("scalar.eq", parity, self.kit.index(0))
        count = self.rng.randint(1, 2)

        def arm(n: Any) -> Sequence[Var]:
            inner = self.statements(n, pool, depth + 1, counters)
            return [self.rng.choice(inner) for _ in range(count)]

        return b.branch(condition, arm, arm)


@pytest.mark.parametrize("block", range(8))
def test_random_functions_keep_their_meaning(
    block: int, kit: SimpleNamespace, limits: TargetLimits
) -> None:
    for seed in range(40 * block, 40 * block + 40):
        program = RandomFunction(kit, seed).program()
        with np.errstate(all="ignore"):
            check(kit, program, limits, x=values(32, 8, seed=seed), out=values(64, 8))
