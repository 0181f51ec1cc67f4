"""Softmax, layer norm and RMS norm: rows are reduced, and the result spread over them again."""

from __future__ import annotations

import pypto.language as pl
import torch

ROWS, COLS, BAND = 48, 128, 16
EPS = 1e-5


@pl.jit
def softmax(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    for row in pl.range(0, ROWS, BAND):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="softmax_band"):
            band = pl.load(x, [row, 0], [BAND, COLS])
            scratch = pl.create_tile([BAND, COLS], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            weights = pl.exp(pl.row_expand_sub(band, pl.row_max(band, scratch)))
            total = pl.row_sum(weights, scratch)
            out = pl.store(pl.row_expand_div(weights, total), [row, 0], out)
    return out


@pl.jit.incore
def rms_rows(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    gamma: pl.Tensor[[1, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    row: pl.Scalar[pl.INDEX],
):
    band = pl.load(x, [row, 0], [BAND, COLS])
    scratch = pl.create_tile([BAND, COLS], dtype=pl.FP32, target_memory=pl.Mem.Vec)
    mean = pl.mul(pl.row_sum(pl.mul(band, band), scratch), 1.0 / COLS)
    scaled = pl.row_expand_mul(band, pl.rsqrt(pl.add(mean, EPS)))
    weight = pl.load(gamma, [0, 0], [1, COLS])
    return pl.store(pl.col_expand_mul(scaled, weight), [row, 0], out)


@pl.jit
def rms_norm(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    gamma: pl.Tensor[[1, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    for row in pl.range(0, ROWS, BAND):
        out = rms_rows(x, gamma, out, row)
    return out


M = pl.dynamic("M")


@pl.jit
def layer_norm(
    x: pl.Tensor[[M, COLS], pl.FP32],
    gamma: pl.Tensor[[1, COLS], pl.FP32],
    beta: pl.Tensor[[1, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[M, COLS], pl.FP32]],
    eps: pl.Scalar[pl.FP32],
):
    """Any number of rows: the last band may be a part of one."""
    rows = pl.tensor.dim(x, 0)
    for row in pl.range(0, rows, BAND):
        valid = pl.min(rows - row, BAND)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="layer_norm_band"):
            band = pl.load(x, [row, 0], [BAND, COLS], valid_shape=[valid, COLS])
            scratch = pl.create_tile([BAND, COLS], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            mean = pl.mul(pl.row_sum(band, scratch), 1.0 / COLS)
            centred = pl.row_expand_sub(band, mean)
            variance = pl.mul(pl.row_sum(pl.mul(centred, centred), scratch), 1.0 / COLS)
            spread = pl.sqrt(pl.add(variance, eps))
            scaled = pl.row_expand_div(centred, spread)
            weighted = pl.col_expand_mul(scaled, pl.load(gamma, [0, 0], [1, COLS]))
            shifted = pl.col_expand_add(weighted, pl.load(beta, [0, 0], [1, COLS]))
            out = pl.store(shifted, [row, 0], out)
    return out


def test_softmax(launch, normal):
    x, out = normal(ROWS, COLS, scale=4.0), torch.empty(ROWS, COLS)
    launch(softmax, x, out)
    torch.testing.assert_close(out, torch.softmax(x, dim=1))


def test_rms_norm(launch, normal):
    x, gamma, out = normal(ROWS, COLS), normal(1, COLS), torch.empty(ROWS, COLS)
    launch(rms_norm, x, gamma, out)
    expected = x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + EPS) * gamma
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


def test_layer_norm_of_any_number_of_rows(launch, normal):
    gamma, beta = normal(1, COLS), normal(1, COLS)
    for rows in (40, 7):
        x, out = normal(rows, COLS), torch.empty(rows, COLS)
        launch(layer_norm, x, gamma, beta, out, EPS)
        expected = torch.nn.functional.layer_norm(x, (COLS,), gamma[0], beta[0], EPS)
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
