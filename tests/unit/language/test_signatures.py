"""What a signature says, whether annotations are objects or strings."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.ir.dtypes import BF16, FP32, INT32
from pypto.ir.nodes import Direction, DynDim, ScalarType, TensorType
from pypto.language.parser.diagnostics.exceptions import ParserTypeError
from pypto.language.parser.dynamic_axes import dynamic_axes
from pypto.language.parser.signature import read_signature
from pypto.language.source import ParamCategory

M = pl.dynamic("M")
ALIAS = pl.Tensor[[M, 64], pl.BF16]


# This file's annotations are strings for Python; the parser reads the source.
def every_kind(
    a: pl.Tensor,
    b: pl.Tensor[[M, 64], pl.FP32],
    c: pl.Out[pl.Tensor],
    d: "pl.InOut[pl.Tensor[[16], pl.FP32]]",  # noqa: UP037
    e: pl.Scalar[pl.INT32],
    f: pl.FP32 = 0.5,
    g: pl.constexpr = (1, "x"),
    h=None,
    *,
    i: ALIAS,
):
    pass


@pytest.mark.conforms("language.18", "language.19", "language.37")
def test_every_kind_of_parameter(lang):
    params = {p.name: p for p in read_signature(lang.source_of(every_kind))}
    assert list(params) == list("abcdefghi")
    kinds = {n: (p.direction, p.category, p.type) for n, p in params.items()}
    tensor, scalar = ParamCategory.TENSOR, ParamCategory.SCALAR
    assert kinds == {
        "a": (Direction.In, tensor, None),
        "b": (Direction.In, tensor, TensorType((DynDim("M"), 64), FP32)),
        "c": (Direction.Out, tensor, None),
        "d": (Direction.InOut, tensor, TensorType((16,), FP32)),
        "e": (Direction.In, scalar, ScalarType(INT32)),
        "f": (Direction.In, scalar, ScalarType(FP32)),
        "g": (Direction.In, ParamCategory.CONSTEXPR, None),
        "h": (Direction.In, ParamCategory.UNANNOTATED, None),
        "i": (Direction.In, tensor, TensorType((DynDim("M"), 64), BF16)),
    }
    defaults = {n: p.default for n, p in params.items() if p.has_default}
    assert defaults == {"f": 0.5, "g": (1, "x"), "h": None}


def binds(x: pl.Tensor, y: pl.Tensor):
    x.bind_dynamic(0, M)
    y.bind_dynamic(1, M)


@pytest.mark.conforms("language.28")
def test_bind_dynamic_makes_extents_dynamic(lang):
    assert dynamic_axes(lang.source_of(binds)) == {"x": {0: "M"}, "y": {1: "M"}}
    program = lang.parse(binds, x=lang.tensor(16, 64), y=lang.tensor(8, 16))
    types = [p.var.type for p in program.functions["binds"].params]
    assert types == [TensorType((DynDim("M"), 64), FP32), TensorType((8, DynDim("M")), FP32)]


@pytest.mark.conforms("language.28")
def test_bind_dynamic_takes_an_axis_and_a_dynamic(lang):
    def wrong(x: pl.Tensor):
        x.bind_dynamic(0, 16)

    with pytest.raises(ParserTypeError, match=r"bind_dynamic takes a pl\.dynamic, not 16"):
        lang.parse(wrong, x=lang.tensor(16, 64))


def test_defaults_fill_in_for_arguments(lang):
    def kernel(x: pl.Tensor[[16, 16], pl.FP32], n: pl.INT32, k: pl.constexpr = 4):
        pl.static_assert(k == 4)

    program = lang.parse(kernel)
    assert [p.name_hint for p in program.functions["kernel"].params] == ["x", "n"]


@pytest.mark.conforms("language.41")
def test_static_print_prints_once_and_shows_types(lang, capsys):
    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            scale = 1
            for _ in pl.range(4):
                scale = scale * 0.5
                t = pl.load(x, [0, 0], [16, 16])
                pl.static_print("tile:", t, 3, f"{x.shape[0]} rows")
                y = pl.store(pl.mul(t, scale), [0, 0], y)

    lang.parse(kernel, x=lang.tensor(16, 64), y=lang.tensor(16, 64))
    assert capsys.readouterr().out == "tile: a tile fp32[16, 16] in Vec 3 16 rows\n"
