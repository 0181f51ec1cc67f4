"""Values that an orchestration function meets only at run time, at their limits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.ir.dtypes import FP32, INT64
from pypto.runtime import KernelFault

Tensor = torch.Tensor

STAGED = """
def staged(x: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
    size = 8 // n * n - 8 + n
    t = pl.create_tensor([size, 4])
    for i in pl.range(0, size, 9 - n):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.store(pl.load(x, [i, 0], [1, 4]), [i, 0], t)
    stride = 8 - n
    for i in pl.range(0, size, stride):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(t, [i, 0], [1, 4]), [i, 0], out)
    return out
"""


@pytest.fixture(scope="module")
def staged(compile_text: Any) -> Any:
    types = {"x": ((8, 4), FP32), "n": INT64, "out": ((8, 4), FP32)}
    return compile_text(STAGED, types)


@pytest.mark.parametrize(
    ("n", "line", "message"),
    [
        (0, 2, "integer division by zero"),
        (-1, 3, "an extent of a new tensor is outside 0 to 2147483647"),
        (2**40, 3, "an extent of a new tensor is outside 0 to 2147483647"),
        (2**31 + 8, 3, "an extent of a new tensor is outside 0 to 2147483647"),
        (2**31, 3, "larger than the run's heap"),
        (8, 8, "the step of a range must be positive"),
    ],
)
def test_a_fault_of_the_orchestration_is_at_the_users_line(
    staged: Any, n: int, line: int, message: str
) -> None:
    with pytest.raises(KernelFault, match=message) as caught:
        staged(torch.zeros(8, 4), n)
    assert (caught.value.unit, caught.value.line) == ("tests:staged", line)
    assert caught.value.column > 0


@pytest.mark.conforms("language.82")
def test_a_step_may_reach_past_the_last_integer(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def stride(x: pl.Tensor, lo: pl.Scalar[pl.INT64], hi: pl.Scalar[pl.INT64],
                   step: pl.Scalar[pl.INT64], out: pl.InOut[pl.Tensor]):
            for i in pl.range(lo, hi, step):
                with pl.at(level=pl.Level.CORE_GROUP):
                    out[:] = pl.add(out, x)
            return out
        """,
        {"x": ((1, 4), FP32), "lo": INT64, "hi": INT64, "step": INT64, "out": ((1, 4), FP32)},
    )
    last = 2**63 - 1
    for bounds in (
        (0, 5, 2),
        (5, 9, last),
        (-(2**63), last, 2**62),
        (last - 2, last, 1),
        (3, 3, 1),
    ):
        out = torch.zeros(1, 4)
        compiled(torch.ones(1, 4), *bounds, out)
        assert torch.equal(out, torch.full((1, 4), float(len(range(*bounds))))), bounds


def test_a_new_tensor_may_be_empty(compile_text: Any) -> None:
    compiled = compile_text(
        """
        def passed(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            rows = x.shape[0]
            t = pl.create_tensor([rows, 4])
            for i in pl.range(rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.store(pl.load(x, [i, 0], [1, 4]), [i, 0], t)
            for i in pl.range(rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    out = pl.store(pl.load(t, [i, 0], [1, 4]), [i, 0], out)
            return out
        """,
        {"x": (("N", 4), FP32), "out": (("N", 4), FP32)},
    )
    for rows in (0, 3, 0):
        generator = torch.Generator().manual_seed(rows)
        x, out = torch.randn(rows, 4, generator=generator), torch.zeros(rows, 4)
        compiled(x, out)
        assert torch.equal(out, x)
