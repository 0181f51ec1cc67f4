"""A snapshot shows one moment, and the parser sees that moment whatever happens afterwards."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pypto.ir.printer import print_program
from pypto.jit.parsed import SourceChanged
from pypto.jit.snapshot import SourceSnapshot
from pypto.jit.source import SourceCapture, _Snapshot
from pypto.language.parser.program import parse_program

_NUMBER = itertools.count()

KERNELS = """
import enum
from dataclasses import dataclass
import pypto.language as pl

N = 1
L = [1, 1]
D = {"k": [1]}
FACTOR = 1


class first:
    K = 1


class second:
    K = 2


class Mode(enum.Enum):
    FAST = 1

    @property
    def factor(self):
        return FACTOR


@dataclass(frozen=True)
class Record:
    extents: list

    @property
    def factor(self):
        return FACTOR


config = first
record = Record([1, 1])


def make():
    cell = 1

    def change(value):
        nonlocal cell
        cell = value

    @pl.jit.inline
    def closed(x):
        return pl.mul(x, cell)

    return closed, change


closed, change = make()


@pl.jit.inline
def other(x):
    return pl.add(x, 1)


@pl.jit.inline
def one(x):
    pl.static_assert(N == 1 and L == [1, 1] and D["k"] == [1] and config.K == 1, "mixed")
    return pl.mul(x, 1)


@pl.jit.inline
def two(x):
    pl.static_assert(N == 2 and L == [2] and D["k"] == [2] and config.K == 2, "mixed")
    return pl.mul(x, 2)


helper = one


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(helper(pl.load(x, [0, 0], [16, 64])), [0, 0], out)
    return out


class helpers:
    one = other
    nested = first


helpers.nested.two = other
table = {"three": [other]}


@pl.jit.inline
def passed(x, mode, given):
    return pl.mul(x, mode.factor + given.factor + given.extents[0])


