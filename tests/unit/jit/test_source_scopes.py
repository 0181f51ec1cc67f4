"""Which names a text takes from outside: the scopes of the language, and nothing beside them."""

from __future__ import annotations

import ast
import builtins
import symtable
import textwrap

import pytest
from pypto.jit.names import facts_of

BODIES = {
    "x = [i for i in s]": {"s"},
    "[i for i in i]": {"i"},
    "[[j for j in i] for i in s for k in i if k]": {"s"},
    "x = [i for i in s if (y := i)]\nz = y": {"s"},
    "{k: v for k, v in d.items()}": {"d"},
    "def g(a, b=c):\n    return a + d": {"c", "d"},
    "def g(a: T) -> R:\n    return a": {"T", "R"},
    "async def g():\n    await h": {"h"},
    "f = lambda a, b=c: a + b + d": {"c", "d"},
    "class K(B, metaclass=M):\n    N = N\n    def m(self):\n        return N": {"B", "M", "N"},
    "N = 1\nclass K:\n    P = N": set(),
    "N = 1\nclass K:\n    N = N": {"N"},
    "min = 3\nmin(p)": set(),
    "del q": set(),
    "global N\nN = 1\nx = N": {"N"},
    "N = 1\ndef g():\n    global N\n    return N": {"N"},
    "N = 1\ndef g():\n    nonlocal N\n    N = 2\n    return N": set(),
    "match v:\n    case [a, *b]: c = a, b": {"v"},
    "match v:\n    case {'k': 1, **r}: d = r\n    case P(z) as w: w, z": {"v", "P"},
    "match v:\n    case cfg.X: pass": {"v", "cfg"},
    "try: pass\nexcept E as e: e": {"E"},
    "y: Q[n] = 1\nn = 2": {"Q"},
    "y: 'Q[n]' = 1": {"Q", "n"},
    "y: 'not an expression (' = 1": set(),
    "import os.path as p, sys\nfrom a import b as c\np, sys, c, b": {"b"},
    "import a.b\na.b.c": set(),
    "with a as b: b": {"a"},
    "for i in r: i\ni": {"r"},
    "if (n := f(1)): n": {"f"},
    "x = a.b.c(d.e)[f.g]": {"a", "d", "f"},
    "p.shape\nx = p": set(),
    "a.b = c": {"a", "c"},
    "a += 1": set(),
    "f'{a} {b.c}'": {"a", "b"},
}


def outside(body: str, header: str = "p") -> set[str]:
    """The names that a function with that body and those parameters takes from outside."""
    text = f"def kernel({header}):\n" + textwrap.indent(body, "    ")
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    return {use.name for use in facts_of(function).names}


@pytest.mark.parametrize("body", BODIES)
def test_names_are_looked_for_in_the_scopes_of_the_language(body: str) -> None:
    assert outside(body) == BODIES[body]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("p: T = d", {"T", "d"}),
        ("p: 'T[n]'", {"T", "n"}),
        ("p: p", {"p"}),
        ("*p: T, **k: U", {"T", "U"}),
        ("p=b, /, *, c=(lambda q: q + e)", {"b", "e"}),
        ("p=(n := m)", {"m"}),
    ],
)
def test_annotations_and_defaults_are_evaluated_outside(header: str, names: set[str]) -> None:
    assert outside("x = p", header) == names


def free_names(table: symtable.SymbolTable) -> set[str]:
    """What the compiler looks up as a global, in this scope or one inside it."""
    found = set()
    for symbol in table.get_symbols():
        if symbol.is_referenced() and symbol.is_global():
            found.add(symbol.get_name())
    for child in table.get_children():
        found |= free_names(child)
    return found


@pytest.mark.parametrize("body", [b for b in BODIES if ": '" not in b and "y: Q" not in b])
def test_the_compiler_agrees(body: str) -> None:
    text = "def kernel(p):\n" + textwrap.indent(body, "    ")
    (table,) = symtable.symtable(text, "kernel", "exec").get_children()
    expected = free_names(table)
    # A class's own statement may find a name that the class binds later among the globals.
    assert outside(body) - expected <= {"N"}
    assert expected <= outside(body)


def test_every_builtin_may_be_shadowed() -> None:
    for name in ("min", "max", "len"):
        assert hasattr(builtins, name)
        assert outside(f"{name}(1)") == {name}
        assert outside(f"{name}(1)\n{name} = 2") == set()


def test_depth_does_not_matter() -> None:
    deep = ast.parse("def kernel():\n    return " + "+".join(["a"] * 500)).body[0]
    assert isinstance(deep, ast.FunctionDef)
    assert [use.name for use in facts_of(deep).names] == ["a"]


def test_comparisons_and_formats_mention_the_methods_they_call() -> None:
    def attributes(body: str) -> set[str]:
        function = ast.parse("def kernel(p):\n    " + body).body[0]
        assert isinstance(function, ast.FunctionDef)
        return set(facts_of(function).attributes)

    assert attributes("p + 1") == set()
    assert attributes("p.a.b") == {"a", "b"}
    assert "__eq__" in attributes("p == 1")
    assert "__lt__" in attributes("max(p, 1)")
    assert "__str__" in attributes("f'{p}'")
