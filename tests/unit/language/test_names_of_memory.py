"""What the parser knows of variables that name one memory."""

from __future__ import annotations

from pypto.ir.dtypes import FP32
from pypto.ir.nodes import TensorType, Var
from pypto.language.parser.frame import Values

TENSOR = TensorType((8, 8), FP32)


def chain(values: Values, start: Var, length: int) -> list[Var]:
    """``start`` and as many names of it, each recorded as a write of the one before."""
    names = [start]
    for step in range(length):
        names.append(Var(f"{start.name}{step}", TENSOR))
        values.record_write(names[-1], names[-2])
    return names


def test_every_name_has_the_root_of_what_it_names() -> None:
    values, x, y = Values(), Var("x", TENSOR), Var("y", TENSOR)
    names = chain(values, x, 3)
    assert [values.root(name) for name in names] == [x] * 4
    assert values.root(y) is y
    assert values.named_by(names[2]) is names[1]
    assert values.named_by(x) is None
    assert values.written == set(names[:3])


def test_a_name_written_in_each_of_many_scopes_costs_the_same_in_each() -> None:
    """Following every name back to its root would take minutes here."""
    values, x = Values(), Var("x", TENSOR)
    for name in chain(values, x, 100_000):
        assert values.root(name) is x


def test_two_names_meet_at_the_nearest_that_both_come_from() -> None:
    values, x = Values(), Var("x", TENSOR)
    trunk = chain(values, x, 5)
    left, right = chain(values, trunk[-1], 4), chain(values, trunk[3], 2)
    assert values.meeting(left[-1], right[-1]) is trunk[3]
    assert values.meeting(right[-1], left[-1]) is trunk[3]
    assert values.meeting(left[2], left[-1]) is left[2]
    assert values.meeting(x, x) is x


def test_a_part_lies_in_the_memory_of_what_it_was_taken_from() -> None:
    values, x, part = Values(), Var("x", TENSOR), Var("part", TENSOR)
    names = chain(values, x, 2)
    values.wholes[part] = names[-1]
    written = chain(values, part, 2)
    assert values.root(written[-1]) is part
    assert values.whole(written[-1]) is x
