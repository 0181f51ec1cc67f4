"""Rotary position embedding."""

from __future__ import annotations

import pypto.language as pl

from decoder.sizes import HEAD

HALF = HEAD // 2


@pl.jit.inline
def rotate(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, out: pl.Tensor):
    """Each head of each row turned by the angles of the row's position."""
    columns = x.shape[1]
    for h in pl.parallel(0, columns, HEAD):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rotate"):
            low, high = x[:, h : h + HALF], x[:, h + HALF : h + HEAD]
            out[:, h : h + HALF] = pl.sub(pl.mul(low, cos), pl.mul(high, sin))
            out[:, h + HALF : h + HEAD] = pl.add(pl.mul(high, cos), pl.mul(low, sin))
    return out
