"""Where a kernel is too large for what comes after the parser."""

from __future__ import annotations

import linecache
from typing import Any

import pypto.language as pl
import pytest
from pypto.ir.dtypes import INT32, UINT8
from pypto.language.parser.diagnostics import exceptions as errors
from pypto.language.parser.frame import MAX_NESTING


def _kernel(text: str) -> Any:
    name = f"<limits {len(text)} {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"pl": pl}
    exec(compile(text, name, "exec"), namespace)
    return namespace["kernel"]


def _chain(conditions: list[str]) -> str:
    lines = ["def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32):"]
    for index, condition in enumerate(conditions):
        lines += [f"    {'elif' if index else 'if'} {condition}:", f"        m = {index}"]
    lines += ["    else:", "        m = -1"]
    lines += ["    with pl.at(level=pl.Level.CORE_GROUP):", "        y[:] = pl.add(x, m)"]
    return "\n".join(lines) + "\n"


def _parse(lang: Any, conditions: list[str]) -> None:
    types = {"x": lang.tensor(2, 4, dtype=INT32), "y": lang.tensor(2, 4, dtype=INT32), "n": INT32}
    lang.parse(_kernel(_chain(conditions)), **types)


def test_branches_are_nested_up_to_a_limit(lang: Any) -> None:
    conditions = [f"n == {index}" for index in range(MAX_NESTING + 1)]
    _parse(lang, conditions[:-1])
    with pytest.raises(errors.UnsupportedFeatureError, match="nested deeper than 60") as caught:
        _parse(lang, conditions)
    assert caught.value.line == 2 * MAX_NESTING + 2


def test_branches_that_are_decided_do_not_nest(lang: Any) -> None:
    _parse(lang, [f"{index} == 150" for index in range(200)])


@pytest.mark.parametrize("rank", [0, 6])
def test_a_tensor_has_one_to_five_dimensions(lang: Any, rank: int) -> None:
    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.neg(x)

    for ranks in ((rank, 1), (1, rank)):
        x, y = (lang.tensor(*[1] * r) for r in ranks)
        name = "x" if ranks[0] == rank else "y"
        with pytest.raises(errors.ParserTypeError, match=f"'{name}' must have 1 to 5 dimensions"):
            lang.parse(kernel, x=x, y=y)


def test_only_signed_elements_have_a_sign(lang: Any) -> None:
    def negative(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.neg(x)

    def positive(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.relu(x)

    def absolute(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.abs(x)

    for kernel in (negative, positive, absolute):
        tensor = lang.tensor(4, 8, dtype=UINT8)
        with pytest.raises(errors.InvalidOperationError, match=r"sign, but got a tensor uint8"):
            lang.parse(kernel, x=tensor, y=tensor)
