"""Which engine a URL gets, and what goes around it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from pypto_store import RemoteConfig
from pypto_store.remote import engines
from pypto_store.remote.blob_store import BlobDigest, RemoteRefused, source_of
from pypto_store.remote.engines import open_engine
from pypto_store.remote_config import TlsConfig


def test_every_scheme_has_an_engine_and_no_other_has():
    with pytest.raises(ValueError, match="must start with one of") as caught:
        RemoteConfig("none://")
    assert set(re.findall(r"(\w+)://", str(caught.value))) == set(engines._ENGINES)


def test_an_engine_loads_no_transport_of_others():
    script = (
        "import sys; from pypto_store import RemoteConfig;"
        "from pypto_store.remote.engines import open_engine;"
        "open_engine(RemoteConfig('file:///x')); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert not {b"ssl", b"http.client", b"grpc", b"google.protobuf"} & set(loaded.stdout.split())


def test_files_that_cannot_be_used_are_named_at_once(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    for tls in (
        TlsConfig(ca=tmp_path / "absent.pem"),
        TlsConfig(ca=tmp_path / "ca.pem"),
        TlsConfig(certificate=tmp_path / "ca.pem"),
    ):
        with pytest.raises(ValueError, match=r"RemoteConfig\.tls cannot be used: .*pem"):
            open_engine(RemoteConfig("https://127.0.0.1:1", tls=tls))


def test_a_reader_asks_nobody_before_it_refuses_to_store():
    engine = open_engine(RemoteConfig("http://127.0.0.1:1", readonly=True))
    for store in (
        lambda: engine.blobs.put(BlobDigest.of(b"x"), source_of(b"x")),
        lambda: engine.blobs.put_many({BlobDigest.of(b"x"): b"x"}),
        lambda: engine.entries.put(BlobDigest.of(b"x"), b""),
    ):
        with pytest.raises(RemoteRefused, match=r"http://127\.0\.0\.1:1: put .*readonly"):
            store()
    engine.close()
