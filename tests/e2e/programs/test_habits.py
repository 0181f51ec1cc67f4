"""Kernels in the ways that people have of writing them, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from habits import calls, flow, parts

Case = tuple[Any, tuple[Any, ...], dict[int, torch.Tensor]]
CASES: dict[str, Callable[[Any], Case]] = {}


def case(make: Callable[[Any], Case]) -> Callable[[Any], Case]:
    """A kernel, its arguments, and what some of them are afterwards, by position."""
    CASES[make.__name__] = make
    return make


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(*shape, dtype=dtype)


@case
def inline_over_modules(normal: Any) -> Case:
    x = normal(32, 32)
    return calls.inline_over_modules, (x, zeros(32, 32)), {1: x / 4}


@case
def two_results(normal: Any) -> Case:
    x = normal(32, 32)
    low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    outputs = zeros(32, 1), zeros(32, 1), zeros(32, 32)
    return calls.two_results, (x, *outputs), {1: low, 2: high, 3: (x - low) / (high - low)}


@case
def default_arguments(normal: Any) -> Case:
    x = normal(16, 16)
    arguments = (x, zeros(16, 16), zeros(16, 16))
    return calls.default_arguments, arguments, {1: x * 2 + 1, 2: x * 2 + 5}


@case
def returned_call(normal: Any) -> Case:
    x = normal(16, 16)
    return calls.returned_call, (x, zeros(16, 16)), {1: x * 3 + 1}


@case
def under_another_name(normal: Any) -> Case:
    x = normal(16, 16)
    return calls.under_another_name, (x, zeros(16, 16)), {1: x + x}


@case
def closure_of_strings(normal: Any) -> Case:
    x = normal(16, 64)
    return calls.activation(64, "relu", 2.0), (x, zeros(16, 64)), {1: x.relu() * 2}


@case
def another_closure(normal: Any) -> Case:
    x = normal(16, 32)
    return calls.activation(32, "square", 3.0), (x, zeros(16, 32)), {1: x * x * 3}


@case
def multiplied(normal: Any) -> Case:
    x = normal(16, 16)
    arguments = (3, x, 0.5, True, zeros(16, 16), 2.0)
    return calls.scalars_between_tensors, arguments, {4: x / 8}


@case
def added(normal: Any) -> Case:
    x = normal(16, 16)
    arguments = (3, x, 0.5, False, zeros(16, 16), 2.0)
    return calls.scalars_between_tensors, arguments, {4: x + 6}


@case
def one_axis(normal: Any) -> Case:
    x, weight = normal(256), normal(256)
    return calls.one_axis, (x, weight, zeros(256)), {2: x * weight + x}


@case
def one_axis_as_a_whole(normal: Any) -> Case:
    x = normal(64)
    return calls.one_axis_as_a_whole, (x, zeros(64)), {1: x.exp() * 2 + x}


@case
def gated(normal: Any) -> Case:
    a, b = normal(16, 32), normal(16, 32)
    return calls.Gated, (a, b, zeros(16, 32)), {2: F.silu(F.silu(a) * b) * b}


@case
def square_root(normal: Any) -> Case:
    x = normal(16, 16).abs() + 1
    return flow.square_root, (x, 8, zeros(16, 16)), {2: x.sqrt()}


@case
def rows_of_lengths(normal: Any) -> Case:
    x, expected = normal(64, 32), zeros(64, 32)
    lengths = torch.tensor([3, 16, 1, 7], dtype=torch.int32)
    for b, n in enumerate(lengths.tolist()):
        part = x[b * 16 : b * 16 + n]
        expected[b * 16 : b * 16 + n] = part - part.amax(0, keepdim=True)
    return flow.rows_of_lengths, (x, lengths, zeros(64, 32)), {2: expected}


@case
def any_number_of_rows(normal: Any) -> Case:
    x = normal(33, 32)
    return flow.any_number_of_rows, (x, zeros(33, 32)), {1: x.abs()}


@case
def branch_taken(normal: Any) -> Case:
    x = normal(16, 16)
    return flow.branch_with_yields, (x, 4, zeros(16, 16)), {2: x + 1}


@case
def branch_not_taken(normal: Any) -> Case:
    x = normal(16, 16)
    return flow.branch_with_yields, (x, 2, zeros(16, 16)), {2: x - 1}


@case
def branches_outside(normal: Any) -> Case:
    x = normal(32, 16)
    expected = torch.cat([torch.full((16, 16), 7.0), x[5:21].exp()])
    return flow.branches_outside, (x, torch.tensor([1, 5]), zeros(32, 16)), {2: expected}


@case
def log_sum_exp(normal: Any) -> Case:
    x = normal(16, 256)
    return flow.log_sum_exp, (x, zeros(16, 1)), {1: x.logsumexp(1, keepdim=True)}


@case
def python_words(normal: Any) -> Case:
    x = normal(16, 16)
    a, b, k = x, torch.ones(16, 16), 0
    for i in range(5):
        a, b = a + b, a
        k += 2 if 0 < i < 3 else -1
    return flow.python_words, (x, 5, zeros(16, 16)), {2: a + k}


@case
def scalars_of_a_block(normal: Any) -> Case:
    x = normal(64, 16)
    return flow.scalars_of_a_block, (x, 2, zeros(16, 16)), {2: x[20:36] + x[36:52]}


@case
def loop_of_blocks(normal: Any) -> Case:
    x = normal(64, 32)
    return flow.loop_of_blocks, (x, zeros(64, 32)), {1: -x}


@case
def declared_order(normal: Any) -> Case:
    x = normal(16, 16)
    expected = (x + 1) * 2
    return flow.declared_order, (x, zeros(16, 16)), {0: expected, 1: expected}


@case
def columns_and_rows(normal: Any) -> Case:
    x = normal(16, 64)
    sums = x.sum(1)
    expected = (sums + 1) * sums
    arguments = (x, zeros(1, 16), zeros(16, 1))
    return parts.columns_and_rows, arguments, {1: expected[None, :], 2: expected[:, None]}


@case
def names_of_outputs(normal: Any) -> Case:
    x = normal(32, 32)
    expected = torch.cat([x[16:] * 3, x[:16] * 3])
    return parts.names_of_outputs, (x, zeros(32, 32)), {1: expected}


@case
def subscripts(normal: Any) -> Case:
    x, expected = normal(4, 16, 32), zeros(4, 16, 32)
    table = torch.tensor([1, 0, 3, 2], dtype=torch.int32)
    for b, i in enumerate(table.tolist()):
        expected[b, :8, 16:] = x[i, :8, :16] + x[i, 8:, 16:]
        expected[b, 8:] = x[i, 8:] * x[b, 8:]
    return parts.subscripts, (x, table, zeros(4, 16, 32)), {2: expected}


@case
def product_in_blocks(normal: Any) -> Case:
    a, b = normal(64, 128, dtype=torch.bfloat16), normal(128, 64, dtype=torch.bfloat16)
    return parts.product_in_blocks, (a, b, zeros(64, 64)), {2: a.float() @ b.float()}


@case
def unrolled_taps(normal: Any) -> Case:
    x = normal(18, 64)
    expected = x[:16] / 4 + x[1:17] / 2 + x[2:] / 4
    return parts.unrolled_taps, (x, zeros(16, 64)), {1: expected}


@case
def quantized(normal: Any) -> Case:
    x = normal(16, 64)
    scale = x.abs().amax(1, keepdim=True).clamp(min=1e-4) * (1 / 127)
    outputs = zeros(16, 64, dtype=torch.int8), zeros(16, 1), zeros(16, 64, dtype=torch.float16)
    expected = {1: (x / scale).round().to(torch.int8), 2: scale, 3: x.half()}
    return parts.quantized, (x, *outputs), expected


@case
def larger_of_two(normal: Any) -> Case:
    x, y = normal(16, 64), normal(16, 64)
    return parts.larger_of_two, (x, y, zeros(16, 64)), {2: torch.maximum(x, y)}


@case
def cached_rows(normal: Any) -> Case:
    k, cache = normal(4, 32), normal(64, 32)
    after = cache.clone()
    after[8:12] = k
    return parts.cached_rows, (k, 8, cache, zeros(4, 32)), {2: after, 3: cache[4:8].clone()}


@case
def attention(normal: Any) -> Case:
    q, k, v = normal(16, 32), normal(64, 32), normal(64, 32)
    expected = torch.softmax(q @ k.T / 32**0.5, 1) @ v
    return parts.attention, (q, k, v, zeros(16, 32)), {3: expected}


@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_it_says(name: str, launch: Any, normal: Any) -> None:
    kernel, arguments, expected = CASES[name](normal)
    launch(kernel, *arguments)
    for position, value in expected.items():
        torch.testing.assert_close(arguments[position], value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("mode", "expected"), [("add", 6.0), ("mul", 9.0)])
def test_constants_choose_the_code(mode: str, expected: float) -> None:
    x, out = torch.full((32, 16), 3.0), zeros(32, 16)
    calls.constants(x, out, 32, mode)
    assert (out == expected).all()
