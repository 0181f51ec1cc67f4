"""Which names are read after a statement."""

from __future__ import annotations

import ast
import textwrap

import pytest
from pypto.language.parser.liveness import bound_names, live_after


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("@x = 1\ny = x", {"x"}),
        ("@x = 1\nx = 2\ny = x", set()),
        ("@x = 1\nx += y", {"x", "y"}),
        ("@x = 1\nx: T = 3\nx", set()),
        ("@x = 1\nif c:\n    x = 2\ny = x", {"c", "x"}),
        ("@x = 1\nif c:\n    x = 2\nelse:\n    x = 3\ny = x", {"c"}),
        ("for i in r:\n    @x = 1\n    y = x", {"x"}),
        ("for i in r:\n    y = x\n    @x = 1", {"x"}),
        ("for i in r:\n    @x = 1\nz = x", {"x"}),
        ("@i = 1\nfor i in r:\n    y = i", {"r"}),
        ("for i in r:\n    for j in s:\n        @x = 1\n    y = x", {"x", "s"}),
        ("with a(b):\n    @x = 1\n    y = x\nz = y", {"x"}),
        ("@x = 1\nout[:] = y", {"out", "y"}),
        ("@x = 1\nf(x, k=z)", {"f", "x", "z"}),
        ("@x = 1\na, (b, x) = p", {"p"}),
    ],
)
def test_live_names(text, live):
    line = next(i for i, s in enumerate(text.splitlines(), 1) if "@" in s)
    tree = ast.parse(textwrap.dedent(text.replace("@", "")))
    table = live_after(tree.body)
    marked = next(n for n in ast.walk(tree) if isinstance(n, ast.Assign) and n.lineno == line)
    assert table[marked] == live


def test_bound_names():
    tree = ast.parse("a = 1\nfor i in r:\n    b, c = 2, 3\n    out[:] = 4\nx.y = 5\nz[i].w = 6")
    assert bound_names(tree.body) == {"a", "i", "b", "c", "out"}
