"""Programs that are registered once and called on memory of the chip, or give new tensors."""

from __future__ import annotations

import pytest
import torch
from examples.explicit_dispatch import COLS, RATE, ROWS, STEPS, relax, step
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import RunConfig


@pytest.mark.parametrize("arch", BackendType)
def test_registered_programs_work_on_memory_of_the_chip(arch, normal):
    config = RunConfig(arch=arch, execution_mode=ExecutionMode.SIM)
    start, drive = normal(ROWS, COLS), normal(ROWS, COLS)
    last, totals, loaded = relax(config, start, drive)
    expected = drive + (start - drive) * (1 - RATE) ** STEPS
    torch.testing.assert_close(last, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(totals, expected.sum(dim=1, keepdim=True), rtol=1e-4, atol=1e-4)
    assert loaded == 2, "each program once, however often it is called"


@pytest.mark.conforms("language.122")
@pytest.mark.parametrize("arch", BackendType)
def test_a_compiled_program_returns_its_outputs(arch, normal):
    config = RunConfig(arch=arch, execution_mode=ExecutionMode.SIM)
    state, drive = normal(ROWS, COLS), normal(ROWS, COLS)
    compiled = step.compile(config=config)
    expected = state + 0.5 * (drive - state)
    torch.testing.assert_close(compiled(state, drive, 0.5), expected)
    out = torch.empty(ROWS, COLS)
    assert compiled(state, drive, 0.5, out) is None
    torch.testing.assert_close(out, expected)
