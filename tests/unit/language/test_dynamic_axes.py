"""Axes that are dynamic because of a kernel's own statements, or of what it calls."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.ir.nodes import DynDim
from pypto.language.parser.diagnostics.exceptions import ParserTypeError
from pypto.language.parser.dynamic_axes import dynamic_axes

M = pl.dynamic("M")
N = pl.dynamic("N")


def by_annotation(x: pl.Tensor[[M, 16], pl.FP32], y: pl.Out[pl.Tensor[[M, 16], pl.FP32]]):
    for r in pl.range(0, M, 16):
        pl.store(pl.load(x, [r, 0], [16, 16]), [r, 0], y)


def by_statement(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32):
    x.bind_dynamic(1, N)
    pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)


def entry_of(lang, **helpers):
    """An entry that calls a helper by position, a helper that calls the other, by keyword."""
    annotated, bound = lang.incore(by_annotation), lang.incore(by_statement)

    def passes(t: pl.Tensor, u: pl.Tensor, n: pl.INT32):
        bound(y=u, n=n, x=t)

    inner = lang.inline(passes)

    def entry(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor], d: pl.Tensor, e: pl.Tensor,
              n: pl.INT32):  # fmt: skip
        c = annotated(a, c)
        annotated(b, d)
        inner(e, b, n)
        return c

    return entry


@pytest.mark.conforms("language.29")
def test_what_a_helper_makes_dynamic_is_dynamic_in_its_caller(lang):
    found = dynamic_axes(lang.source_of(entry_of(lang)))
    # a and c are one call's M, b and d another's.
    assert found == {
        "a": {0: "M$0"}, "c": {0: "M$0"}, "b": {0: "M$1"}, "d": {0: "M$1"}, "e": {1: "N$2"}
    }  # fmt: skip


@pytest.mark.conforms("language.29")
def test_the_program_has_the_extents_of_its_helpers(lang):
    types = {name: lang.tensor(32, 16) for name in "abcde"}
    program = lang.parse(entry_of(lang), **types, n=pl.INT32)
    shapes = {p.var.name: p.var.type.shape for p in program.functions["entry"].params[:5]}
    assert shapes == {
        "a": (DynDim("M$0"), 16),
        "b": (DynDim("M$1"), 16),
        "c": (DynDim("M$0"), 16),
        "d": (DynDim("M$1"), 16),
        "e": (32, DynDim("N$2")),
    }


@pytest.mark.conforms("language.29")
def test_an_annotation_or_another_tensor_ends_the_cascade(lang):
    annotated = lang.incore(by_annotation)

    def entry(a: pl.Tensor[[32, 16], pl.FP32], b: pl.Tensor, c: pl.Tensor, d: pl.Tensor):
        b = d
        part = c[0:16]
        annotated(a, part)
        annotated(b, pl.create_tensor([16, 16], dtype=pl.FP32))

    assert dynamic_axes(lang.source_of(entry)) == {}


@pytest.mark.conforms("language.28")
def test_what_a_kernel_binds_itself_wins(lang):
    annotated = lang.incore(by_annotation)

    def entry(a: pl.Tensor, b: pl.Tensor):
        a.bind_dynamic(0, N)
        annotated(a, b)

    assert dynamic_axes(lang.source_of(entry)) == {"a": {0: "N"}, "b": {0: "M$0"}}


@pytest.mark.conforms("language.58")
def test_functions_that_call_themselves_end(lang):
    def loops(x: pl.Tensor, y: pl.Tensor):
        again(x, y)  # noqa: F821

    source = lang.source_of(lang.inline(loops))
    source.namespace["again"] = source  # type: ignore[index]
    assert dynamic_axes(source) == {}


def test_a_helper_whose_annotations_mean_nothing_is_left_to_the_parser(lang):
    def wrong(x: pl.Tensor[4, pl.FP32]):
        pass

    helper = lang.incore(wrong)

    def entry(a: pl.Tensor):
        helper(a)

    source = lang.source_of(entry)
    assert dynamic_axes(source) == {}
    with pytest.raises(ParserTypeError, match="the shape must be a list"):
        lang.parse(entry, a=lang.tensor(16, 16))
