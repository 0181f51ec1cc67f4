"""What fills the rest of a tile may be named or written as the number that it stands for."""

from __future__ import annotations

import math

import pypto.language as pl
import pytest
from pypto.ir.nodes import Op


@pytest.mark.conforms("language.159")
@pytest.mark.parametrize(
    ("number", "pad"),
    [(0, pl.PadValue.zero), (math.inf, pl.PadValue.max), (-math.inf, pl.PadValue.min)],
)
def test_numbers_stand_for_paddings(lang, number, pad):
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor], value: pl.constexpr):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, 16], valid_shape=[9, 9])
            filled = pl.fillpad(t, pad_value=value)
            part = pl.slice(t, [8, 16], [4, 0], pad_value=value)
            out = pl.store(pl.fillpad_expand(part, [16, 16], value), [0, 0], out)
            out = pl.store(filled, [0, 0], out)

    def paddings(value):
        program = lang.parse(kernel, x=lang.tensor(16, 16), out=lang.tensor(16, 16), value=value)
        body = program.functions["kernel"].body[0].body
        return [s.attrs["pad"] for s in body if isinstance(s, Op) and "pad" in s.attrs]

    assert paddings(number) == paddings(pad) == [pad.value] * 3
