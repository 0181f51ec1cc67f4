"""A digest of a kernel's source changes exactly when what the kernel can see of it does.

Programs of a module, its helpers, globals, closures, aliases, a class and a second module are made
at random, and edited at random. What an edit means is worked out from the model of the program,
without any of the code that is tested.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from pypto.jit.snapshot import SourceSnapshot
from pypto.jit.source import SourceCapture

_GLOBALS, _FUNCTIONS, _ALIASES = 3, 3, 2
_NUMBER = itertools.count()

# No two of these are the same to a kernel; those of one row are easily taken for each other.
ALIKE = (
    ("1", "True", "1.0", "1 + 0j", "'1'", "b'1'"),
    ("0", "False", "0.0", "-0.0", "None", "''", "()", "[]"),
    ("(1,)", "[1]", "(True,)", "[1.0]", "{1}", "frozenset({1})", "{1: 1}", "[1, 1]"),
    ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}", "{'a': 1, 'b': True}", "{'a': [1], 'b': 2}"),
    ("[[1], (2,)]", "[[1], [2]]", "[[1, 2]]", "[1, [2]]", "[[True], (2,)]"),
    ("float('nan')", "-float('nan')", "float('inf')", "-float('inf')", "..."),
    ("Colour.RED", "Colour.BLUE", "(Colour.RED,)", "Paint.RED", "Colour.RED.value"),
    ("Point(1)", "Point(1.0)", "Point([1])", "Point((1,))", "Place(1)", "Point(Point(1))"),
)
VALUES = tuple(itertools.chain.from_iterable(ALIKE))

MODULE = """
import enum
from dataclasses import dataclass
import pypto.language as pl
import {other} as other


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Paint(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Point:
    x: object


@dataclass(frozen=True)
class Place:
    x: object

"""


@dataclass(frozen=True)
class Function:
    """One function: its statements, its default, and the lines of comment above it."""

    statements: tuple[str, ...]
    default: str
    comments: int = 0

    def text(self, name: str) -> str:
        body = "".join(f"    {line}\n" for line in self.statements)
        return f"@pl.jit.inline\ndef {name}(x, d={self.default}):\n{body}    return x\n"

    def uses(self, name: str) -> bool:
        """Whether the text takes `name` from outside: mentioned, and not assigned here."""
        local = any(line.startswith(f"{name} = ") for line in self.statements)
        inside = f" for {name} in "
        return not local and any(
            name in line.replace("'", " ").split() and inside not in line
            for line in self.statements
        )


@dataclass(frozen=True)
class Program:
    """A whole program, as data. Values are texts of `VALUES`."""

    values: tuple[str, ...]
    attributes: tuple[str, ...]
    others: tuple[str, ...]
    functions: tuple[Function, ...]
    aliases: tuple[int, ...]
    closed: str
    closed_function: Function
    unused: int = 0

    def text(self, other: str) -> str:
        """The module's text."""
        parts = [MODULE.format(other=other)]
        parts += [f"UNUSED_{number} = {number}\n" for number in range(self.unused)]
        parts += [f"G{n} = {value}\n" for n, value in enumerate(self.values)]
        parts.append("class cfg:\n")
        parts += [f"    A{n} = {value}\n" for n, value in enumerate(self.attributes)]
        for number, function in enumerate(self.functions):
            parts += ["# a comment\n"] * function.comments
            parts.append(function.text(f"f{number}"))
        parts += [f"a{n} = f{target}\n" for n, target in enumerate(self.aliases)]
        inner = self.closed_function.text("closed").replace("\n", "\n    ")
        parts.append(
            f"def make(c):\n    {inner}\n    return closed\nclosed = make({self.closed})\n"
        )
        return "".join(parts)

    def other_text(self) -> str:
        """The second module's text."""
        return MODULE.format(other="sys") + "".join(
            f"B{n} = {value}\n" for n, value in enumerate(self.others)
        )

    def meaning(self) -> dict[str, object]:
        """What ``f0`` can see: each function that is reached, with all it takes from outside."""
        reached: dict[str, object] = {}
        pending = ["f0"]
        while pending:
            name = pending.pop()
            if name in reached:
                continue
            if name == "closed":
                function = self.closed_function
            else:
                function = self.functions[int(name[1:])]
            seen: dict[str, str] = {}
            for n, value in enumerate(self.values):
                if function.uses(f"G{n}"):
                    seen[f"G{n}"] = value
            for n, value in enumerate(self.attributes):
                if function.uses(f"cfg.A{n}"):
                    seen[f"cfg.A{n}"] = value
            for n, value in enumerate(self.others):
                if function.uses(f"other.B{n}"):
                    seen[f"other.B{n}"] = value
            if name == "closed" and function.uses("c"):
                seen["c"] = self.closed
            called = {f"f{n}": f"f{n}" for n in range(len(self.functions))}
            called |= {f"a{n}": f"f{target}" for n, target in enumerate(self.aliases)}
            called["closed"] = "closed"
            for callee, target in called.items():
                if function.uses(callee):
                    seen[callee] = target
                    pending.append(target)
            reached[name] = (function.text(name), seen)
        return reached


def _statement(*extra: str) -> st.SearchStrategy[str]:
    number = st.integers(0, _GLOBALS - 1)
    return st.one_of(
        number.map(lambda n: f"x = x + G{n}"),
        number.map(lambda n: f"x = ( cfg.A{n} , x )"),
        number.map(lambda n: f"x = x + other.B{n}"),
        number.map(lambda n: f"G{n} = 0"),
        number.map(lambda n: f"x = [ G{n} for G{n} in ( 1, ) ]"),
        number.map(lambda n: f"t: ' G{n} ' = 0"),
        st.integers(0, _FUNCTIONS - 1).map(lambda n: f"x = f{n} (x)"),
        st.integers(0, _ALIASES - 1).map(lambda n: f"x = a{n} (x)"),
        st.just("x = closed (x)"),
        st.sampled_from(VALUES[:14]).map(lambda value: f"x = x, {value}"),
        *(st.just(line) for line in extra),
    )


def _function(*extra: str) -> st.SearchStrategy[Function]:
    return st.builds(
        Function,
        st.lists(_statement(*extra), min_size=1, max_size=4).map(tuple),
        st.sampled_from(VALUES[:14]),
        st.integers(0, 2),
    )


def _some(strategy: st.SearchStrategy[Any], count: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*[strategy] * count)


_value = st.sampled_from(VALUES)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "values": _some(_value, _GLOBALS),
    "attributes": _some(_value, _GLOBALS),
    "others": _some(_value, _GLOBALS),
    "functions": _some(_function(), _FUNCTIONS),
    "aliases": _some(st.integers(0, _FUNCTIONS - 1), _ALIASES),
    "closed": _value,
    "closed_function": _function("x = x, c"),
    "unused": st.integers(0, 2),
}
programs = st.builds(Program, **_FIELDS)


