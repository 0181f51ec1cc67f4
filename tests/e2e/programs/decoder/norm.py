"""RMS norm of a batch of rows."""

from __future__ import annotations

import pypto.language as pl

from decoder.sizes import EPS


@pl.jit.inline
def rms_norm(x: pl.Tensor, gamma: pl.Tensor, out: pl.Tensor):
    """Rows of `x` divided by their root mean square, times `gamma`, in the type of `out`."""
    hidden = x.shape[1]
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="rms_norm"):
        mean = pl.mul(pl.row_sum(pl.mul(x, x)), 1.0 / hidden)
        scaled = pl.row_expand_mul(x, pl.rsqrt(pl.add(mean, EPS)))
        out[:] = pl.cast(pl.col_expand_mul(scaled, gamma), target_type=out.dtype)
    return out
