"""Messages of remotes: what is encoded comes back, and nothing else gets through unnoticed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pypto_store import Digest
from pypto_store.remote.blob_store import BLOB_LIMIT, BlobDigest
from pypto_store.remote.messages import Action, ActionResult, Command, MessageError, OutputFile

text = st.text(st.characters(codec="utf-8"), max_size=8)
digests = st.builds(
    BlobDigest,
    st.binary(min_size=32, max_size=32).map(Digest.from_raw),
    st.one_of(st.integers(0, 300), st.integers(0, BLOB_LIMIT)),
)
files = st.builds(OutputFile, text, digests, st.booleans())
messages = st.one_of(
    st.builds(Command, st.lists(text, max_size=4).map(tuple)),
    st.builds(Action, digests, digests),
    files,
    st.builds(
        ActionResult,
        st.lists(files, max_size=4).map(tuple),
        st.one_of(st.just(0), st.integers(-(2**31), 2**31 - 1)),
    ),
)


def varint(value: int, size: int = 5) -> bytes:
    """A number in the longest spelling that there is of a field's number."""
    last = size - 1
    return bytes(value >> 7 * place & 0x7F | (0x80 if place < last else 0) for place in range(size))


# Fields that no version of these messages has.
unknown = st.integers(1000, 2**29 - 1).flatmap(
    lambda number: st.one_of(
        st.integers(0, 2**64 - 1).map(lambda value: varint(number << 3) + varint(value, 10)),
        st.binary(min_size=8, max_size=8).map(lambda raw: varint(number << 3 | 1) + raw),
        st.binary(max_size=9).map(lambda raw: varint(number << 3 | 2) + varint(len(raw)) + raw),
        st.binary(min_size=4, max_size=4).map(lambda raw: varint(number << 3 | 5) + raw),
        st.just(varint(number << 3 | 3) + varint(number << 3 | 4)),
    )
)


@given(messages)
def test_what_is_encoded_comes_back(message):
    assert type(message).decode(message.encode()) == message


@given(messages, messages)
def test_messages_of_one_kind_are_equal_exactly_when_their_bytes_are(one, other):
    if type(one) is type(other):
        assert (one == other) == (one.encode() == other.encode())


@given(messages, unknown, unknown)
def test_fields_of_later_versions_change_nothing(message, before, after):
    assert type(message).decode(before + message.encode() + after) == message


@given(messages, st.data())
def test_damage_is_another_message_or_an_error(message, data):
    encoded = bytearray(message.encode())
    place = data.draw(st.integers(0, len(encoded)))
    piece = data.draw(st.binary(max_size=3))
    encoded[place : place + data.draw(st.integers(0, 3))] = piece
    try:
        decoded = type(message).decode(bytes(encoded))
    except MessageError:
        return
    assert type(message).decode(decoded.encode()) == decoded


@given(st.sampled_from([Command, Action, OutputFile, ActionResult]), st.binary(max_size=60))
def test_any_bytes_are_a_message_or_an_error(kind, data):
    try:
        decoded = kind.decode(data)
    except MessageError:
        return
    assert kind.decode(decoded.encode()) == decoded
