"""Products with weights, a block of columns at a time."""

from __future__ import annotations

import pypto.language as pl

from decoder.sizes import BLOCK


@pl.jit.inline
def project(x: pl.Tensor, weight: pl.Tensor, out: pl.Tensor):
    """x @ weight"""
    columns = weight.shape[1]
    for col in pl.parallel(0, columns, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="project"):
            out[:, col : col + BLOCK] = pl.matmul(
                x, weight[:, col : col + BLOCK], out_dtype=pl.FP32
            )
    return out


@pl.jit.inline
def project_and_add(x: pl.Tensor, weight: pl.Tensor, residual: pl.Tensor, out: pl.Tensor):
    """residual + x @ weight"""
    columns = weight.shape[1]
    for col in pl.parallel(0, columns, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="project_and_add"):
            product = pl.matmul(x, weight[:, col : col + BLOCK], out_dtype=pl.FP32)
            out[:, col : col + BLOCK] = pl.add(product, residual[:, col : col + BLOCK])
    return out
