"""Every kind of remote that tests here start keeps what it is given, for every other client."""

from __future__ import annotations

from contextlib import closing

from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import BlobDigest
from pypto_store.remote.engines import open_engine
from pypto_store.remote.testing import ACTION, LARGE, SMALL, encoded_entry, fetch, put, put_action


def test_what_one_client_stores_another_has(remote: RemoteConfig) -> None:
    with closing(open_engine(remote)) as engine:
        digests = [put(engine.blobs, data) for data in (SMALL, LARGE)]
        put_action(engine.blobs)
        engine.entries.put(ACTION, encoded_entry(SMALL))
    with closing(open_engine(remote)) as other:
        assert other.blobs.find_missing([*digests, ACTION]) == frozenset()
        assert fetch(other.blobs, BlobDigest.of(LARGE)) == LARGE
        assert other.entries.get(ACTION) == encoded_entry(SMALL)
