"""Operands of different shapes and kinds, by the rules of numpy, against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import BF16, FP32, INT32

Tensor = torch.Tensor

TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}

ROWS, COLS = 9, 21

# Over x [ROWS, COLS], r [ROWS, 1], c [1, COLS], one [1, 1] and v [COLS].
CASES = {
    "column_row": ("r - c", lambda x, r, c, one, v: r - c),
    "row_column": ("pl.fmod(c, r)", lambda x, r, c, one, v: torch.fmod(c, r)),
    "larger": ("pl.maximum(r, c)", lambda x, r, c, one, v: torch.maximum(r, c)),
    "single_row": ("one - c", lambda x, r, c, one, v: one - c),
    "single_column": ("r * one", lambda x, r, c, one, v: r * one),
    "column_first": ("pl.sub(r, x)", lambda x, r, c, one, v: r - x),
    "chosen": (
        "pl.sel(pl.cmp(x, r, cmp_type=2), r, c)",
        lambda x, r, c, one, v: torch.where(x < r, r, c),
    ),
    "by_column": ("pl.sel(pl.cmp(r, 4, cmp_type=4), x, c)",
                  lambda x, r, c, one, v: torch.where(r > 4, x, c)),
    "by_row": ("pl.sels(pl.cmp(c, 4, cmp_type=4), x, 2)",
               lambda x, r, c, one, v: torch.where(c > 4, x, torch.full_like(x, 2))),
    "number_first": ("pl.sel(pl.cmp(x, 4, cmp_type=4), 3, r)",
                     lambda x, r, c, one, v: torch.where(x > 4, torch.full_like(x, 3), r)),
    "crossed_mask": ("pl.sel(pl.cmp(r, c), one, one)",
                     lambda x, r, c, one, v: one.expand(ROWS, COLS)),
    "filled": ("x + pl.{family}.full([{rows}, {cols}], dtype=pl.{dtype}, value=3)",
               lambda x, r, c, one, v: x + 3),
}  # fmt: skip
ON_TENSORS = {
    "line": ("x - v", lambda x, r, c, one, v: x - v),
    "line_first": ("v - x", lambda x, r, c, one, v: v - x),
    "line_chosen": ("pl.sel(pl.cmp(x, v, cmp_type=2), v, x)",
                    lambda x, r, c, one, v: torch.maximum(x, v)),
    "line_column": ("pl.mul(v, r)", lambda x, r, c, one, v: v * r),
    "whole": ("pl.tensor.full([{rows}, {cols}], pl.{dtype}, -2)",
              lambda x, r, c, one, v: torch.full_like(x, -2)),
}  # fmt: skip
SHAPES = {"x": (ROWS, COLS), "r": (ROWS, 1), "c": (1, COLS), "one": (1, 1), "v": (COLS,)}


@pytest.mark.conforms("language.128", "language.136")
@pytest.mark.parametrize("family", ["tile", "tensor"])
@pytest.mark.parametrize(("target", "dtype"), [("a2a3", INT32), ("a2a3", BF16), ("a5", FP32)])
def test_operands_are_repeated(family: str, target: str, dtype: Any, compile_text: Any) -> None:
    kind = getattr(torch, dtype.torch_name)
    generator = torch.Generator().manual_seed(2)
    given = {n: torch.randint(1, 9, shape, generator=generator).to(kind)
             for n, shape in SHAPES.items()}  # fmt: skip
    cases = CASES if family == "tile" else CASES | ON_TENSORS
    expected = {name: take(*given.values()) for name, (_, take) in cases.items()}
    types: dict[str, object] = {n: (shape, dtype) for n, shape in SHAPES.items()}
    types |= {f"out_{n}": (tuple(value.shape), dtype) for n, value in expected.items()}
    params = [f"{n}: pl.Out[pl.Tensor]" if n.startswith("out_") else f"{n}: pl.Tensor"
              for n in types]  # fmt: skip
    lines = []
    if family == "tile":
        lines += [f"        {n}_t = pl.load({n}, [0, 0], {list(SHAPES[n])})"
                  for n in ("x", "r", "c", "one")]  # fmt: skip
        lines += [f"        {n} = {n}_t" for n in ("x", "r", "c", "one")]
    words = {"rows": ROWS, "cols": COLS, "dtype": dtype.constant_name, "family": family}
    lines += [f"        out_{n}[:] = {text.format(**words)}" for n, (text, _) in cases.items()]
    text = (
        f"def repeated({', '.join(params)}):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n" + "\n".join(lines)
    )
    compiled = compile_text(text, types, backend_type=TARGETS[target])
    outputs = {n: torch.zeros(value.shape, dtype=kind) for n, value in expected.items()}
    compiled(*given.values(), *outputs.values())
    for name, value in expected.items():
        assert torch.equal(outputs[name], value), name
