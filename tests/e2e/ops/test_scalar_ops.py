"""Scalar arithmetic at run time, on a core and in orchestration, against Python's and torch's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from pypto.ir.dtypes import BOOL, FP32, INT8, INT16, INT32, INT64, UINT8, DataType
from pypto.runtime import KernelFault

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
WHERE = pytest.mark.parametrize("where", ["core", "orchestration"])
TORCH = {
    INT8: torch.int8,
    INT16: torch.int16,
    INT32: torch.int32,
    INT64: torch.int64,
    UINT8: torch.uint8,
}


def kernel(where: str, expressions: list[str], prepare: str = "") -> str:
    """Writes each expression into an element of ``out``."""
    lines = ["def f(a: pl.Scalar[A], b: pl.Scalar[B], out: pl.Out[pl.Tensor]):"]
    pad = "    "
    if where == "core":
        lines += ["    with pl.at(level=pl.Level.CORE_GROUP):"]
        pad *= 2
    lines += [pad + line for line in prepare.splitlines()]
    lines += [f"{pad}out[{i}] = {text}" for i, text in enumerate(expressions)]
    return "\n".join([*lines, "    return out"])


WHOLE: dict[str, Callable[[int, int], int]] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "-a": lambda a, b: -a,
    "+a": lambda a, b: a,
    "~a": lambda a, b: ~a,
    "a & b": lambda a, b: a & b,
    "a | b": lambda a, b: a | b,
    "a ^ b": lambda a, b: a ^ b,
    "min(a, b)": min,
    "max(a, b)": max,
    "pl.min(a, b)": min,
    "pl.max(a, b)": max,
    "abs(a)": lambda a, b: abs(a),
    "a ** 3": lambda a, b: a**3,
    "a // 3": lambda a, b: a // 3,
    "a % 3": lambda a, b: a % 3,
    "a // -3": lambda a, b: a // -3,
    "a % -3": lambda a, b: a % -3,
    "a << 2": lambda a, b: a << 2,
    "a >> 1": lambda a, b: a >> 1,
}


def wrapped(value: int, dtype: DataType) -> int:
    """What is left of a number in so many bits."""
    value &= (1 << dtype.bits) - 1
    signed = dtype is not UINT8 and value >= 1 << (dtype.bits - 1)
    return value - (1 << dtype.bits) if signed else value


@pytest.mark.conforms("language.93", "language.95")
@PLATFORMS
@WHERE
@pytest.mark.parametrize("dtype", TORCH, ids=str)
def test_whole_numbers_wrap(dtype: DataType, where: str, platform: str, compile_text: Any) -> None:
    texts = [text for text in WHOLE if dtype is not UINT8 or "-3" not in text]
    text = kernel(where, texts).replace("[A]", f"[{dtype!r}]").replace("[B]", f"[{dtype!r}]")
    types = {"a": dtype, "b": dtype, "out": ((len(texts),), dtype)}
    compiled = compile_text(text, types, platform=platform)
    low, high = (0, 255) if dtype is UINT8 else (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1)
    values = sorted({low, low + 1, max(low, -7), 0, 1, 5, high - 1, high})
    for a, b in itertools.product(values, values[::3]):
        expected = [wrapped(WHOLE[text](a, b), dtype) for text in texts]
        assert compiled(a, b).tolist() == expected, (a, b)


@pytest.mark.conforms("language.94")
@PLATFORMS
@WHERE
def test_comparisons_and_logic(where: str, platform: str, compile_text: Any) -> None:
    """``and`` and ``or`` look at both sides; a chain of comparisons is one."""
    texts = ["a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "0 < a < b", "not a < b"]
    texts += ["a < b and b < 5", "a < b or b < 5", "(a < b) & (b < 5)", "(a < b) | (b < 5)"]
    texts += ["(a < b) ^ (b < 5)", "~(a < b)", "a and b", "not a"]
    prepare = "\n".join(
        f"if {text}:\n    v{i} = pl.yield_(1)\nelse:\n    v{i} = pl.yield_(0)"
        for i, text in enumerate(texts)
    )
    values = [f"v{i}" for i in range(len(texts))]
    text = kernel(where, values, prepare).replace("[A]", "[pl.INT32]").replace("[B]", "[pl.INT32]")
    types = {"a": INT32, "b": INT32, "out": ((len(texts),), INT32)}
    compiled = compile_text(text, types, platform=platform)
    for a, b in itertools.product((-3, 0, 4, 7), (-3, 4, 9)):
        less, small = a < b, b < 5
        expected = [a == b, a != b, a < b, a <= b, a > b, a >= b, 0 < a < b, not less]
        expected += [less and small, less or small, less & small, less | small, less ^ small]
        expected += [not less, bool(a and b), not a]
        assert compiled(a, b).tolist() == [int(e) for e in expected], (a, b)


FLOATS: dict[str, Callable[[float, float], float]] = {
    "a / b": lambda a, b: a / b,
    "a ** b": lambda a, b: (torch.tensor(a) ** torch.tensor(b)).item(),
    "a ** 2": lambda a, b: a * a,
    "2.0 ** b": lambda a, b: (torch.tensor(2.0) ** torch.tensor(b)).item(),
    "a ** -1": lambda a, b: 1.0 / a,
    "abs(a)": lambda a, b: abs(a),
    "pl.max(a, b) - pl.min(a, b)": lambda a, b: max(a, b) - min(a, b),
    "-a": lambda a, b: -a,
    "pl.cast(pl.cast(a, pl.INT32), pl.FP32)": lambda a, b: math.copysign(
        math.floor(abs(a) + 0.5),
        a,  # the mode of a cast that names none: ties away from zero
    ),
    "pl.cast(pl.cast(a, pl.INT32, mode='trunc'), pl.FP32)": lambda a, b: float(math.trunc(a)),
}


@pytest.mark.conforms("language.93", "language.95")
@PLATFORMS
@WHERE
def test_floats(where: str, platform: str, compile_text: Any) -> None:
    text = kernel(where, list(FLOATS)).replace("[A]", "[pl.FP32]").replace("[B]", "[pl.FP32]")
    types = {"a": FP32, "b": FP32, "out": ((len(FLOATS),), FP32)}
    compiled = compile_text(text, types, platform=platform)
    for a, b in itertools.product((0.5, 2.0, 3.25, -1.5), (0.5, 2.0, -3.0)):
        expected = torch.tensor([function(a, b) for function in FLOATS.values()])
        torch.testing.assert_close(compiled(a, b), expected, equal_nan=True)


@pytest.mark.conforms("language.96")
@PLATFORMS
@WHERE
def test_literals_follow_and_mixed_types_meet(where: str, platform: str, compile_text: Any) -> None:
    """A literal takes the other side's type; int / int and int with float give fp32."""
    texts = [
        "a / b",
        "a + 0.5",
        "a * 1.5 + b",
        "a ** 0.5",
        "(a + b) / 2",
        "7 / 2 + a",
        "2 ** b + a",
    ]
    text = kernel(where, [f"pl.cast({t}, pl.FP32)" for t in texts])
    text = text.replace("[A]", "[pl.INT32]").replace("[B]", "[pl.INT8]")
    compiled = compile_text(
        text, {"a": INT32, "b": INT8, "out": ((len(texts),), FP32)}, platform=platform
    )
    for a, b in ((9, 2), (100, 5)):
        expected = torch.tensor([float(eval(t, {"a": a, "b": b})) for t in texts])
        torch.testing.assert_close(compiled(a, b), expected)


