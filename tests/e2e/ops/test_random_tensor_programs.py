"""Random programs over whole tensors around the size of on-chip memory, held against torch.

Elements are int32, whose arithmetic has one right answer in any order of blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pypto.backend import BackendType
from pypto.ir.dtypes import INT32

Tensor = torch.Tensor

# Rows and columns: one block, several, one row that does not fit, one column, primes.
SHAPES = [(16, 24), (700, 100), (2, 60007), (50021, 1), (331, 257), (128, 512)]
TENSORS = ("a", "b", "c")

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "neg": lambda x: -x,
    "abs": torch.abs,
    "relu": torch.relu,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}
REDUCTIONS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "sum": lambda x, axis: x.sum(axis, keepdim=True, dtype=torch.int32),
    "max": lambda x, axis: x.amax(axis, keepdim=True),
    "min": lambda x, axis: x.amin(axis, keepdim=True),
}
STEPS = ("unary", "binary", "scalar", "reduce", "expand", "write")
EXPANSIONS = {name: BINARY[name] for name in ("add", "sub", "mul")}


@dataclass
class Writer:
    """A scope in the making, and what its names hold when Python runs it."""

    draw: Any
    shape: tuple[int, int]
    held: dict[str, Tensor]
    lines: list[str]
    count: int = 0

    def pick(self, kind: str) -> str:
        """A name: of a whole matrix, of a value a row, or of a value a column."""
        rows, cols = self.shape
        shapes = {"full": (rows, cols), "rows": (rows, 1), "cols": (1, cols)}
        fitting = sorted(n for n, t in self.held.items() if tuple(t.shape) == shapes[kind])
        return self.draw(st.sampled_from(fitting)) if fitting else ""

    def bind(self, text: str, value: Tensor) -> None:
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {text}")
        self.held[name] = value.clone()

    def step(self) -> None:
        kind = self.draw(
            st.sampled_from(["unary", "binary", "scalar", "reduce", "expand", "write"])
        )
        one, other = self.pick("full"), self.pick("full")
        x, y = self.held[one], self.held[other]
        if kind == "unary":
            name = self.draw(st.sampled_from(sorted(UNARY)))
            self.bind(f"pl.{name}({one})", UNARY[name](x))
        elif kind == "binary":
            name = self.draw(st.sampled_from(sorted(BINARY)))
            self.bind(f"pl.{name}({one}, {other})", BINARY[name](x, y))
        elif kind == "scalar":
            number = self.draw(st.integers(-3, 3))
            self.bind(f"pl.add({one}, {number})", x + number)
        elif kind == "reduce":
            name = self.draw(st.sampled_from(sorted(REDUCTIONS)))
            axis = self.draw(st.sampled_from([0, 1]))
            self.bind(f"pl.{('col', 'row')[axis]}_{name}({one})", REDUCTIONS[name](x, axis))
        elif kind == "expand":
            name = self.draw(st.sampled_from(sorted(EXPANSIONS)))
            axis = self.draw(st.sampled_from(["row", "col"]))
            vector = self.pick({"row": "rows", "col": "cols"}[axis])
            if vector:
                value = EXPANSIONS[name](x, self.held[vector])
                self.bind(f"pl.{axis}_expand_{name}({one}, {vector})", value)
        else:
            target = self.draw(st.sampled_from(TENSORS))
            self.lines.append(f"{target}[:] = {one}")
            self.held[target] = x.clone()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@given(data=st.data())
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_random_programs_over_whole_tensors(
    compile_text: Any, target: str, data: st.DataObject
) -> None:
    shape = data.draw(st.sampled_from(SHAPES), label="shape")
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 9), label="seed"))
    given_tensors = {
        name: torch.randint(-9, 10, shape, generator=generator, dtype=torch.int32)
        for name in TENSORS
    }
    writer = Writer(data.draw, shape, {n: t.clone() for n, t in given_tensors.items()}, [])
    for _ in range(data.draw(st.integers(2, 12), label="steps")):
        writer.step()
    last = writer.pick("full")
    writer.lines.append(f"c[:] = {last}")
    writer.held["c"] = writer.held[last].clone()
    params = ", ".join(f"{name}: pl.InOut[pl.Tensor]" for name in TENSORS)
    body = "\n".join(f"        {line}" for line in writer.lines)
    text = f"def composed({params}):\n    with pl.at(level=pl.Level.CORE_GROUP):\n{body}\n"
    backend = BackendType.Ascend910B if target == "a2a3" else BackendType.Ascend950
    compiled = compile_text(text, dict.fromkeys(TENSORS, (shape, INT32)), backend_type=backend)
    compiled(*given_tensors.values())
    for name in TENSORS:
        assert torch.equal(given_tensors[name], writer.held[name]), f"{name} {shape} in\n{text}"
