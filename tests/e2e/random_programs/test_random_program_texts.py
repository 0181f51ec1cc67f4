"""Random programs of the whole language, executed on the chip and by torch: no bit may differ."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pypto.language as pl
import pytest
import torch
from expressions import LIMIT, is_float
from hypothesis import HealthCheck, Phase, settings
from programs import RandomProgram, random_programs
from pypto import ir
from python_reference import DTYPES, program

# Rounds of `EXAMPLES` programs, each from a seed of its own.
ROUNDS = int(os.environ.get("RANDOM_PROGRAM_ROUNDS", "1"))
FIRST = int(os.environ.get("RANDOM_PROGRAM_SEED", "0"))
EXAMPLES = 8


def inputs(tried: RandomProgram, seed: int, more: int) -> list[torch.Tensor]:
    """Whole numbers, in `more` rows than necessary where any number will do."""
    generator = torch.Generator().manual_seed(seed)
    values = []
    for name, dtype, (height, width) in tried.tensors:
        rows = tried.rows + more if height is None else height
        low = -LIMIT if is_float(dtype) or name == "total" else -100
        value = torch.randint(low, 1 - low, (rows, width), generator=generator)
        values.append(value.to(DTYPES[dtype]))
    return values


def check(tried: RandomProgram, directory: Path) -> None:
    compiled = ir.compile(
        pl.parse(tried.text), platform=tried.platform, output_dir=directory, dump_passes=False
    )
    reference = program(tried.text)
    for n, m in ((0, 1), (2, 0), (3, 5)):
        expected, actual = inputs(tried, n, m), inputs(tried, n, m)
        reference(*expected, n, m)
        compiled(*actual, n, m)
        for (name, *_), a, e in zip(tried.tensors, actual, expected, strict=True):
            assert torch.equal(a, e), f"{name} on {tried.platform} with n={n}, m={m}:\n{a}\n{e}\n"


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
        directory = tmp_path / str(count)
        try:
            check(tried, directory)
        except BaseException as error:
            error.add_note(tried.text)
            raise

    run()
