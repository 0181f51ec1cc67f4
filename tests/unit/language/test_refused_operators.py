"""Operators that tiles and tensors do not have, shifts by too much, statements that are too deep.

``@@`` marks the place that the error names; it is taken out before the kernel is compiled.
"""

from __future__ import annotations

import linecache
from typing import Any

import pypto.language as pl
import pytest
from pypto.ir.dtypes import INT32
from pypto.language.parser.diagnostics import exceptions as errors

HEAD = """\
def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.INT32):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
"""
LINE = 4

# An operator and what to write in its place, over a tile or a tensor z.
OPERATORS = {
    "@@z ** 2": "'**' does not work on tiles and tensors; write pl.mul(x, x) for a square",
    "@@2 ** z": "'**' does not work on tiles and tensors; write pl.mul(x, x) for a square",
    "@@z // 2": "'//' does not work on tiles and tensors; write pl.div(x, y)",
    "@@z % 2": "'%' does not work on tiles and tensors; write pl.fmod(x, y)",
    "@@z & z": "'&' does not work on tiles and tensors; write pl.and_(x, y)",
    "@@z | 1": "'|' does not work on tiles and tensors; write pl.or_(x, y)",
    "@@z ^ 1": "'^' does not work on tiles and tensors; write pl.xor(x, y)",
    "@@z << 1": "'<<' does not work on tiles and tensors; write pl.shl(x, y)",
    "@@z >> n": "'>>' does not work on tiles and tensors; write pl.shr(x, y)",
    "@@~z": "'~' does not work on tiles and tensors; write pl.not_(x)",
    "@@z == 0": "'==' does not work on tiles and tensors; write pl.cmp(x, y, cmp_type=0)",
    "@@z != z": "'!=' does not work on tiles and tensors; write pl.cmp(x, y, cmp_type=1)",
    "@@z < n": "'<' does not work on tiles and tensors; write pl.cmp(x, y, cmp_type=2)",
    "@@1 <= z": "'<=' does not work on tiles and tensors; write pl.cmp(x, y, cmp_type=3)",
    "@@z > 0": "'>' does not work on tiles and tensors; write pl.cmp(x, y, cmp_type=4)",
    "@@z >= 0": "'>=' does not work on tiles and tensors; write pl.cmp(x, y, cmp_type=5)",
    "n > 0 and @@z": "'and' does not work on tiles and tensors; write pl.and_(x, y)",
    "n > 0 or @@z": "'or' does not work on tiles and tensors; write pl.or_(x, y)",
    "@@not z": "'not' does not work on tiles and tensors; write pl.cmp(x, 0)",
}

OTHERS = {
    "u = @@n << -1": "'<<': cannot shift by -1, as int32 has 32 bits; shift by 0 to 31",
    "u = @@n >> 40": "'>>': cannot shift by 40, as int32 has 32 bits; shift by 0 to 31",
    "u = @@pl.cast(n, pl.INT8) << 8": "'<<': cannot shift by 8, as int8 has 8 bits",
    "u = @@pl.shl(t, 32)": "pl.shl: cannot shift by 32, as int32 has 32 bits; shift by 0 to 31",
    "u = @@pl.shrs(x, -1)": "pl.shr: cannot shift by -1, as int32 has 32 bits",
    "if @@t:\n            pass": "not a tile int32[16, 64] in Vec; read one element, as in x[0, 0]",
}


def _kernel(statement: str) -> tuple[Any, int]:
    column = statement.splitlines()[0].index("@@") + 1 + 8
    text = HEAD + "        " + statement.replace("@@", "") + "\n"
    name = f"<operators {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"pl": pl}
    exec(compile(text, name, "exec"), namespace)
    return namespace["kernel"], column


def _refused(lang: Any, statement: str) -> errors.ParserError:
    kernel, column = _kernel(statement)
    tensor = lang.tensor(64, 64, dtype=INT32)
    with pytest.raises(errors.ParserError) as caught:
        lang.parse(kernel, x=tensor, y=tensor, n=INT32)
    assert (caught.value.line, caught.value.column) == (LINE, column)
    return caught.value


@pytest.mark.parametrize("operand", ["t", "x"])
@pytest.mark.parametrize("expression", OPERATORS)
def test_the_function_for_a_missing_operator_is_named(
    lang: Any, expression: str, operand: str
) -> None:
    error = _refused(lang, "u = " + expression.replace("z", operand))
    assert isinstance(error, errors.UnsupportedFeatureError)
    assert error.message.startswith(OPERATORS[expression])


@pytest.mark.parametrize("statement", OTHERS)
def test_what_cannot_be_meant_is_refused(lang: Any, statement: str) -> None:
    assert OTHERS[statement] in _refused(lang, statement).message


@pytest.mark.parametrize("count", ["pl.const(40, pl.INT32)", "n - n - 1", "31", "0"])
def test_shifts_by_what_is_no_plain_number_are_the_run_s(lang: Any, count: str) -> None:
    text, _ = _kernel(f"@@y[0, 0] = n << ({count})")
    tensor = lang.tensor(64, 64, dtype=INT32)
    lang.parse(text, x=tensor, y=tensor, n=INT32)


def test_a_long_chain_is_not_a_deep_one(lang: Any) -> None:
    kernel, _ = _kernel(f"@@y[:] = {' + '.join(['x'] * 900)}")
    tensor = lang.tensor(64, 64, dtype=INT32)
    program = lang.parse(kernel, x=tensor, y=tensor, n=INT32)
    assert program.as_python().count("pl.tensor.add(") == 899


def test_what_is_too_deep_is_told_with_its_line(lang: Any) -> None:
    error = _refused(lang, f"@@u = {'-' * 900}x")
    assert isinstance(error, errors.UnsupportedFeatureError)
    assert "this statement is nested too deeply; bind parts of it to names" in error.message
