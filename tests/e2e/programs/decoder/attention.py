"""Attention of one new token a sequence over the tokens that its cache has."""

from __future__ import annotations

import pypto.language as pl

from decoder.sizes import BATCH, GROUP, HEAD, HEADS, KV_HEADS, MAX_TOKENS

SCALE = HEAD**-0.5


@pl.jit.inline
def attend(
    query: pl.Tensor,
    keys: pl.Tensor,
    values: pl.Tensor,
    positions: pl.Tensor,
    out: pl.Tensor,
):
    """`query` and `out` have a row for each head of each sequence."""
    for b in pl.parallel(BATCH):
        length = pl.tensor.read(positions, [b]) + 1
        first = b * MAX_TOKENS
        for g in pl.range(KV_HEADS):
            row = b * HEADS + g * GROUP
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="attend"):
                q = pl.cast(query[row : row + GROUP, :], target_type=pl.BF16)
                k = keys[first : first + MAX_TOKENS, g * HEAD : g * HEAD + HEAD]
                v = values[first : first + MAX_TOKENS, g * HEAD : g * HEAD + HEAD]
                scores = pl.mul(pl.matmul(q, k, b_trans=True, out_dtype=pl.FP32), SCALE)
                # What lies beyond the last token counts for nothing.
                known = pl.set_validshape(scores, GROUP, length)
                padded = pl.fillpad(known, pad_value=pl.PadValue.min)
                weights = pl.exp(pl.row_expand_sub(padded, pl.row_max(padded)))
                shares = pl.row_expand_div(weights, pl.row_sum(weights))
                rounded = pl.cast(shares, target_type=pl.BF16)
                out[row : row + GROUP, :] = pl.cast(
                    pl.matmul(rounded, v, out_dtype=pl.FP32), target_type=pl.BF16
                )
    return out