def _similar(value: str) -> st.SearchStrategy[str]:
    """Another value, as often as not one that is easily taken for `value`."""
    row = next(row for row in ALIKE if value in row)
    return st.sampled_from(row) | _value


@st.composite
def edits(draw: st.DrawFn, program: Program, fields: tuple[str, ...] = (*_FIELDS,)) -> Program:
    """`program` with one thing in it drawn again."""
    field = draw(st.sampled_from(fields))
    before = getattr(program, field)
    if field == "closed":
        return dataclasses.replace(program, closed=draw(_similar(before)))
    drawn = draw(_FIELDS[field])
    if isinstance(drawn, tuple):
        position = draw(st.integers(0, len(drawn) - 1))
        one = drawn[position]
        if isinstance(one, str):
            one = draw(_similar(before[position]))
        drawn = (*before[:position], one, *before[position + 1 :])
    return dataclasses.replace(program, **{field: drawn})


class Imports:
    """Imports programs, each from a directory of its own and all under the same names."""

    def __init__(self, top: Path) -> None:
        self._top = top

    def load(self, program: Program) -> ModuleType:
        """The module of a program; the last one loaded is the one that is imported."""
        directory = self._top / str(next(_NUMBER))
        directory.mkdir()
        other = self._module("identity_other", directory, program.other_text())
        module = self._module("identity_kernels", directory, program.text("identity_other"))
        assert module.other is other
        return module

    def _module(self, name: str, directory: Path, text: str) -> ModuleType:
        path = directory / f"{name}.py"
        path.write_text(text)
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = str(path)
        exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
        return module


