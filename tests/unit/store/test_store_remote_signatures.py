"""The file of signatures beside a manifest: one spelling, within bounds, and no other."""

from __future__ import annotations

import json
import random
from base64 import b64encode

import pytest
from pypto_store.remote.public_key import exact_base64, key_text, parse_key
from pypto_store.remote.signatures import (
    SIGNATURES_LIMIT,
    SIZE_LIMIT,
    Signature,
    SignaturesError,
    encode,
    parse,
    signed_bytes,
)


def signature(number):
    return Signature(bytes([number]) * 32, bytes([number]) * 64)


def row(key=b"k" * 32, made=b"s" * 64, **changes):
    fields = {
        "algorithm": "ed25519",
        "key": b64encode(key).decode(),
        "signature": b64encode(made).decode(),
    }
    return {**fields, **changes}


def document(*rows, **changes):
    fields = {"schema_version": 1, "signatures": list(rows) or [row()], **changes}
    return json.dumps(fields, separators=(",", ":"), sort_keys=True).encode() + b"\n"


def test_the_spelling_of_a_document():
    data = encode([Signature(bytes(range(32)), bytes(range(64)))])
    assert data == (
        b'{"schema_version":1,"signatures":[{"algorithm":"ed25519",'
        b'"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",'
        b'"signature":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4'
        b'OTo7PD0+Pw=="}]}\n'
    )
    assert parse(data) == (Signature(bytes(range(32)), bytes(range(64))),)


def test_what_is_signed_is_the_manifest_of_this_format():
    assert signed_bytes(b"{}\n") == b"pypto artifact manifest v1\x00{}\n"


def test_a_document_has_one_order_whatever_it_is_made_in():
    several = [signature(number) for number in range(1, SIGNATURES_LIMIT + 1)]
    shuffled = random.Random(5).sample(several, len(several))
    assert encode(shuffled) == encode(several)
    assert parse(encode(several)) == tuple(sorted(several, key=lambda each: b64encode(each.key)))
    assert len(encode(several)) < SIZE_LIMIT


@pytest.mark.parametrize("count", [0, SIGNATURES_LIMIT + 1])
def test_too_few_and_too_many_are_neither_written_nor_read(count):
    several = [signature(number) for number in range(count)]
    with pytest.raises(SignaturesError, match=f"has {count} signatures"):
        encode(several)
    rows = [row(each.key, each.signature) for each in several]
    with pytest.raises(SignaturesError, match="1 to 16 signatures"):
        parse(document(signatures=rows))


