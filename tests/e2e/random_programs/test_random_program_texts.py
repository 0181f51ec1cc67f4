"""Random programs of the whole language, executed on the chip and by torch.

No bit may differ, and where operations round in more than one right way, what the chip computes
has to be within the error that they are documented to have.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pypto.language as pl
import pytest
import torch
from approximate import Ball, exactly
from choices import LIMIT, is_float
from hypothesis import HealthCheck, Phase, settings
from programs import RandomProgram, random_programs
from pypto import ir
from pypto.backend import BackendType, ExecutionMode
from pypto.runtime import RunConfig
from python_reference import program
from reference_numbers import DTYPES, extremes, wide

# Rounds of `EXAMPLES` programs, each from a seed of its own.
ROUNDS = int(os.environ.get("RANDOM_PROGRAM_ROUNDS", "1"))
FIRST = int(os.environ.get("RANDOM_PROGRAM_SEED", "0"))
EXAMPLES = 8

# The scalars n and m, and whether floats may be infinite or NaN, and integers the ends of their
# type, in a run.
RUNS = ((0, 1, False), (2, 0, True), (3, 5, False), (1, 4, True))
INEXACT = ("near", "far")
BACKENDS = {"a2a3sim": BackendType.Ascend910B, "a5sim": BackendType.Ascend950}


def inputs(tried: RandomProgram, seed: int, more: int, special: bool) -> list[torch.Tensor]:
    """Whole numbers, in `more` rows than necessary where any number will do."""
    generator = torch.Generator().manual_seed(seed)
    values = []
    for name, dtype, extents in tried.tensors:
        shape = [tried.rows + more if extent is None else extent for extent in extents]
        if name in INEXACT:
            values.append((torch.randn(shape, generator=generator) * 2).to(DTYPES[dtype]))
            continue
        low = -LIMIT if is_float(dtype) or name in ("total", "square", "cube", "edge") else -100
        value = torch.randint(low, 1 - low, shape, generator=generator)
        if dtype == "BOOL":
            value = value > 0
        value = value.to(DTYPES[dtype])
        if special and name != "large":
            value = scattered(value, generator)
        values.append(value)
    return values


def scattered(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """`value` with infinities and NaN, or the ends of the type, in some elements."""
    ends: tuple[float, ...] = extremes(value.dtype)
    if value.is_floating_point():
        ends = (torch.inf, -torch.inf, torch.nan)
    kinds = torch.randint(0, 60, value.shape, generator=generator)
    result = wide(value)
    for number, end in enumerate(ends):
        result = result.masked_fill(kinds == number, end)
    return result.to(value.dtype)


def compiled(tried: RandomProgram, directory: Path) -> Callable[..., None]:
    """The program, ready to be called on all its arguments."""
    directory.mkdir()
    built: dict[str, Any] = {"output_dir": directory / "build", "dump_passes": False}
    built |= {"platform": tried.platform, "runtime": tried.runtime}
    if not tried.jit:
        parsed = pl.parse(tried.text)
        assert isinstance(parsed, ir.Program)
        reads_back(parsed)
        return ir.compile(parsed, **built)
    # The source of a kernel is read from its file.
    path = directory / "kernel.py"
    path.write_text(tried.text)
    spec = importlib.util.spec_from_file_location("random_kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config = RunConfig(
        arch=BACKENDS[tried.platform],
        execution_mode=ExecutionMode.SIM,
        save_kernels_dir=str(directory / "build"),
    )
    samples = inputs(tried, 0, 0, False)
    specialized = module.main.specialize(*samples, 0, 0, config=config)
    reads_back(specialized)
    if tried.runtime == "tensormap_and_ringbuffer":
        return lambda *arguments: module.main(*arguments, config=config)
    return ir.compile(specialized, **built)


def reads_back(parsed: ir.Program) -> None:
    """The text of a program means that program."""
    ir.assert_structural_equal(pl.parse(parsed.as_python()), parsed)


def check(tried: RandomProgram, directory: Path) -> None:
    run, reference = compiled(tried, directory), program(tried.text)
    names = [name for name, *_ in tried.tensors]
    for n, m, special in RUNS:
        actual = inputs(tried, n, m, special)
        expected = [
            exactly(x) if name in INEXACT else x
            for name, x in zip(names, inputs(tried, n, m, special), strict=True)
        ]
        reference(*expected, n, m)
        run(*actual, n, m)
        for name, a, e in zip(names, actual, expected, strict=True):
            where = f"{name} on {tried.platform} by {tried.runtime} with n={n}, m={m}"
            assert agrees(a, e), f"{where}:\n{a}\n{shown(e)}\n"


def agrees(actual: torch.Tensor, expected: torch.Tensor | Ball) -> bool:
    if isinstance(expected, Ball):
        return bool(expected.holds(actual).all())
    if actual.is_floating_point():
        return bool(((actual == expected) | (actual.isnan() & expected.isnan())).all())
    return torch.equal(actual, expected)


def shown(expected: torch.Tensor | Ball) -> str:
    if isinstance(expected, Ball):
        return f"{expected.value}\nwithin {expected.error}"
    return str(expected)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    count = 0

    @hypothesis.seed(seed)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(random_programs)
    def run(tried: RandomProgram) -> None:
        nonlocal count
        count += 1
        try:
            check(tried, tmp_path / str(count))
        except BaseException as error:
            error.add_note(f"{tried.text}\n{tried}")
            raise

    run()