@pytest.fixture(scope="module")
def imports() -> Iterator[Imports]:
    """Where the programs are; gone afterwards."""
    with tempfile.TemporaryDirectory() as top:
        yield Imports(Path(top))
    for name in ("identity_kernels", "identity_other"):
        sys.modules.pop(name, None)


def take(module: Any) -> SourceSnapshot:
    snapshot = SourceCapture(module.f0.declaration).take()
    assert snapshot.digest is not None, snapshot.bypass
    return snapshot


def test_no_value_is_taken_for_another(imports: Imports) -> None:
    function = Function(("x = x + G0",), "1")
    program = Program(("1",) * 3, ("1",) * 3, ("1",) * 3, (function,) * 3, (0, 0), "1", function)
    digests: dict[object, str] = {}
    for value in VALUES:
        module: Any = imports.load(dataclasses.replace(program, values=(value, "1", "1")))
        snapshot = take(module)
        assert snapshot.digest not in digests, (value, digests[snapshot.digest])
        digests[snapshot.digest] = value
        for other in VALUES:
            module.G0 = eval(other, vars(module))
            assert not snapshot.guards.hold() or other == value, (value, other)


@settings(max_examples=120)
@given(st.data())
def test_an_edit_changes_the_digest_exactly_if_the_kernel_can_see_it(
    imports: Imports, data: st.DataObject
) -> None:
    before = data.draw(programs)
    after = before
    for _ in range(data.draw(st.integers(0, 2))):
        after = data.draw(edits(after))
    first = take(imports.load(before)).digest
    second = take(imports.load(after)).digest
    note(before.text("other"))
    note(after.text("other"))
    assert (first == second) == (before.meaning() == after.meaning())


@settings(max_examples=120)
@given(st.data())
def test_a_rebinding_is_noticed_exactly_as_an_edit_would_be(
    imports: Imports, data: st.DataObject
) -> None:
    before = data.draw(programs)
    after = before
    for _ in range(data.draw(st.integers(0, 2))):
        after = data.draw(edits(after, ("values", "attributes", "others", "aliases")))
    module: Any = imports.load(before)
    capture = SourceCapture(module.f0.declaration)
    snapshot = capture.take()
    assert snapshot.guards.hold()

    def rebound(owner: Any, name: str, old: str, new: str) -> None:
        if old != new:
            setattr(owner, name, eval(new, vars(module)))

    for n in range(_GLOBALS):
        rebound(module, f"G{n}", before.values[n], after.values[n])
        rebound(module.cfg, f"A{n}", before.attributes[n], after.attributes[n])
        rebound(module.other, f"B{n}", before.others[n], after.others[n])
    for n, target in enumerate(after.aliases):
        setattr(module, f"a{n}", getattr(module, f"f{target}"))
    changed = before.meaning() != after.meaning()
    note(before.text("other"))
    note(repr((after.values, after.attributes, after.others, after.aliases)))
    assert snapshot.guards.hold() == (not changed)
    again = capture.take()
    assert (again.digest == snapshot.digest) == (not changed)
    assert again.guards.hold()
