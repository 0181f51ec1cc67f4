"""Texts that are parsed are in linecache while it matters, and no longer."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path

import pypto.language as pl
import pytest
from pypto.language.parser.diagnostics.exceptions import ParserError

GOOD = """
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def copied(x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)
"""
BAD = GOOD.replace("pl.load(x", "pl.load(missing")
BROKEN = GOOD + "\n1 / 0\n"


def test_a_process_that_parses_text_after_text_keeps_none_of_them(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(GOOD)
    before = set(linecache.cache)
    for number in range(40):
        pl.parse(GOOD)
        pl.parse(GOOD, f"named_{number}.py")
        pl.loads(file)
    assert set(linecache.cache) == before


def test_texts_that_fail_are_kept_for_their_tracebacks_but_not_all() -> None:
    with pytest.raises(ZeroDivisionError) as error:
        pl.parse(BROKEN)
    assert "1 / 0" in "".join(traceback.format_exception(error.value))
    before = len(linecache.cache)
    for number in range(200):
        with pytest.raises(ZeroDivisionError):
            pl.parse(BROKEN, f"broken_{number}.py")
    assert len(linecache.cache) <= before + 32
    with pytest.raises(ParserError, match=r"named\.py:6:.*missing"):
        pl.parse(BAD, "named.py")


def test_a_text_that_was_there_under_the_name_is_there_again(monkeypatch) -> None:
    """Such as a notebook's cell, which nothing could read again."""
    cell = (3, None, ["x\n"], "<cell 1>")
    monkeypatch.setitem(linecache.cache, "<cell 1>", cell)
    pl.parse(GOOD, "<cell 1>")
    assert linecache.cache["<cell 1>"] is cell
