"""The cache of keys and values: MAX_TOKENS rows for each sequence, one after another."""

from __future__ import annotations

import pypto.language as pl

from decoder.sizes import BATCH, KV_HIDDEN, MAX_TOKENS


@pl.jit.inline
def append(rows: pl.Tensor, positions: pl.Tensor, cache: pl.Tensor):
    """Put the new row of each sequence where its last token is."""
    for b in pl.parallel(BATCH):
        place = b * MAX_TOKENS + pl.tensor.read(positions, [b])
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="append"):
            row = pl.load(rows, [b, 0], [1, KV_HIDDEN])
            cache = pl.store(pl.cast(row, target_type=pl.BF16), [place, 0], cache)
    return cache
