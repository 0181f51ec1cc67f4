"""The wire form of the messages that entries are made of."""

from __future__ import annotations

import pytest
from pypto_store import Digest
from pypto_store.remote.blob_store import BlobDigest
from pypto_store.remote.messages import (
    Action,
    ActionResult,
    Command,
    MessageError,
    OutputFile,
    decode_digest,
    encode_digest,
)

BLOB = BlobDigest.of(b"abc")
HASH = BLOB.sha256.hex.encode()
DIGEST = b"\x0a\x40" + HASH + b"\x10\x03"  # 1: hash, 2: size_bytes
FILE = b"\x0a\x01f\x12\x44" + DIGEST + b"\x20\x01"  # 1: path, 2: digest, 4: is_executable


def test_the_bytes_are_those_of_protocol_buffers():
    assert encode_digest(BLOB) == DIGEST
    assert encode_digest(BlobDigest(BLOB.sha256, 300)) == b"\x0a\x40" + HASH + b"\x10\xac\x02"
    assert encode_digest(BlobDigest(BLOB.sha256, 0)) == b"\x0a\x40" + HASH
    assert Command(("pypto", "", "ü")).encode() == b"\x0a\x05pypto\x0a\x00\x0a\x02\xc3\xbc"
    assert Action(BLOB, BLOB).encode() == b"\x0a\x44" + DIGEST + b"\x12\x44" + DIGEST
    assert OutputFile("f", BLOB, True).encode() == FILE
    assert OutputFile("", BLOB).encode() == b"\x12\x44" + DIGEST
    assert ActionResult((OutputFile("f", BLOB, True),)).encode() == b"\x12\x4b" + FILE
    assert ActionResult((), 1).encode() == b"\x20\x01"
    assert ActionResult((), -1).encode() == b"\x20" + b"\xff" * 9 + b"\x01"


@pytest.mark.parametrize(
    "unknown",
    [
        b"\x78\x00",  # 15: a number
        b"\x79" + bytes(8),  # 15: 64 bits
        b"\x7a\x03abc",  # 15: bytes
        b"\x7d" + bytes(4),  # 15: 32 bits
        b"\x7b\x10\x05\x7b\x12\x01x\x7c\x7c",  # 15: a group, with known numbers and itself inside
        b"\xfa\xff\xff\xff\x0f\x00",  # the largest number a field can have
    ],
)
def test_unknown_fields_are_skipped(unknown):
    assert decode_digest(unknown + DIGEST + unknown) == BLOB
    assert OutputFile.decode(unknown + FILE + unknown) == OutputFile("f", BLOB, True)


def test_what_is_given_again_counts_and_parts_are_merged():
    assert decode_digest(b"\x0a\x01x\x10\x07" + DIGEST) == BLOB
    parts = b"\x12\x42\x0a\x40" + HASH + b"\x12\x02\x10\x03"
    assert OutputFile.decode(b"\x20\x01\x20\x00" + parts) == OutputFile("", BLOB, False)


def test_numbers_may_be_longer_than_they_need_to_be():
    assert decode_digest(b"\x8a\x00\xc0\x00" + HASH + b"\x10\x83\x80\x00") == BLOB
    assert ActionResult.decode(b"\x20\xff\xff\xff\xff\x0f") == ActionResult((), -1)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x0a", "cut off"),
        (b"\x0a\x41" + HASH, "65 bytes, but 64"),
        (DIGEST[:-1], "cut off"),
        (b"\x10\xff", "cut off"),
        (b"\x79" + bytes(7), "cut off"),
        (b"\x7d" + bytes(3), "cut off"),
        (b"\x10" + b"\xff" * 10 + b"\x00", "64 bits"),
        (b"\x10" + b"\xff" * 9 + b"\x02", "64 bits"),
        (b"\x00\x00", "number 0"),
        (b"\x80\x80\x80\x80\x10\x00", "number 536870912"),
        (b"\xf8\x80\x80\x80\x80\x00\x00", "field has 6 bytes"),
        (b"\x7e", "no known kind"),
        (b"\x7f", "no known kind"),
        (b"\x7b", "does not end"),
        (b"\x7c", "without having begun"),
        (b"\x7b\x74", "without having begun"),
        (b"\x7b" * 101, "more than 100 groups"),
        (b"\x08\x01", "field 1 is a number"),
        (b"\x0a\x40" + HASH + b"\x12\x00", "field 2 is no number"),
        (b"\x0a\x01\xff", "UTF-8"),
        (b"", "not a SHA-256"),
        (b"\x0a\x40" + HASH.upper(), "not a SHA-256"),
        (b"\x0a\x3f" + HASH[:-1], "not a SHA-256"),
        (b"\x0a\x40" + HASH + b"\x10" + b"\xff" * 9 + b"\x01", "cannot have -1 bytes"),
    ],
)
def test_what_is_no_digest_is_refused(data, says):
    with pytest.raises(MessageError, match=says):
        decode_digest(data)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (OutputFile, b"\x0a\x01f"),
        (Action, b"\x0a\x44" + DIGEST),
        (ActionResult, b"\x12\x03\x0a\x01f"),
        (ActionResult, b"\x22\x00"),
        (Command, b"\x0a\x01\xff"),
        (Command, b"\x08\x01"),
    ],
)
def test_incomplete_messages_are_refused(kind, data):
    with pytest.raises(MessageError):
        kind.decode(data)


@pytest.mark.parametrize("code", [2**31, -(2**31) - 1, True, 1.0])
def test_an_exit_code_has_32_bits(code):
    with pytest.raises(ValueError, match="32 bits"):
        ActionResult((), code)


def test_words_that_are_no_unicode_have_no_bytes():
    with pytest.raises(ValueError, match="surrogates"):
        Command(("\ud800",)).encode()


def test_a_size_has_63_bits():
    largest = BlobDigest(Digest.of(b""), 2**63 - 1)
    assert decode_digest(encode_digest(largest)) == largest
