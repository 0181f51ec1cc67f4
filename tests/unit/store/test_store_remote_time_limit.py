"""A request as a whole ends, however well each of its exchanges does."""

from __future__ import annotations

import io

import pytest
from pypto_store.remote.blob_store import SLOWEST, BlobDigest, RemoteUnavailable, source_of
from pypto_store.remote.time_limit import TimeLimit, TimeLimitedEngine, TookTooLong

DATA = b"0123456789"
BLOB = BlobDigest.of(DATA)


class Remote:
    """An engine that does everything."""

    def __init__(self):
        self.blobs = self
        self.entries = self.Entries()
        self.closed = False

    class Entries:
        def get(self, name):
            return DATA

        def put(self, name, entry):
            pass

    def get(self, digest):
        return io.BytesIO(DATA)

    def get_many(self, digests):
        return {BLOB: DATA}

    def put(self, digest, source):
        source().close()

    def put_many(self, blobs):
        pass

    def find_missing(self, digests):
        return frozenset(digests)

    def close(self):
        self.closed = True


def limited(now):
    remote = Remote()
    limit = TimeLimit("http://there", lambda: now[0], seconds=2)
    return TimeLimitedEngine(remote, limit), remote


def operations(engine):
    return {
        "get entry": lambda: engine.entries.get(BLOB),
        "get blob": lambda: engine.blobs.get(BLOB),
        "get 1 blobs": lambda: engine.blobs.get_many([BLOB]),
        "find 1 blobs": lambda: engine.blobs.find_missing([BLOB]),
        "put blob": lambda: engine.blobs.put(BLOB, source_of(DATA)),
        "put 1 blobs": lambda: engine.blobs.put_many({BLOB: DATA}),
        "put entry": lambda: engine.entries.put(BLOB, DATA),
    }


def test_everything_passes_in_time_and_nothing_after_it():
    now = [7]
    engine, remote = limited(now)
    assert engine.entries.get(BLOB) == engine.blobs.get(BLOB).read(100) == DATA
    assert engine.blobs.get_many([BLOB]) == {BLOB: DATA}
    assert engine.blobs.find_missing([BLOB]) == {BLOB}
    for operation in operations(engine).values():
        operation()
    stream = engine.blobs.get(BLOB)
    assert stream.read(1) == b"0"
    now[0] += int(2.1e9)
    for name, operation in operations(engine).items():
        with pytest.raises(TookTooLong, match=rf"http://there: {name}.*has taken 2.1 s") as caught:
            operation()
        assert caught.value.seconds == pytest.approx(2.1)
        assert isinstance(caught.value, RemoteUnavailable)
    with pytest.raises(TookTooLong, match="get blob"):
        stream.read(1)
    stream.close()
    engine.close()
    assert remote.closed


@pytest.mark.parametrize("name", ["get blob", "get 1 blobs", "put blob", "put 1 blobs"])
def test_bytes_that_are_moved_have_time_of_their_own(name, monkeypatch):
    monkeypatch.setattr("pypto_store.remote.time_limit.SLOWEST", len(DATA))  # a second for them
    now = [0]
    engine, _ = limited(now)
    operations(engine)[name]()
    now[0] = int(2.9e9)
    engine.entries.get(BLOB)
    now[0] = int(3.1e9)
    with pytest.raises(TookTooLong):
        engine.entries.get(BLOB)
    assert SLOWEST == 1 << 20


def test_absent_is_absent():
    engine, remote = limited([0])
    remote.get = lambda digest: None
    assert engine.blobs.get(BLOB) is None
