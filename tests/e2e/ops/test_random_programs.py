"""Random kernels, executed twice: by Python as it stands, and on the chip.

A kernel is Python text, so a stand-in for `pl` that works on torch tensors makes the interpreter
itself the reference for rebinding, loops, branches and the order of tasks. Operations are those
whose results have one right bit pattern, so the two must agree exactly.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pypto.ir.dtypes import FP32, INT32, INT64

Tensor = torch.Tensor

ROWS, COLS = 5, 7
HEIGHT = 3 * ROWS
TENSORS = ("t0", "t1", "t2")
DTYPES = {"FP32": FP32, "INT32": INT32}


@contextlib.contextmanager
def _at(level: object = None, name_hint: str = "") -> Iterator[None]:
    yield


def _store(tile: Tensor, offsets: list[int], tensor: Tensor) -> Tensor:
    r, c = offsets
    tensor[r : r + tile.shape[0], c : c + tile.shape[1]] = tile
    return tensor


def _load(tensor: Tensor, offsets: list[int], shape: list[int]) -> Tensor:
    r, c = offsets
    return tensor[r : r + shape[0], c : c + shape[1]].clone()


def python_language() -> SimpleNamespace:
    """`pl` for the interpreter."""
    return SimpleNamespace(
        Level=SimpleNamespace(CORE_GROUP=0),
        FP32=torch.float32,
        INT32=torch.int32,
        range=range,
        at=_at,
        load=_load,
        store=_store,
        min=min,
        create_tile=lambda shape, dtype: torch.zeros(shape, dtype=dtype),
        add=lambda a, b: a + b,
        sub=lambda a, b: a - b,
        neg=lambda a: -a,
        abs=torch.abs,
        relu=torch.relu,
        maximum=torch.maximum,
        minimum=torch.minimum,
        row_max=lambda a, tmp: a.amax(1, keepdim=True),
        row_min=lambda a, tmp: a.amin(1, keepdim=True),
        row_expand_add=lambda a, b: a + b,
        row_expand_sub=lambda a, b: a - b,
        reshape=lambda a, shape: a.reshape(shape),
    )


class Writer:
    """Writes a kernel over three tensors and two scalars."""

    def __init__(self, seed: int, dtype: str) -> None:
        self.rng = random.Random(seed)
        self.dtype = dtype
        self.lines = [f"def random_{dtype.lower()}_{seed}("]
        self.lines[0] += ", ".join(f"{t}: pl.InOut[pl.Tensor]" for t in TENSORS)
        self.lines[0] += ", n: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT64]):"
        self.orchestrate(1, [], 4)

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def orchestrate(self, depth: int, counters: list[str], count: int) -> None:
        for _ in range(count):
            kind = self.rng.random()
            if kind < 0.3 and depth < 3:
                counter = f"i{depth}"
                self.line(depth, f"for {counter} in pl.range({self.bound()}):")
                self.orchestrate(depth + 1, [*counters, counter], self.rng.randint(1, 2))
            elif kind < 0.4 and depth < 3:
                self.line(depth, f"if {self.condition(counters)}:")
                self.orchestrate(depth + 1, counters, 1)
                self.line(depth, "else:")
                self.orchestrate(depth + 1, counters, 1)
            else:
                self.scope(depth, counters)

    def bound(self) -> str:
        return self.rng.choice(["2", "3", "n", "m", "n + 1", "m % 3"])

    def condition(self, counters: list[str]) -> str:
        value = self.rng.choice([*counters, "n", "m"])
        return self.rng.choice([f"{value} % 2 == 0", f"{value} > 1", f"{value} <= n"])

    def scope(self, depth: int, counters: list[str]) -> None:
        self.line(depth, "with pl.at(level=pl.Level.CORE_GROUP):")
        self.line(depth + 1, f"tmp = pl.create_tile([{ROWS}, {COLS}], dtype=pl.{self.dtype})")
        tiles = ["a", "b"]
        for name in tiles:
            self.line(depth + 1, f"{name} = {self.load(counters)}")
        self.tiles(depth + 1, tiles, counters, self.rng.randint(3, 6))
        for _ in range(self.rng.randint(1, 2)):
            target = self.rng.choice(TENSORS)
            at = f"[{self.offset(counters)}, 0]"
            self.line(depth + 1, f"{target} = pl.store({self.rng.choice(tiles)}, {at}, {target})")

    def load(self, counters: list[str]) -> str:
        at = f"[{self.offset(counters)}, 0]"
        return f"pl.load({self.rng.choice(TENSORS)}, {at}, [{ROWS}, {COLS}])"

    def offset(self, counters: list[str]) -> str:
        last = HEIGHT - ROWS
        choices = ["0", str(ROWS), str(last), f"pl.min(n, {last})", f"(m * 3) % {last + 1}"]
        choices += [f"({c} * 4) % {last + 1}" for c in counters]
        return self.rng.choice(choices)

    def tiles(self, depth: int, tiles: list[str], counters: list[str], count: int) -> None:
        for _ in range(count):
            kind = self.rng.random()
            if kind < 0.15 and depth < 6:
                counter = f"k{depth}"
                self.line(depth, f"for {counter} in pl.range({self.bound()}):")
                self.tiles(depth + 1, tiles, [*counters, counter], self.rng.randint(1, 3))
            elif kind < 0.27 and depth < 6:
                self.line(depth, f"if {self.condition(counters)}:")
                self.tiles(depth + 1, tiles, counters, self.rng.randint(1, 2))
                if self.rng.random() < 0.7:
                    self.line(depth, "else:")
                    self.tiles(depth + 1, tiles, counters, self.rng.randint(1, 2))
            elif kind < 0.37:
                self.line(depth, "a, b = b, a")
            else:
                self.line(depth, f"{self.rng.choice(tiles)} = {self.expression(tiles, counters)}")

    def expression(self, tiles: list[str], counters: list[str]) -> str:
        one, other = self.rng.choice(tiles), self.rng.choice(tiles)
        return self.rng.choice(
            [
                self.load(counters),
                f"pl.add({one}, {other})",
                f"pl.sub({one}, {other})",
                f"pl.sub({one}, 3)",
                f"5 - {one}",
                f"pl.maximum({one}, {other})",
                f"pl.minimum({one}, {other})",
                f"pl.neg({one})",
                f"pl.abs({one})",
                f"pl.relu({one})",
                f"pl.row_expand_sub({one}, pl.row_max({other}, tmp))",
                f"pl.row_expand_add({one}, pl.row_min({other}, tmp))",
                f"pl.row_expand_add({one}, pl.add(pl.row_max({one}, tmp), 1))",
                f"pl.reshape(pl.reshape({one}, [{COLS}, {ROWS}]), [{ROWS}, {COLS}])",
            ]
        )


def inputs(dtype: str, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    values = [torch.randint(-50, 50, (HEIGHT, COLS), generator=generator) for _ in TENSORS]
    return [v.to(getattr(torch, DTYPES[dtype].torch_name)) for v in values]


@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("seed", range(5))
def test_random_kernel(seed: int, dtype: str, compile_text: Any) -> None:
    text = Writer(seed, dtype).text
    types: dict[str, object] = dict.fromkeys(TENSORS, ((HEIGHT, COLS), DTYPES[dtype]))
    types |= {"n": INT64, "m": INT64}
    compiled = compile_text(text, types)
    reference = _python(text)
    for n, m in ((0, 1), (2, 0), (3, 5)):
        expected, actual = inputs(dtype, seed), inputs(dtype, seed)
        reference(*expected, n, m)
        compiled(*actual, n, m)
        for name, a, e in zip(TENSORS, actual, expected, strict=True):
            shown = f"{name} with n={n}, m={m} in\n{text}"
            torch.testing.assert_close(a, e, rtol=0, atol=0, equal_nan=True, msg=shown)


def _python(text: str) -> Any:
    """The kernel as the interpreter understands it."""
    scope: dict[str, Any] = {"pl": python_language()}
    bare = text.split("):", 1)[1]
    exec(f"def kernel({', '.join(TENSORS)}, n, m):{bare}", scope)
    return scope["kernel"]
