"""Layouts and views in annotations of tensors."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.ir.nodes import TensorLayout
from pypto.language.parser.diagnostics.exceptions import ParserTypeError

N = pl.dynamic("N")


@pytest.mark.conforms("language.13")
def test_subscripts_give_values_with_all_that_they_say():
    plain = pl.Tensor[[16, 64], pl.FP32]
    assert (plain.shape, plain.dtype, plain.layout) == ((16, 64), pl.FP32, pl.ND)
    assert plain.memref is None
    packed = pl.Tensor[[16, 64], pl.BF16, pl.NZ, pl.MemRef(64)]
    assert (packed.layout, packed.memref) == (pl.NZ, pl.MemRef(64))
    viewed = pl.Tensor[[16, 64], pl.BF16, pl.TensorView(stride=[N, 1], layout=pl.NZ)]
    assert viewed.layout is pl.NZ
    assert viewed.view.stride == (N, 1)
    assert pl.Tuple[plain, packed] == (plain, packed)


@pytest.mark.conforms("language.14", "language.24")
@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: pl.Tensor[[4], pl.FP32, pl.NZ, pl.ND], TypeError, "is not one layout"),
        (lambda: pl.Tensor[[4], pl.FP32, pl.ND, pl.TensorView()], TypeError, "is not one layout"),
        (lambda: pl.TensorView(stride=3), TypeError, "stride must be a list such as"),
        (lambda: pl.TensorView(stride=[0, 1]), TypeError, "stride 0 is neither a positive int"),
        (lambda: pl.TensorView(layout="nd"), TypeError, "layout 'nd' is not one of"),
        (lambda: pl.TensorView(stride=[1], adjacent=1), TypeError, "stride or adjacent, not both"),
        (lambda: pl.TensorView([64, 1]), TypeError, "positional argument"),
        (lambda: pl.FP8E4M3FN, AttributeError, "of 8 and 4 bits is not supported; use pl.FP16"),
        (lambda: pl.FP4, AttributeError, "of 8 and 4 bits is not supported"),
    ],
)
def test_wrong_views_say_so(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.conforms("language.15")
def test_a_layout_is_part_of_the_type(lang):
    def helper(x: pl.Tensor, w: pl.Tensor[[32, 32], pl.FP16, pl.NZ], out: pl.Out[pl.Tensor]):
        t = pl.load(w, [16, 16], [16, 16])
        pl.store(t, [0, 0], out)

    incore = lang.incore(helper)

    def entry(w: pl.Tensor[[32, 32], pl.FP16, pl.NZ], out: pl.Out[pl.Tensor]):
        incore(w, w, out)

    program = lang.parse(
        entry, w=lang.tensor(32, 32, dtype=pl.FP16), out=lang.tensor(16, 16, dtype=pl.FP16)
    )
    layouts = [param.var.type.layout for param in program.functions["helper"].params]
    assert layouts == [TensorLayout.NZ, TensorLayout.NZ, TensorLayout.ND]


def columns(w: pl.Tensor[[32, 32], pl.FP16, pl.NZ]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.load(w, [0, 8], [16, 16])


def shape(w: pl.Tensor[[32, 32], pl.FP16, pl.NZ]):
    pl.reshape(w, [1024])


def part(w: pl.Tensor[[32, 32], pl.FP16, pl.NZ]):
    v = w[0:16]  # noqa: F841


def by_columns(w: pl.Tensor[[32, 32], pl.FP16, pl.DN]):
    pass


def three(w: pl.Tensor[[2, 32, 32], pl.FP16, pl.NZ]):
    pass


def odd(w: pl.Tensor[[32, 24], pl.FP16, pl.NZ]):
    pass


def jitted(w: pl.Tensor[[32, 32], pl.FP16, pl.TensorView(stride=[64, 1])]):
    pass


@pytest.mark.conforms("language.15", "language.16")
@pytest.mark.parametrize(
    ("kernel", "line", "message"),
    [
        (columns, 2, "reads columns 8 to 24 of a tensor in layout NZ, which takes multiples of 16"),
        (shape, 1, "a tensor in layout NZ cannot have another shape"),
        (part, 1, "a part of a tensor in layout NZ is no tensor"),
        (by_columns, 0, "a tensor is not stored by columns: use pl.ND"),
        (three, 0, "a tensor in layout NZ has two constant extents"),
        (odd, 0, "a multiple of 16 rows and of 16 columns, not [32, 24]"),
        (jitted, 0, "pl.TensorView describes tensors of a pl.program"),
    ],
)
def test_what_a_layout_excludes_is_refused_at_its_line(lang, kernel, line, message):
    first = kernel.__code__.co_firstlineno
    extents = (2, 32, 32) if kernel is three else (32, 24) if kernel is odd else (32, 32)
    with pytest.raises((ParserTypeError, Exception)) as caught:
        lang.parse(kernel, w=lang.tensor(*extents, dtype=pl.FP16))
    assert message in caught.value.message
    assert caught.value.line == first + line
    if line == 0:
        assert isinstance(caught.value, TypeError)


def program_of(view):
    """A program whose kernel takes parts of rows that are as far apart as a view says."""

    @pl.program
    class Strided:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(self, x: pl.Tensor[[8, 16], pl.FP32, view],
                 out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):  # fmt: skip
            t = pl.load(x, [0, 0], [8, 16])
            out = pl.store(t, [0, 0], out)
            return out

    return Strided


@pytest.mark.conforms("language.16")
@pytest.mark.parametrize(
    ("view", "adjacent"),
    [
        (pl.TensorView(stride=[64, 1]), 1),
        (pl.TensorView(stride=[N, 1]), 1),
        (pl.TensorView(stride=[16, 1]), None),
        (pl.TensorView(stride=[64, 2]), 0),
        (pl.TensorView(valid_shape=[8, 16]), None),
        (pl.TensorView(adjacent=1), 1),
    ],
)
def test_a_view_says_what_has_gaps(view, adjacent):
    param = program_of(view).functions["copy"].params[0]
    assert param.var.type.adjacent == adjacent


@pytest.mark.conforms("language.16")
@pytest.mark.parametrize(
    ("view", "message"),
    [
        (pl.TensorView(stride=[8, 1]), "a stride of 8 reaches into the axis inside it"),
        (pl.TensorView(stride=[1]), "1 strides for 2 dimensions"),
        (pl.TensorView(valid_shape=[8, 8]), "valid_shape must be the shape"),
        (pl.TensorView(layout=pl.DN), "is not stored by columns"),
    ],
)
def test_a_view_that_means_nothing_is_refused(view, message):
    with pytest.raises(ParserTypeError) as caught:
        program_of(view)
    assert message in caught.value.message
