"""Every elementwise, row and column operation on tiles against torch, by type and odd shape.

One program a type holds all cases over all shapes, since each kernel costs a run of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from pypto.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DataType

Tensor = torch.Tensor

DTYPES = {d.constant_name: d for d in (FP32, FP16, BF16, INT32, INT8)}
FLOATS = ("FP32", "FP16", "BF16")
TORCH = {name: getattr(torch, d.torch_name) for name, d in DTYPES.items()}

# Tile shape and valid region; the tensor has the extents of the valid region.
SHAPES = (
    ((1, 37), (1, 37)),
    ((13, 29), (13, 29)),
    ((7, 1), (7, 1)),
    ((16, 48), (11, 31)),
)

# Each operation is compiled anew for each shape and type, so not every type takes every shape.
SHAPES_OF = {
    "FP32": (1, 2, 3),
    "FP16": (0, 3),
    "BF16": (1, 3),
    "INT32": (0, 3),
    "INT8": (2, 3),
}

# Relative error of one rounding, and of functions that are approximated.
EPSILON = {"FP32": 2.0**-24, "FP16": 2.0**-11, "BF16": 2.0**-8}


@dataclass(frozen=True)
class Case:
    """An expression over tiles, tmp and the scalar s.

    The tiles are x, y, p (positive), near (about 1 or -1), r [M, 1] and c [1, N].

    ``reference`` works on the same names, floats widened to fp32. ``steps`` is the allowed error
    in roundings; 0 wants the exact bits.
    """

    name: str
    expression: str
    reference: Callable[[Mapping[str, Any]], Tensor]
    steps: float = 0.0
    dtypes: tuple[str, ...] = tuple(DTYPES)
    column: bool = False
    row: bool = False

    def extents(self, valid: tuple[int, int]) -> tuple[int, int]:
        """The extents of its result for a valid region."""
        return (1 if self.row else valid[0], 1 if self.column else valid[1])


FUNCTIONS = {"dtypes": FLOATS, "steps": 8.0}

CASES = (
    Case("add", "pl.add(x, y)", lambda v: v["x"] + v["y"]),
    Case("sub", "pl.sub(x, y)", lambda v: v["x"] - v["y"]),
    Case("mul", "pl.mul(x, y)", lambda v: v["x"] * v["y"]),
    Case("div", "pl.div(x, y)", lambda v: v["x"] / v["y"], dtypes=FLOATS),
    Case("maximum", "pl.maximum(x, y)", lambda v: torch.maximum(v["x"], v["y"])),
    Case("minimum", "pl.minimum(x, y)", lambda v: torch.minimum(v["x"], v["y"])),
    Case("adds", "pl.add(x, s)", lambda v: v["x"] + v["s"]),
    Case("subs", "pl.sub(x, s)", lambda v: v["x"] - v["s"]),
    Case("muls", "pl.mul(x, s)", lambda v: v["x"] * v["s"]),
    Case("divs", "pl.div(x, s)", lambda v: v["x"] / v["s"], dtypes=FLOATS),
    Case("maxs", "pl.maximum(x, s)", lambda v: v["x"].clamp(min=v["s"])),
    Case("mins", "pl.minimum(x, s)", lambda v: v["x"].clamp(max=v["s"])),
    Case("rsubs", "3 - x", lambda v: 3 - v["x"]),
    Case("rdivs", "3 / y", lambda v: torch.full_like(v["y"], 3) / v["y"], dtypes=FLOATS),
    Case("exp", "pl.exp(x)", lambda v: torch.exp(v["x"]), **FUNCTIONS),
    Case("log", "pl.log(p)", lambda v: torch.log(v["p"]), **FUNCTIONS),
    # torch's own fp32 square root is not the nearest number; through fp64 it is.
    Case("sqrt", "pl.sqrt(p)", lambda v: torch.sqrt(v["p"].double()).float(), dtypes=FLOATS),
    Case("rsqrt", "pl.rsqrt(p)", lambda v: torch.rsqrt(v["p"]), **FUNCTIONS),
    Case("sin", "pl.sin(x)", lambda v: torch.sin(v["x"]), **FUNCTIONS),
    Case("cos", "pl.cos(x)", lambda v: torch.cos(v["x"]), **FUNCTIONS),
    Case("recip", "pl.recip(y)", lambda v: torch.reciprocal(v["y"]), dtypes=FLOATS, steps=2.0),
    Case("relu", "pl.relu(x)", lambda v: torch.relu(v["x"])),
    Case("neg", "pl.neg(x)", lambda v: -v["x"]),
    Case("abs", "pl.abs(x)", lambda v: torch.abs(v["x"])),
    Case("row_max", "pl.row_max(x, tmp)", lambda v: v["x"].amax(1, keepdim=True), column=True),
    Case("row_min", "pl.row_min(x, tmp)", lambda v: v["x"].amin(1, keepdim=True), column=True),
    Case(
        "row_sum",
        "pl.row_sum(p, tmp)",
        lambda v: v["p"].sum(1, keepdim=True, dtype=v["p"].dtype),
        steps=8.0,
        column=True,
    ),
    Case(
        "row_prod",
        "pl.row_prod(near, tmp)",
        lambda v: v["near"].prod(1, keepdim=True, dtype=v["near"].dtype),
        steps=40.0,
        column=True,
    ),
    Case("col_max", "pl.col_max(x)", lambda v: v["x"].amax(0, keepdim=True), row=True),
    Case("col_min", "pl.col_min(x)", lambda v: v["x"].amin(0, keepdim=True), row=True),
    Case(
        "col_sum",
        "pl.col_sum(p)",
        lambda v: v["p"].sum(0, keepdim=True, dtype=v["p"].dtype),
        steps=8.0,
        row=True,
    ),
    Case(
        "col_prod",
        "pl.col_prod(near)",
        lambda v: v["near"].prod(0, keepdim=True, dtype=v["near"].dtype),
        steps=40.0,
        row=True,
    ),
    Case("fmod", "pl.fmod(x, y)", lambda v: torch.fmod(v["x"], v["y"])),
    Case("fmods", "pl.fmod(x, s)", lambda v: torch.fmod(v["x"], v["s"])),
    Case(
        "lrelu",
        "pl.lrelu(x, s)",
        lambda v: torch.where(v["x"] > 0, v["x"], v["x"] * v["s"]),
        dtypes=FLOATS,
    ),
    Case(
        "prelu",
        "pl.prelu(x, y, tmp)",
        lambda v: torch.where(v["x"] > 0, v["x"], v["x"] * v["y"]),
        dtypes=FLOATS,
    ),
    Case("row_expand", "pl.row_expand(x, r)", lambda v: v["r"].expand_as(v["x"])),
    Case("row_expand_max", "pl.row_expand_max(x, r)", lambda v: torch.maximum(v["x"], v["r"])),
    Case("row_expand_min", "pl.minimum(r, x)", lambda v: torch.minimum(v["x"], v["r"])),
    Case(
        "row_expand_expdif",
        "pl.row_expand_expdif(x, r)",
        lambda v: torch.exp(v["x"] - v["r"]),
        **FUNCTIONS,
    ),
    Case("row_first", "r - x", lambda v: v["r"] - v["x"]),
    Case("col_expand_max", "pl.col_expand_max(x, c)", lambda v: torch.maximum(v["x"], v["c"])),
    Case("col_expand_min", "pl.minimum(x, c)", lambda v: torch.minimum(v["x"], v["c"])),
    Case("col_fmod", "pl.fmod(x, c)", lambda v: torch.fmod(v["x"], v["c"])),
    Case("row_expand_add", "pl.row_expand_add(x, r)", lambda v: v["x"] + v["r"]),
    Case("row_expand_sub", "pl.row_expand_sub(x, r)", lambda v: v["x"] - v["r"]),
    Case("row_expand_mul", "pl.row_expand_mul(x, r)", lambda v: v["x"] * v["r"]),
    Case("row_expand_div", "pl.row_expand_div(x, r)", lambda v: v["x"] / v["r"], dtypes=FLOATS),
    Case("col_expand", "pl.col_expand(x, c)", lambda v: v["c"].expand_as(v["x"])),
    Case("col_expand_add", "pl.col_expand_add(x, c)", lambda v: v["x"] + v["c"]),
    Case("col_expand_sub", "pl.col_expand_sub(x, c)", lambda v: v["x"] - v["c"]),
    Case("col_expand_mul", "pl.col_expand_mul(x, c)", lambda v: v["x"] * v["c"]),
    Case("col_expand_div", "pl.col_expand_div(x, c)", lambda v: v["x"] / v["c"], dtypes=FLOATS),
)

INPUTS = ("x", "y", "p", "near", "r", "c")
# A kernel takes 32 tensors at most, and the inputs are among them.
GROUP = 26


def cases_of(dtype: str) -> list[Case]:
    return [case for case in CASES if dtype in case.dtypes]


def groups(dtype: str) -> list[list[Case]]:
    cases = cases_of(dtype)
    return [cases[i : i + GROUP] for i in range(0, len(cases), GROUP)]


def extents(name: str, shape: tuple[int, int]) -> tuple[int, int]:
    return {"r": (shape[0], 1), "c": (1, shape[1])}.get(name, shape)


def scope_text(dtype: str, index: int, cases: list[Case]) -> str:
    """One pl.at block: loads the inputs of a shape and stores every case."""
    tile, valid = SHAPES[index]
    lines = ["    with pl.at(level=pl.Level.CORE_GROUP):"]
    for name in INPUTS:
        shape = extents(name, tile)
        limits = extents(name, valid)
        more = "" if shape == limits else f", valid_shape={list(limits)}"
        lines.append(f"        {name} = pl.load({name}{index}, [0, 0], {list(shape)}{more})")
    lines.append(f"        tmp = pl.create_tile({list(tile)}, dtype=pl.{dtype})")
    for case in cases:
        lines.append(
            f"        {case.name}{index} = pl.store({case.expression}, [0, 0], {case.name}{index})"
        )
    return "\n".join(lines)


def program(dtype: str) -> tuple[str, dict[str, object]]:
    """The text of a type's program and the types of its parameters."""
    element: DataType = DTYPES[dtype]
    types: dict[str, object] = {"s": element}
    for index in SHAPES_OF[dtype]:
        valid = SHAPES[index][1]
        for name in INPUTS:
            types[f"{name}{index}"] = (extents(name, valid), element)
    outputs: dict[str, object] = {}
    for index in SHAPES_OF[dtype]:
        valid = SHAPES[index][1]
        for case in cases_of(dtype):
            outputs[f"{case.name}{index}"] = (case.extents(valid), element)
    params = [f"s: pl.Scalar[pl.{dtype}]"]
    params += [f"{name}: pl.Tensor" for name in types if name != "s"]
    params += [f"{name}: pl.Out[pl.Tensor]" for name in outputs]
    body = [
        scope_text(dtype, index, group) for index in SHAPES_OF[dtype] for group in groups(dtype)
    ]
    text = f"def tile_ops_{dtype.lower()}({', '.join(params)}):\n" + "\n".join(body)
    return text, {**types, **outputs}