GOOD = document()
REFUSED = {
    "empty": (b"", "not JSON"),
    "no JSON": (b"pypto", "not JSON"),
    "not ASCII": (GOOD.replace(b"ed25519", "ed255\u00b99".encode()), "not JSON"),
    "not UTF-8": (b"\xff" + GOOD, "not JSON"),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD, "not JSON"),
    "deep nesting": (b"[" * 8000 + b"]" * 8000, "JSON|object"),
    "a number without end": (GOOD.replace(b":1,", b":" + b"1" * 9000 + b","), "JSON|schema"),
    "a list": (b"[]\n", "not an object"),
    "null": (b"null\n", "not an object"),
    "no newline": (GOOD[:-1], "canonical"),
    "two newlines": (GOOD + b"\n", "canonical"),
    "something behind it": (GOOD + b"{}", "not JSON"),
    "a blank": (GOOD.replace(b":1,", b": 1,"), "canonical"),
    "an escape": (GOOD.replace(b'"ed25519"', b'"\\u0065d25519"'), "canonical"),
    "another order": (
        b'{"signatures":' + json.dumps([row()], separators=(",", ":")).encode()
        + b',"schema_version":1}\n',
        "canonical",
    ),
    "another schema": (document(schema_version=2), "schema_version 2"),
    "schema 0": (document(schema_version=0), "schema_version 0"),
    "schema true": (document(schema_version=True), "schema_version True"),
    "schema 1.0": (document(schema_version=1.0), "schema_version 1.0"),
    "schema as text": (document(schema_version="1"), "schema_version '1'"),
    "no schema": (document().replace(b'"schema_version":1,', b""), "lacks the field"),
    "no signatures": (b'{"schema_version":1}\n', "lacks the field"),
    "signatures as an object": (document(signatures={}), "must have a list"),
    "a signature as text": (document(signatures=["x"]), "not an object"),
    "a further field": (document(comment="hello"), "unknown field 'comment'"),
    "a further field of a signature": (document(row(comment="hello")), "unknown field 'comment'"),
    "a field twice": (
        GOOD.replace(b'"schema_version":1,', b'"schema_version":1,"schema_version":1,'),
        "a field twice",
    ),
    "a field of a signature twice": (
        GOOD.replace(b'"algorithm":"ed25519"', b'"algorithm":"none","algorithm":"ed25519"'),
        "a field twice",
    ),
    "another algorithm": (document(row(algorithm="none")), "algorithm 'none'"),
    "no algorithm": (document(row(algorithm=None)), "algorithm None"),
    "upper case": (document(row(algorithm="Ed25519")), "algorithm 'Ed25519'"),
    "a short key": (document(row(b"k" * 31)), "key that is not base64 of 32"),
    "a long key": (document(row(b"k" * 33)), "key that is not base64 of 32"),
    "a short signature": (document(row(made=b"s" * 63)), "signature that is not base64 of 64"),
    "a long signature": (document(row(made=b"s" * 65)), "signature that is not base64 of 64"),
    "no key": (document(row(key=b"")), "key that is not base64"),
    "a key that is a number": (document({**row(), "key": 7}), "key that is not base64"),
    "base64 for URLs": (
        document({**row(), "key": b64encode(b"\xff" * 32).decode().replace("/", "_")}),
        "key that is not base64",
    ),
    "base64 without its padding": (
        document({**row(), "key": b64encode(b"k" * 32).decode().rstrip("=")}),
        "key that is not base64",
    ),
    "base64 with more padding": (
        document({**row(), "key": b64encode(b"k" * 32).decode() + "="}),
        "key that is not base64",
    ),
    "base64 with a newline": (
        document({**row(), "key": b64encode(b"k" * 32).decode() + "\n"}),
        "key that is not base64",
    ),
    "base64 with bits to spare": (
        document({**row(), "key": b64encode(bytes(32)).decode()[:-2] + "B="}),
        "key that is not base64",
    ),
    "digits of another alphabet": (
        document({**row(), "key": "\u0661" * 43 + "="}),
        "key that is not base64",
    ),
    "the same key twice": (document(row(), row(made=b"t" * 64)), "two signatures by the same key"),
    "the wrong order": (document(row(b"z" * 32), row(b"a" * 32)), "canonical"),
    "larger than the limit": (GOOD[:-1] + b" " * SIZE_LIMIT + b"\n", "larger than 16384 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_every_other_spelling_is_refused(name):
    data, reason = REFUSED[name]
    with pytest.raises(SignaturesError, match=reason) as refused:
        parse(data)
    assert len(str(refused.value)) < 200


def test_the_document_that_the_refused_ones_differ_from_is_good():
    assert parse(GOOD) == (Signature(b"k" * 32, b"s" * 64),)


def test_a_document_with_one_bit_changed_is_refused_or_another_one():
    for place in range(len(GOOD)):
        for bit in range(8):
            changed = bytearray(GOOD)
            changed[place] ^= 1 << bit
            try:
                found = parse(bytes(changed))
            except SignaturesError:
                continue
            assert encode(found) == changed != GOOD


@pytest.mark.parametrize(
    "fields",
    [
        {"key": bytes(31)}, {"key": bytes(33)}, {"key": "k" * 32}, {"key": bytearray(32)},
        {"signature": bytes(63)}, {"signature": bytes(65)}, {"signature": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_signature_is_valid_from_birth(fields):
    with pytest.raises(SignaturesError):
        Signature(**{"key": bytes(32), "signature": bytes(64), **fields})


def test_a_public_key_has_one_text():
    key = bytes(range(32))
    text = "ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    assert (key_text(key), parse_key(text)) == (text, key)


@pytest.mark.parametrize(
    "text",
    [
        "", "ed25519:", "ed25519", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "ED25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "ed448:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "ed25519: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=",
        "ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==",
        "ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
        "ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=ed25519:",
        "ed25519:ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "ed25519:\u0430AECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    ],
)  # fmt: skip
def test_no_other_text_is_a_public_key(text):
    with pytest.raises(ValueError, match="no public key") as refused:
        parse_key(text)
    assert "AAEC" not in str(refused.value)


PRIME = 2**255 - 19
EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    "height", [0, 1, PRIME - 1, PRIME, PRIME + 1, EIGHTH, PRIME - EIGHTH], ids=hex
)
def test_a_key_for_which_anybody_can_sign_is_none(height, side):
    key = (height | side << 255).to_bytes(32, "little")
    with pytest.raises(ValueError, match="anybody could sign"):
        parse_key(key_text(key))


def test_those_keys_are_the_ones_of_small_order():
    """Doubling a point three times gives the neutral one: worked out by the curve's equations."""
    d = -121665 * pow(121666, -1, PRIME) % PRIME

    def doubled(y):
        """The height of twice a point; x is worked out from -x^2 + y^2 = 1 + d x^2 y^2."""
        squared = (y * y - 1) * pow(d * y * y + 1, -1, PRIME) % PRIME
        return (y * y + squared) * pow(2 + squared - y * y, -1, PRIME) % PRIME

    for height in (0, 1, PRIME - 1, EIGHTH, PRIME - EIGHTH):
        assert doubled(doubled(doubled(height))) == 1
    assert doubled(doubled(EIGHTH)) != 1


@pytest.mark.parametrize("text", ["AA==", "AB==", "A", "AA=", "AA", "=AA=", "QUI="])
def test_base64_is_read_in_its_one_spelling(text):
    assert exact_base64(text, 1) == (b"\0" if text == "AA==" else None)
