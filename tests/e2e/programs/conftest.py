"""Programs as their authors write them, run on both chips and with both runtimes."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypto.language as pl
import pytest
import torch
from pypto import ir
from pypto.backend import BackendType, ExecutionMode, RuntimeKind, target_of
from pypto.compiler import lower
from pypto.ir import Program, VerificationLevel, assert_structural_equal
from pypto.runtime import RunConfig

HERE = Path(__file__).parent

# Kernels that consist of several modules import each other, as those of users do, and some of them
# are the examples of the documentation.
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "docs")]

Launch = Callable[..., None]

VARIANTS = tuple(itertools.product(BackendType, RuntimeKind))


def reads_back(index: int, name: str, program: Program) -> None:
    """Asserts that the text of a program, after any pass, means that program."""
    del index, name
    assert_structural_equal(pl.parse(program.as_python()), program)


@pytest.fixture(params=VARIANTS, ids=lambda variant: f"{variant[0].arch}-{variant[1].value}")
def launch(request: pytest.FixtureRequest, tmp_path: Path) -> Launch:
    """Runs a kernel or a program on its arguments.

    A kernel is called where the runtime is the one that calls use, and compiled where it is not.
    """
    arch, runtime = request.param
    config = RunConfig(arch=arch, execution_mode=ExecutionMode.SIM)

    def run(kernel: Any, *arguments: Any) -> None:
        if not isinstance(kernel, Program):
            if runtime is RuntimeKind.TENSORMAP_AND_RINGBUFFER:
                kernel(*arguments, config=config)
                return
            kernel = kernel.specialize(*arguments, config=config)
        if VARIANTS.index((arch, runtime)) == 0:
            lower(kernel, target_of(config.platform), reads_back, VerificationLevel.EVERY_PASS)
        compiled = ir.compile(
            kernel,
            output_dir=tmp_path / "build",
            platform=config.platform,
            runtime=runtime,
            dump_passes=False,
        )
        compiled(*arguments)

    return run


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What calls build goes where it is removed."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def normal() -> Callable[..., torch.Tensor]:
    """Normally distributed tensors, the same in every run."""
    generator = torch.Generator().manual_seed(2026)

    def make(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
        return (torch.randn(*shape, generator=generator) * scale).to(dtype)

    return make
