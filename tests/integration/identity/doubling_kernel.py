"""The source of a module with one small kernel, for processes that make requests."""

from __future__ import annotations

KERNELS = """
import pypto.language as pl


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="twice"):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 2.0), [0, 0], out)
    return out
"""
