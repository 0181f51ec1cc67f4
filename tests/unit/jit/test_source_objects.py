"""Objects that kernels use: their attributes may be computed, by code and from other values."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from pypto.jit.values import Unidentifiable, encode, with_members

FACTOR = [2.0]


class Mode(enum.Enum):
    FAST = 1

    @property
    def scale(self) -> float:
        return self.value * FACTOR[0]


@dataclass(frozen=True)
class Record:
    k: float

    @property
    def scale(self) -> float:
        return self.k * FACTOR[0]

    @property
    def broken(self) -> float:
        raise RuntimeError

    def method(self) -> float:
        return FACTOR[0]


class Operated(enum.Enum):
    ONE = 1

    def __getitem__(self, index: int) -> float:
        return FACTOR[0]


@dataclass(frozen=True)
class Negated:
    def __neg__(self) -> float:
        return FACTOR[0]


def nothing(_: object) -> None:
    return None


@pytest.fixture
def change() -> Iterator[Callable[[float], None]]:
    def to(value: float) -> None:
        FACTOR[0] = value

    yield to
    FACTOR[0] = 2.0


@pytest.mark.parametrize("value", [Mode.FAST, Record(1.0), [Record(1.0)], {"a": (Mode.FAST,)}])
def test_a_mentioned_attribute_counts_wherever_its_object_is(
    value: object, change: Callable[[float], None]
) -> None:
    def encoded(*names: str) -> bytes:
        return encode(value, partial(with_members, names, nothing))

    before = encoded("scale", "k", "other"), encoded("method", "k"), encoded()
    change(3.0)
    after = encoded("scale", "k", "other"), encoded("method", "k"), encoded()
    assert before[0] != after[0]
    assert before[1:] == after[1:]


def test_what_cannot_be_read_or_computes_by_operators_has_no_identity() -> None:
    with pytest.raises(Unidentifiable, match="broken"):
        encode(Record(1.0), partial(with_members, ("broken",), nothing))
    for value in (Operated.ONE, Negated(), (Negated(),)):
        with pytest.raises(Unidentifiable, match="__"):
            encode(value, nothing)


class Flag(enum.IntFlag):
    A = 1


def test_operators_of_the_interpreter_are_its_own() -> None:
    assert encode(Flag.A, nothing) != encode(1, nothing)


class Ordered(enum.Enum):
    LOW = 1

    def __lt__(self, other: object) -> bool:
        return FACTOR[0] > 0

    def __str__(self) -> str:
        return str(FACTOR[0])


@dataclass(frozen=True)
class Compared:
    k: int

    def __eq__(self, other: object) -> bool:
        return FACTOR[0] > 0


@pytest.mark.parametrize(
    ("value", "called"),
    [(Ordered.LOW, "__lt__"), (Ordered.LOW, "__str__"), (Compared(1), "__eq__")],
)
def test_what_compares_or_shows_itself_by_code_has_no_identity_where_that_is_called(
    value: object, called: str
) -> None:
    encode(value, partial(with_members, ("other",), nothing))
    with pytest.raises(Unidentifiable, match=called):
        encode(value, partial(with_members, (called,), nothing))
    with pytest.raises(Unidentifiable, match=called):
        encode((value,), partial(with_members, (called,), nothing))


def test_comparisons_made_by_the_interpreter_are_its_own() -> None:
    names = ("__eq__", "__lt__", "__str__", "__repr__", "__format__")
    for value in (Record(1.0), Mode.FAST, Flag.A):
        encode(value, partial(with_members, names, nothing))


def test_even_kinds_of_nan_are_told_apart() -> None:
    nan = float("nan")
    assert encode(nan, nothing) == encode(float("nan"), nothing)
    assert encode(nan, nothing) != encode(-nan, nothing)


class Linked(enum.Enum):
    ONE = 1
    TWO = 2

    @property
    def other(self) -> Linked:
        return Linked.TWO if self is Linked.ONE else Linked.ONE

    @property
    def factor(self) -> float:
        return FACTOR[0]


def test_objects_that_lead_to_each_other_have_an_identity(
    change: Callable[[float], None],
) -> None:
    def encoded() -> bytes:
        names = ("other", "factor", "ONE", "TWO")
        return encode(Linked.ONE, partial(with_members, names, nothing))

    before = encoded()
    assert before == encoded()
    change(3.0)
    assert encoded() != before


def test_an_enumeration_of_many_mentioned_members_is_encoded_in_time() -> None:
    many = enum.Enum("many", {f"M{number}": number for number in range(40)})
    names = tuple(many.__members__)
    encoded = {encode(member, partial(with_members, names, nothing)) for member in many}
    assert len(encoded) == 40
