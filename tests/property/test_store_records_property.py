"""Records are injective: only equal typed records have equal encodings."""

from __future__ import annotations

import math
import struct

from hypothesis import given
from hypothesis import strategies as st
from pypto_store import Digest, RecordBuilder

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-300, 300),
    st.floats(),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.binary(max_size=5),
    st.binary(min_size=32, max_size=32).map(Digest.from_raw),
    st.binary(min_size=32, max_size=32),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=3)
records = st.tuples(
    names, st.lists(st.tuples(names, values), max_size=4, unique_by=lambda field: field[0])
)


def model(value):
    """What a value is, spelled so that Python's == never takes two kinds for one."""
    if isinstance(value, tuple):
        return ("sequence", tuple(model(item) for item in value))
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else struct.pack(">d", value))
    return (type(value).__name__, value)


def encode(record):
    name, fields = record
    builder = RecordBuilder(name)
    for field, value in fields:
        builder.sequence(field, (value,))
    return builder.encode()


def shape(record):
    name, fields = record
    return (name, tuple((field, model(value)) for field, value in fields))


@given(records, records)
def test_encodings_agree_exactly_when_records_do(one, other):
    assert (encode(one) == encode(other)) == (shape(one) == shape(other))


@given(st.lists(records, min_size=2, max_size=2), values)
def test_no_encoding_is_the_beginning_of_a_longer_field_list(pair, value):
    name, fields = pair[0]
    unused = "".join(field for field, _ in fields) + "x"
    longer = encode((name, [*fields, (unused, value)]))
    assert longer != encode(pair[0])
    assert longer.startswith(encode(pair[0]))


@given(values)
def test_a_value_is_not_the_sequence_of_itself(value):
    assert encode(("r", [("v", value)])) != encode(("r", [("v", (value,))]))
