from __future__ import annotations

import enum

import pytest
from pypto_store import Digest, RecordBuilder


def test_encoding_is_pinned():
    """Changing one of these bytes changes every key ever made: it needs a new record version."""
    encoded = (
        RecordBuilder("r")
        .text("t", "é")
        .integer("i", -129)
        .boolean("b", True)
        .real("r", -0.0)
        .bytes("y", b"\x00")
        .digest("d", Digest("ab" * 32))
        .optional_text("n", None)
        .sequence("s", [1, "1", (None, 2.0)])
        .encode()
    )
    n = "0000000000000001"
    assert encoded.hex() == (
        f"505201{n}72"
        f"{n}7474" + "0000000000000002c3a9"
        f"{n}6969" + "0000000000000002ff7f"
        f"{n}6262" + "01"
        f"{n}7272" + "8000000000000000"
        f"{n}7979" + f"{n}00"
        f"{n}6464" + "ab" * 32 + f"{n}6e6e"
        f"{n}7373"
        + "0000000000000003"
        + f"69{n}01"
        + f"74{n}31"
        + "730000000000000002"
        + "6e"
        + "724000000000000000"
    )


def test_finish_is_the_digest_of_the_encoding():
    record = RecordBuilder("r").text("a", "b")
    assert record.finish() == Digest.of(record.encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (1, "1"),
        ("a", b"a"),
        (0.0, -0.0),
        ("", None),
        ((), None),
        ((1,), 1),
        (("ab", "c"), ("a", "bc")),
        ((1, (2, 3)), ((1, 2), 3)),
        (("a" * 64,), (Digest("a" * 64),)),
    ],
)
def test_values_that_python_or_text_confuses_stay_apart(one, other):
    first = RecordBuilder("r").sequence("v", (one,)).finish()
    assert first != RecordBuilder("r").sequence("v", (other,)).finish()


def test_fields_do_not_blur_into_each_other():
    def digest(*fields):
        record = RecordBuilder("r")
        for name, value in fields:
            record.text(name, value)
        return record.finish()

    assert digest(("flags", "-O2"), ("x", "-g")) != digest(("flags", "-O"), ("x", "2-g"))
    assert digest(("a", ""), ("b", "")) != digest(("b", ""), ("a", ""))
    assert RecordBuilder("ab").text("c", "").finish() != RecordBuilder("a").text("bc", "").finish()


def test_every_nan_is_one_nan():
    import struct

    quiet, other = (
        struct.unpack(">d", bytes.fromhex(bits))[0]
        for bits in ("7ff8000000000000", "fff8000000000123")
    )
    assert (
        RecordBuilder("r").real("v", quiet).finish() == RecordBuilder("r").real("v", other).finish()
    )


def test_optional_present_equals_plain():
    assert (
        RecordBuilder("r").optional_text("a", "x").finish()
        == RecordBuilder("r").text("a", "x").finish()
    )
    absent = RecordBuilder("r").optional_text("a", None).finish()
    assert absent != RecordBuilder("r").optional_text("a", "").finish()


class _Colour(enum.IntEnum):
    RED = 1


class _Name(str):
    __slots__ = ()


@pytest.mark.parametrize("value", [_Colour.RED, _Name("x"), {"a": 1}, {1}, object(), 1j])
def test_types_without_an_encoding_are_refused(value):
    with pytest.raises(TypeError):
        RecordBuilder("r").sequence("v", (value,))


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("text", b"x"),
        ("integer", True),
        ("integer", 1.0),
        ("boolean", 1),
        ("real", 1),
        ("bytes", "x"),
        ("digest", "a" * 64),
        ("sequence", "text"),
    ],
)
def test_methods_want_the_exact_type(method, value):
    with pytest.raises(TypeError):
        getattr(RecordBuilder("r"), method)("v", value)


def test_names_are_needed_once_and_are_text():
    with pytest.raises(ValueError, match="name"):
        RecordBuilder("")
    with pytest.raises(ValueError, match="name"):
        RecordBuilder("r").text("", "x")
    with pytest.raises(ValueError, match="twice"):
        RecordBuilder("r").text("a", "x").integer("a", 1)
    with pytest.raises(ValueError, match="surrogates"):
        RecordBuilder("r").text("a", "\ud800")
