"""Tensors that the orchestration makes: what they hold at first, and whom they order."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pypto.backend import RuntimeKind
from pypto.ir.dtypes import BF16, FP16, FP32, INT8, INT32, INT64

runtimes = pytest.mark.parametrize("runtime", RuntimeKind, ids=str)


@pytest.mark.conforms("language.135")
@pytest.mark.parametrize(
    ("dtype", "value"),
    [(FP32, 0.1), (FP16, -2.5), (BF16, 3), (INT32, -7), (INT8, 5)],
)
def test_a_new_tensor_holds_its_first_value(compile_text: Any, dtype: Any, value: float) -> None:
    compiled = compile_text(
        f"""
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            t = pl.create_tensor([16, 64], pl.{dtype.constant_name}, init_value={value})
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.store(pl.load(x, [0, 0], [8, 64]), [0, 0], t)
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(t, [0, 0], [16, 64]), [0, 0], out)
            return out
        """,
        {"x": ((8, 64), dtype), "out": ((16, 64), dtype)},
    )
    element = getattr(torch, dtype.torch_name)
    x, out = torch.ones(8, 64, dtype=element), torch.zeros(16, 64, dtype=element)
    compiled(x, out)
    assert torch.equal(out[:8], x)
    assert torch.equal(out[8:], torch.full((8, 64), value, dtype=element))


@pytest.mark.conforms("language.135")
@runtimes
def test_a_tensor_of_run_time_size_is_filled_in_every_iteration(
    compile_text: Any, runtime: RuntimeKind
) -> None:
    compiled = compile_text(
        """
        def entry(x: pl.Tensor, n: pl.Scalar[pl.INT64], out: pl.InOut[pl.Tensor]):
            for i in pl.range(4):
                t = pl.create_tensor([n, 64], pl.FP32, init_value=1)
                for k in pl.spmd(n):
                    t = pl.store(pl.load(x, [k, 0], [1, 64]), [k, 0], t,
                                 atomic=pl.AtomicType.Add)
                with pl.at(level=pl.Level.CORE_GROUP):
                    out = pl.store(pl.load(t, [n - 1, 0], [1, 64]), [i, 0], out)
            return out
        """,
        {"x": ((8, 64), FP32), "n": INT64, "out": ((4, 64), FP32)},
        runtime=runtime,
    )
    x, out = torch.randint(-9, 9, (8, 64)).float(), torch.zeros(4, 64)
    compiled(x, 8, out)
    assert torch.equal(out, (x[7:] + 1).expand(4, 64))


@pytest.mark.conforms("language.135")
@runtimes
def test_memory_with_manual_dep_orders_nothing_and_deps_do(
    compile_text: Any, runtime: RuntimeKind
) -> None:
    compiled = compile_text(
        """
        def entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            t = pl.create_tensor([16, 64], pl.INT32, manual_dep=True)
            with pl.at(level=pl.Level.CORE_GROUP) as first:
                tile = pl.load(x, [0, 0], [16, 64])
                for i in pl.range(3000):
                    tile = pl.add(tile, 1)
                t = pl.store(tile, [0, 0], t)
            with pl.at(level=pl.Level.CORE_GROUP, deps=[first]):
                out = pl.store(pl.load(t, [0, 0], [16, 64]), [0, 0], out)
            return out
        """,
        {"x": ((16, 64), INT32), "out": ((16, 64), INT32)},
        runtime=runtime,
    )
    x = torch.randint(-9, 9, (16, 64), dtype=torch.int32)
    for _ in range(3):
        out = torch.zeros_like(x)
        compiled(x, out)
        assert torch.equal(out, x + 3000)
