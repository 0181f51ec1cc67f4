"""The values and faults that all engines share."""

from __future__ import annotations

import pytest
from pypto_store import Digest
from pypto_store.remote.blob_store import (
    BLOB_LIMIT,
    BlobDigest,
    CorruptBlob,
    RemoteFault,
    RemoteProtocolError,
    source_of,
)

EMPTY = Digest.of(b"")


def test_a_blob_is_named_by_digest_and_size():
    assert BlobDigest.of(b"abc") == BlobDigest(Digest.of(b"abc"), 3)
    assert str(BlobDigest.of(b"")) == f"{EMPTY}/0"
    assert BlobDigest(EMPTY, BLOB_LIMIT).size == 2**63 - 1


@pytest.mark.parametrize("size", [-1, BLOB_LIMIT + 1, True, 1.0, "1", None])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ValueError, match="cannot have"):
        BlobDigest(EMPTY, size)


def test_a_digest_is_no_text():
    with pytest.raises(TypeError, match="must be a Digest"):
        BlobDigest(EMPTY.hex, 0)  # type: ignore[arg-type]


def test_a_source_begins_afresh_at_every_call():
    source = source_of(b"abc")
    first = source()
    assert (first.read(2), first.read(2), first.read(2)) == (b"ab", b"c", b"")
    assert source().read(9) == b"abc"


def test_a_fault_says_everything_in_one_line():
    fault = CorruptBlob(url="u", operation="get blob x", reason="2 bytes", remedy="do y")
    assert str(fault) == "u: get blob x: 2 bytes; do y"
    assert (fault.url, fault.operation, fault.reason, fault.remedy) == (
        "u",
        "get blob x",
        "2 bytes",
        "do y",
    )
    assert isinstance(fault, RemoteProtocolError) and isinstance(fault, RemoteFault)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a\n b\t\tc ", "a b c"),
        ("\x1b[2J\x1b]0;mine\x07", "?[2J?]0;mine?"),
        ("\u202egpj.\ud800\x9b", "?gpj.??"),
        ("x" * 5_000_000, "x" * 1000 + "..."),
    ],
)
def test_what_others_say_is_one_short_line_that_no_terminal_obeys(said, shown):
    fault = RemoteFault(url="u", operation="o", reason=said, remedy="r")
    assert fault.reason == shown and str(fault) == f"u: o: {shown}; r"