def make(name: str, shape: tuple[int, int], dtype: str, seed: int) -> Tensor:
    """Values away from zero where something divides by them, small enough not to overflow."""
    generator = torch.Generator().manual_seed(seed)
    kind = TORCH[dtype]
    if dtype in FLOATS:
        values = torch.randn(shape, generator=generator) * 2
        if name == "p":
            values = values.abs() + 0.1
        elif name == "near":  # products neither overflow nor vanish
            values = torch.exp2(torch.rand(shape, generator=generator) - 0.5) * values.sign()
        elif name != "x":
            values = torch.where(values < 0, values - 0.5, values + 0.5)
        return values.to(kind)
    limit = 100 if dtype == "INT8" else 2**30
    values = torch.randint(-limit, limit, shape, generator=generator)
    if name == "p":
        values = values.abs() // (1 if dtype == "INT32" else 40)
    elif name in ("y", "r", "c"):
        values = torch.where(values == 0, 3, values)
    return values.to(kind)


SCALAR = {"FP32": 1.37, "FP16": 1.5, "BF16": -2.5, "INT32": -12345, "INT8": 7}


@pytest.fixture(scope="module", params=list(DTYPES))
def executed(request: pytest.FixtureRequest, compile_text: Any) -> tuple[str, dict[str, Tensor]]:
    """A type and, by parameter name, all tensors after one run."""
    dtype: str = request.param
    text, types = program(dtype)
    compiled = compile_text(text, types)
    tensors: dict[str, Tensor] = {}
    arguments: list[Any] = []
    for position, (name, type_) in enumerate(types.items()):
        if name == "s":
            arguments.append(SCALAR[dtype])
            continue
        assert isinstance(type_, tuple)
        is_input = name.rstrip("0123456789") in INPUTS
        shape = type_[0]
        # Outputs start with something that no case gives, so that a missing store shows.
        tensor = (
            make(name.rstrip("0123456789"), shape, dtype, position)
            if is_input
            else torch.full(shape, 77, dtype=TORCH[dtype])
        )
        tensors[name] = tensor
        arguments.append(tensor)
    compiled(*arguments)
    return dtype, tensors


@pytest.mark.conforms("language.130")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tile_operation(case: Case, executed: tuple[str, dict[str, Tensor]]) -> None:
    dtype, tensors = executed
    if dtype not in case.dtypes:
        pytest.skip(f"not defined on {dtype}")
    kind = TORCH[dtype]
    for index in SHAPES_OF[dtype]:
        values: dict[str, Any] = {name: tensors[f"{name}{index}"] for name in INPUTS}
        scalar = torch.tensor(SCALAR[dtype]).to(kind)
        values["s"] = scalar.item()
        if dtype in FLOATS:
            values.update({name: values[name].float() for name in INPUTS})
        expected = case.reference(values).to(kind)
        actual = tensors[f"{case.name}{index}"]
        if case.steps and dtype in FLOATS:
            bound = case.steps * EPSILON[dtype]
            torch.testing.assert_close(actual, expected, rtol=bound, atol=bound)
        else:
            torch.testing.assert_close(actual, expected, rtol=0, atol=0)