@pl.jit
def direct(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(other(pl.load(x, [0, 0], [16, 64])), [0, 0], out)
    return out


@pl.jit
def found(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(CALLEE(pl.load(x, [0, 0], [16, 64])), [0, 0], out)
    return out


@pl.jit
def reader(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = closed(pl.load(x, [0, 0], [16, 64]))
        tile = pl.mul(tile, N + L[0] + D["k"][0] + config.K)
        tile = pl.mul(tile, Mode.FAST.factor + record.extents[0] + record.factor)
        out = pl.store(tile, [0, 0], out)
    return out


@pl.jit
def passing(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = passed(pl.load(x, [0, 0], [16, 64]), Mode.FAST, record)
        out = pl.store(tile, [0, 0], out)
    return out
"""


@pytest.fixture
def module(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The module of kernels above, imported under a name of its own; its parameter is a callee."""
    name = f"moments_{next(_NUMBER)}"
    path = tmp_path / f"{name}.py"
    path.write_text(KERNELS.replace("CALLEE", getattr(request, "param", "other")))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules[name]


def take(kernel: Any) -> SourceSnapshot:
    return SourceCapture(kernel.declaration).take()


def program(snapshot: SourceSnapshot) -> str:
    """The program that the parser makes of a snapshot."""
    return print_program(parse_program(snapshot.entry, {}, name="kernel"))


@contextmanager
def meanwhile(work: Callable[[], None], *, threads: int = 2) -> Iterator[None]:
    """Other threads do `work` again and again, and get their turn as often as can be."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            work()

    started = [threading.Thread(target=repeat) for _ in range(threads)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in started:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in started:
            thread.join()
        sys.setswitchinterval(interval)


def test_another_thread_cannot_mix_two_states(module: Any) -> None:
    states = [
        {"N": 1, "helper": module.one, "config": module.first, "L": [1, 1], "D": {"k": [1]}},
        {"N": 2, "helper": module.two, "config": module.second, "L": [2], "D": {"k": [2]}},
    ]
    expected = set()
    for state in states:
        vars(module).update(state)
        expected.add((take(module.kernel).digest, program(take(module.kernel))))
    assert len(expected) == 2

    def flip() -> None:
        for state in states:
            # One step of the interpreter: nobody ever sees a half of it.
            vars(module).update({**state, "L": list(state["L"]), "D": {"k": list(state["D"]["k"])}})

    seen = set()
    with meanwhile(flip):
        for _ in range(150):
            snapshot = take(module.kernel)
            assert snapshot.bypass is None
            # The helpers assert that all they see is of their own state.
            seen.add((snapshot.digest, program(snapshot)))
    assert seen and seen <= expected


def test_containers_that_are_changed_in_place_are_not_mixed(module: Any) -> None:
    def flip() -> None:
        for extents in ([1, 1], [2, 2], [3]):
            module.L[:] = extents

    expected = set()
    for extents in ([1, 1], [2, 2], [3]):
        module.L[:] = extents
        expected.add((take(module.reader).digest, program(take(module.reader))))
    seen = set()
    with meanwhile(flip, threads=1):
        for _ in range(100):
            snapshot = take(module.reader)
            seen.add((snapshot.digest, program(snapshot)))
    assert seen <= expected


CHANGES: dict[str, Callable[[Any], None]] = {
    "a global": lambda module: setattr(module, "N", 5),
    "a list": lambda module: module.L.__setitem__(0, 5),
    "a nested list": lambda module: module.D["k"].__setitem__(0, 5),
    "a class": lambda module: setattr(module.config, "K", 5),
    "a cell": lambda module: module.change(5),
    "a list in a record": lambda module: module.record.extents.__setitem__(0, 5),
    "what properties compute": lambda module: setattr(module, "FACTOR", 5),
    "a helper": lambda module: setattr(module, "closed", module.other),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_parser_sees_the_moment_of_the_snapshot(module: Any, name: str) -> None:
    snapshot = take(module.reader)
    assert snapshot.bypass is None
    before = program(snapshot)
    assert snapshot.guards.hold()
    CHANGES[name](module)
    assert not snapshot.guards.hold()
    assert program(snapshot) == before
    after = take(module.reader)
    assert after.digest != snapshot.digest
    assert program(after) != before


@pytest.mark.parametrize("name", ["a list in a record", "what properties compute"])
def test_objects_that_are_passed_on_are_those_of_the_moment(module: Any, name: str) -> None:
    snapshot = take(module.passing)
    assert snapshot.bypass is None
    before = program(snapshot)
    CHANGES[name](module)
    assert not snapshot.guards.hold()
    assert program(snapshot) == before
    after = take(module.passing)
    assert after.digest != snapshot.digest
    assert program(after) != before


def test_an_attribute_that_appears_later_is_not_seen(module: Any) -> None:
    del module.config.K
    snapshot = take(module.reader)
    module.config.K = 1
    assert not snapshot.guards.hold()
    with pytest.raises(Exception, match="has no attribute 'K'"):
        program(snapshot)


def test_values_that_never_stand_still_are_a_bypass(module: Any) -> None:
    numbers = itertools.count()

    class Restless:
        @property
        def K(self) -> int:
            return next(numbers)

    module.config = Restless()
    snapshot = take(module.reader)
    assert snapshot.digest is None
    assert "keep changing" in str(snapshot.bypass)


def test_an_empty_cell_that_is_filled_is_noticed(module: Any) -> None:
    text = """
import pypto.language as pl


def make():
    def fill(value):
        nonlocal late
        late = value

    @pl.jit.inline
    def kernel(x):
        return pl.mul(x, late)

    return kernel, fill
    late = 1
"""
    path = Path(module.__file__).with_name("cells.py")
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "cells"}
    exec(compile(text, str(path), "exec"), names)
    kernel, fill = names["make"]()
    taken = take(kernel)
    assert "late" not in taken.entry.namespace
    assert taken.guards.hold()
    fill(4)
    assert not taken.guards.hold()


def test_code_that_was_replaced_is_refused(module: Any) -> None:
    capture = SourceCapture(module.kernel.declaration)
    snapshot = capture.take()
    module.kernel._func.__code__ = module.reader._func.__code__
    assert not snapshot.guards.hold()
    with pytest.raises(SourceChanged, match="replaced"):
        capture.take()


@pytest.mark.conforms("language.57")
@pytest.mark.parametrize(
    "module",
    ["helpers.one", "helpers.nested.two", 'table["three"][0]'],
    indirect=True,
)
def test_helpers_are_found_wherever_they_are(module: Any) -> None:
    snapshot = take(module.found)
    assert snapshot.bypass is None
    assert [parsed.tree.name for _, parsed in snapshot.functions] == ["found", "other"]
    expected = program(take(module.direct)).replace("direct", "found")
    assert program(snapshot) == expected
    module.helpers.one = module.helpers.nested.two = module.table["three"][0] = module.closed
    assert not snapshot.guards.hold()
    assert program(snapshot) == expected
    assert take(module.found).digest != snapshot.digest


def test_another_thread_is_outrun_however_often_it_changes_values(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that gets its turn during each of the first thousand captures."""
    turns = itertools.count()
    walk = _Snapshot.take

    def interrupted(self: Any, declaration: Any) -> Any:
        taken = walk(self, declaration)
        if next(turns) < 1000:
            module.L = [1, 1]
        return taken

    monkeypatch.setattr(_Snapshot, "take", interrupted)
    snapshot = take(module.kernel)
    assert snapshot.bypass is None
    assert snapshot.guards.hold()
