"""Verified blobs, over a store in memory that lies in ways no real server could."""

from __future__ import annotations

import io

import pytest
from pypto_store.remote.blob_store import BlobDigest, CorruptBlob, source_of
from pypto_store.remote.verifying import SourceChanged, VerifyingBlobs

DATA = b"0123456789"
DIGEST = BlobDigest.of(DATA)
EMPTY = BlobDigest.of(b"")


class Lying:
    """Gives `data` whatever is asked for, and notes what it is asked."""

    def __init__(self, data: bytes | None) -> None:
        self.data = data
        self.asked: list[str] = []
        self.stored: list[bytes] = []
        self.streams: list[io.BytesIO] = []

    def get(self, digest):
        self.asked.append("get")
        if self.data is None:
            return None
        self.streams.append(io.BytesIO(self.data))
        return self.streams[-1]

    def get_many(self, digests):
        self.asked.append("get_many")
        return {} if self.data is None else {DIGEST: self.data}

    def put(self, digest, source):
        stream = source()
        while piece := stream.read(4):
            self.stored.append(piece)
        stream.close()

    def put_many(self, blobs):
        self.stored += blobs.values()

    def find_missing(self, digests):
        self.asked.append("find_missing")
        return frozenset({*digests, EMPTY, BlobDigest.of(b"not asked for")})


def read(stream, size, pieces=None):
    pieces = [] if pieces is None else pieces
    while piece := stream.read(size):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("size", [1, 3, 10, 11, 1 << 40])
def test_right_bytes_pass(size):
    assert read(VerifyingBlobs(Lying(DATA), "u").get(DIGEST), size) == DATA


@pytest.mark.parametrize("size", [1, 3, 10, 11, 1 << 40])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (b"", "10 bytes early"),
        (DATA[:9], "1 bytes early"),
        (DATA + b"x", "goes on after 10 bytes"),
        (b"x" + DATA[1:], "SHA-256 is"),
        (DATA[:9] + b"x", "SHA-256 is"),
        (DATA * 100, "goes on"),
    ],
)
def test_the_last_piece_of_wrong_bytes_is_kept_back(wrong, says, size):
    inner = Lying(wrong)
    stream = VerifyingBlobs(inner, "remote").get(DIGEST)
    pieces = []
    with pytest.raises(CorruptBlob, match=says) as caught:
        read(stream, size, pieces)
    assert len(b"".join(pieces)) < DIGEST.size
    assert inner.streams[0].tell() <= DIGEST.size + 1
    assert (caught.value.url, caught.value.operation) == ("remote", f"get blob {DIGEST}")
    with pytest.raises(CorruptBlob, match=says):
        stream.read(size)
    stream.close()
    assert inner.streams[0].closed


def test_an_empty_blob_of_another_digest_is_corrupt():
    with pytest.raises(CorruptBlob, match="SHA-256"):
        VerifyingBlobs(Lying(b""), "u").get(BlobDigest(DIGEST.sha256, 0)).read(1)


def test_absent_stays_absent():
    blobs = VerifyingBlobs(Lying(None), "u")
    assert blobs.get(DIGEST) is None and blobs.get_many([DIGEST]) == {}


@pytest.mark.parametrize("wrong", [b"", DATA[:9], DATA + b"x", b"x" + DATA[1:]])
def test_wrong_bytes_among_many_are_corrupt(wrong):
    with pytest.raises(CorruptBlob):
        VerifyingBlobs(Lying(wrong), "u").get_many([DIGEST, EMPTY])


def test_a_blob_that_was_not_asked_for_is_a_fault():
    with pytest.raises(CorruptBlob, match="not asked for"):
        VerifyingBlobs(Lying(DATA), "u").get_many([BlobDigest.of(b"other")])


def test_the_empty_blob_asks_nobody():
    inner = Lying(b"lies")
    blobs = VerifyingBlobs(inner, "u")
    assert blobs.get(EMPTY).read(1) == b""
    assert blobs.get_many([EMPTY]) == {EMPTY: b""}
    assert blobs.find_missing([EMPTY]) == frozenset()
    assert blobs.find_missing([EMPTY, DIGEST]) == {DIGEST}
    assert inner.asked == ["find_missing"]


@pytest.mark.parametrize("wrong", [b"", DATA[:9], DATA + b"x", b"x" + DATA[1:], DATA[:9] + b"x"])
def test_the_last_piece_of_a_changed_source_is_not_sent(wrong):
    inner = Lying(None)
    blobs = VerifyingBlobs(inner, "u")
    with pytest.raises(SourceChanged) as caught:
        blobs.put(DIGEST, source_of(wrong))
    assert caught.value.digest == DIGEST
    assert len(b"".join(inner.stored)) < DIGEST.size
    inner.stored.clear()
    with pytest.raises(SourceChanged):
        blobs.put_many({EMPTY: b"", DIGEST: wrong})
    assert inner.stored == []


def test_right_sources_are_sent():
    inner = Lying(None)
    VerifyingBlobs(inner, "u").put(DIGEST, source_of(DATA))
    assert b"".join(inner.stored) == DATA
