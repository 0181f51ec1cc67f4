"""Errors of the compiler say the user's file and line."""

from __future__ import annotations

import pytest
from pypto.ir.errors import CompileError
from pypto.ir.nodes import Span
from pypto.ir.passes.plan_memory import CapacityError
from pypto.runtime.errors import located

SOURCES = {"m:k": ("/home/u/k.py", 10)}


def test_a_place_and_what_has_to_do_with_it_are_lines_of_the_users_file() -> None:
    near = ((Span("m:k", 2, 4), "tile a"), (Span("other:f", 2, 4), "tile b"))
    with pytest.raises(CapacityError) as caught, located(SOURCES):
        raise CapacityError("too much", Span("m:k", 5, 8), near)
    assert str(caught.value).splitlines() == [
        "/home/u/k.py:14:9: too much",
        "    /home/u/k.py:11:5: tile a",
        "    tile b",
    ]


def test_an_error_of_an_unknown_unit_stays_as_it_is() -> None:
    error = CompileError("wrong", Span("other:f", 1, 0))
    with pytest.raises(CompileError) as caught, located(SOURCES):
        raise error
    assert caught.value is error
