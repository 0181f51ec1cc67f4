"""Tensors that are on the cpu and yet have no elements to read there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from pypto.runtime.compiled_program import CompiledProgram
from torch._subclasses.fake_tensor import FakeTensorMode

Scale = Callable[..., Path]
Call = Callable[..., object]


def _freed() -> torch.Tensor:
    tensor = torch.ones(10)
    tensor.untyped_storage().resize_(0)
    return tensor


def _fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.ones(10)


def _ways(scale: Scale, extent: int = 10) -> dict[str, Call]:
    """The checked call, the call of known extents, and the bound one, each warm."""
    fresh = CompiledProgram.from_dir(scale())
    warm = CompiledProgram.from_dir(scale())
    x, out = torch.ones(extent), torch.zeros(extent)
    warm(x, 2.0, 0, out)
    bound = warm.dispatcher_for(None).like((x, 2.0, 0, out))
    return {"checked": fresh, "known": warm, "bound": lambda *args: bound(args)}


@pytest.mark.parametrize("make", [_freed, _fake])
def test_a_tensor_without_memory_is_named(scale: Scale, make: Callable[[], torch.Tensor]) -> None:
    out = torch.zeros(10)
    for call in _ways(scale).values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, about data_ptr of a fake tensor
            with pytest.raises(ValueError, match=r"argument 'x' \(position 0\) has no memory"):
                call(make(), 2.0, 0, out)
            with pytest.raises(ValueError, match=r"argument 'out' \(position 3\) has no memory"):
                call(out, 2.0, 0, make())


def test_a_tensor_that_vmap_traces_is_named(scale: Scale) -> None:
    out = torch.zeros(10)
    for call in _ways(scale).values():
        with pytest.raises(ValueError, match=r"argument 'x' .*has no memory"):
            torch.vmap(lambda x, call=call: call(x, 2.0, 0, out))(torch.ones(3, 10))


def test_a_storage_that_is_too_short_is_refused(scale: Scale) -> None:
    out = torch.zeros(10)
    for call in _ways(scale).values():
        short = torch.ones(10)
        call(short, 2.0, 0, out)
        short.untyped_storage().resize_(8)
        with pytest.raises(ValueError, match=r"'x' .*has no memory for its 40 bytes"):
            call(short, 2.0, 0, out)


def test_a_part_of_a_storage_is_taken_where_it_is(scale: Scale) -> None:
    for call in _ways(scale).values():
        whole, out = torch.arange(30.0), torch.zeros(20)
        part = whole[20:]
        call(part, 2.0, 0, out[10:])
        assert out.tolist() == [0.0] * 10 + [2.0 * element for element in range(20, 30)]
        whole.untyped_storage().resize_(4 * 25)
        with pytest.raises(ValueError, match=r"'x' .*has no memory for its 40 bytes"):
            call(part, 2.0, 0, out[10:])


def test_a_lazily_negated_element_is_refused(scale: Scale) -> None:
    """The memory holds the element with the other sign."""
    lazy = torch.tensor([1 + 3j]).conj().imag
    assert lazy.is_contiguous() and lazy.item() == -3
    out = torch.zeros(1)
    for call in _ways(scale, extent=1).values():
        with pytest.raises(ValueError, match=r"argument 'x' .*resolve_neg"):
            call(lazy, 2.0, 0, out)
        call(lazy.resolve_neg(), 2.0, 0, out)
        assert out.item() == -6


def test_a_dense_view_that_is_negated_is_refused(scale: Scale) -> None:
    for call in _ways(scale).values():
        out = torch.zeros(10)
        with pytest.raises(ValueError, match=r"argument 'x' .*resolve_neg"):
            call(torch._neg_view(torch.ones(10)), 2.0, 0, out)
        with pytest.raises(ValueError, match=r"argument 'out' .*resolve_neg"):
            call(torch.ones(10), 2.0, 0, torch._neg_view(out))
        assert not out.any()


def test_empty_tensors_need_no_memory(scale: Scale) -> None:
    empty = torch.zeros(0)
    for call in _ways(scale, extent=0).values():
        call(empty, 2.0, 0, empty)


def test_a_sparse_tensor_is_refused_as_such(scale: Scale) -> None:
    with pytest.raises(ValueError, match=r"'x'.*dense.*to_dense"):
        CompiledProgram.from_dir(scale())(torch.ones(10).to_sparse(), 2.0, 0, torch.zeros(10))
