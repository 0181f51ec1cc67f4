from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from pypto.backend import BackendType, ExecutionMode
from pypto.ir.dtypes import FP32
from pypto.runtime import ChipWorker, DeviceTensor, RunConfig
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.errors import ToolchainUnavailable

Scale = Callable[..., Path]


def test_tensors_stay_on_the_chip_between_runs(scale: Scale) -> None:
    compiled = CompiledProgram.from_dir(scale(1))
    x = torch.arange(8, dtype=torch.float32)
    with ChipWorker() as worker:
        first = worker.alloc_tensor([8], torch.float32, init=x)
        second = worker.alloc_tensor([8], FP32)
        assert (first.nbytes, first.shape, first.dtype) == (32, (8,), FP32)
        assert not first.data_ptr % 64
        worker.run(compiled, first, 2.0, 0, second)
        worker.run(compiled, second, 2.0, 0, first)
        result = torch.empty(8)
        worker.copy_from(result.data_ptr(), first.data_ptr, first.nbytes)
    assert torch.equal(result, (x * 2 + 1) * 2 + 1)


def test_host_and_device_tensors_mix(scale: Scale) -> None:
    compiled = CompiledProgram.from_dir(scale())
    with ChipWorker() as worker:
        device = worker.alloc_tensor((8,), FP32)
        x = torch.arange(8, dtype=torch.float32)
        worker.copy_to(x.data_ptr(), device.data_ptr, 32)
        out = torch.zeros(8)
        for _ in range(2):
            worker.run(compiled, device, 3.0, 0, out)
            worker.run(compiled, x, 3.0, 0, out)
        assert torch.equal(out, x * 3)


def test_a_program_is_registered_once(scale: Scale) -> None:
    compiled = CompiledProgram.from_dir(scale())
    out = torch.zeros(4)
    with ChipWorker(config=RunConfig()) as worker:
        handle = worker.register(compiled)
        assert worker.register(compiled) is handle
        handle(torch.ones(4), 2.0, 0, out)
        worker.run(compiled, torch.ones(4), 2.0, 0, out)
        assert worker.aicpu_dlopen_count == 1
    assert out.tolist() == [2.0] * 4


def test_the_current_worker_is_the_innermost(scale: Scale) -> None:
    assert ChipWorker.current() is None
    with ChipWorker() as outer:
        assert ChipWorker.current() is outer
        with ChipWorker() as inner:
            assert ChipWorker.current() is inner
        assert ChipWorker.current() is outer
        assert inner.closed
    assert ChipWorker.current() is None


def test_another_platform_is_refused_before_dispatch(scale: Scale) -> None:
    directory = scale()
    compiled = CompiledProgram.from_dir(directory)
    with (
        ChipWorker(config=RunConfig(arch=BackendType.Ascend950)) as worker,
        pytest.raises(ValueError, match=r"'a2a3sim'.*'a5sim'"),
    ):
        worker.run(compiled, torch.ones(4), 2.0, 0, torch.zeros(4))
    assert not (directory / "cache").exists()
    with pytest.raises(ToolchainUnavailable, match="'a2a3'"):
        ChipWorker(config=RunConfig(execution_mode=ExecutionMode.ONBOARD))


def test_a_closed_worker_refuses(scale: Scale) -> None:
    compiled = CompiledProgram.from_dir(scale())
    worker = ChipWorker()
    handle = worker.register(compiled)
    worker.close()
    worker.close()
    assert worker.closed
    with pytest.raises(RuntimeError, match="closed"):
        handle(torch.ones(4), 2.0, 0, torch.zeros(4))
    with pytest.raises(RuntimeError, match="closed"):
        worker.alloc_tensor((4,), FP32)
    with pytest.raises(RuntimeError, match="closed"), worker:
        pass


def test_copies_stay_inside_tensors() -> None:
    host = torch.zeros(8)
    with ChipWorker() as worker:
        tensor = worker.alloc_tensor((8,), FP32)
        for address, nbytes in (
            (tensor.data_ptr, 33),
            (tensor.data_ptr + 4, 32),
            (tensor.data_ptr - 1, 1),
            (0, 1),
        ):
            with pytest.raises(ValueError, match="not inside"):
                worker.copy_to(host.data_ptr(), address, nbytes)
        with pytest.raises(ValueError, match="negative"):
            worker.copy_from(host.data_ptr(), tensor.data_ptr, -1)
        worker.free_tensor(tensor)
        with pytest.raises(ValueError, match="not allocated"):
            worker.free_tensor(tensor)
        with pytest.raises(ValueError, match="not inside"):
            worker.copy_from(host.data_ptr(), tensor.data_ptr, 1)
        with pytest.raises(ValueError, match="not allocated"):
            worker.free_tensor(DeviceTensor(0, (1,), FP32))


def test_bad_tensors_are_refused() -> None:
    with ChipWorker() as worker:
        for shape in ((), (-1,)):
            with pytest.raises(ValueError, match="shape"):
                worker.alloc_tensor(shape, FP32)
        with pytest.raises(TypeError, match="Unsupported torch dtype"):
            worker.alloc_tensor((1,), torch.float64)
        with pytest.raises(ValueError, match="init must have shape"):
            worker.alloc_tensor((2,), FP32, init=torch.zeros(3))
        with pytest.raises(TypeError, match="init must have dtype"):
            worker.alloc_tensor((2,), FP32, init=torch.zeros(2, dtype=torch.int32))