@pytest.mark.conforms("language.93")
@PLATFORMS
@WHERE
def test_a_negative_power_of_a_whole_number_is_a_fault(
    where: str, platform: str, compile_text: Any
) -> None:
    text = kernel(where, ["a ** b"]).replace("[A]", "[pl.INT32]").replace("[B]", "[pl.INT32]")
    types = {"a": INT32, "b": INT32, "out": ((1,), INT32)}
    compiled = compile_text(text, types, platform=platform)
    assert compiled(3, 4).tolist() == [81]
    with pytest.raises(KernelFault, match=r"integer power with .* negative exponent") as caught:
        compiled(3, -1)
    assert (caught.value.unit, caught.value.line) == ("tests:f", 3 if where == "core" else 2)


@PLATFORMS
@WHERE
def test_truth_values_become_numbers(where: str, platform: str, compile_text: Any) -> None:
    texts = ["pl.cast(a, pl.INT32)", "pl.cast(a < b, pl.INT32) + 1"]
    text = kernel(where, texts).replace("[A]", "[pl.BOOL]").replace("[B]", "[pl.BOOL]")
    text = text.replace("a < b", "a and b")
    types = {"a": BOOL, "b": BOOL, "out": ((2,), INT32)}
    compiled = compile_text(text, types, platform=platform)
    for a, b in itertools.product((False, True), repeat=2):
        assert compiled(a, b).tolist() == [int(a), int(a and b) + 1]
