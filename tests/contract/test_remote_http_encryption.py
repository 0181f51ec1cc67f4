"""https:// on loopback: who is believed, who is let in, and what a password in a URL becomes."""

from __future__ import annotations

import base64
import ssl
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from http_cache_server import HttpCacheServer
from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import BlobDigest, RemoteProtocolError, RemoteUnavailable
from pypto_store.remote.engines import open_engine
from pypto_store.remote.testing import LARGE, EngineContract, fetch, put
from pypto_store.remote_config import TlsConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pypto_store.remote.blob_store import Engine

PKI = Path(__file__).parents[1] / "pki"
CA = TlsConfig(ca=PKI / "ca.pem")
CLIENT = TlsConfig(ca=PKI / "ca.pem", certificate=PKI / "client.pem")
BLOB = BlobDigest.of(b"x")


def _context(certificate: str, *, clients: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PKI / certificate)
    if clients:
        context.load_verify_locations(PKI / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture
def serve() -> Iterator[Callable[..., HttpCacheServer]]:
    """Starts servers with a certificate."""
    servers: list[HttpCacheServer] = []

    def start(certificate: str = "server.pem", *, clients: bool = False) -> HttpCacheServer:
        servers.append(HttpCacheServer(_context(certificate, clients=clients)))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


class TestEncryptedHttpCache(EngineContract):
    """The contract, with a server and a client that show each other certificates."""

    server: HttpCacheServer

    @pytest.fixture(autouse=True)
    def _serving(self, serve: Callable[..., HttpCacheServer]) -> None:
        self.server = serve(clients=True)

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        return open_engine(RemoteConfig(self.server.url, readonly=readonly, tls=CLIENT))

    def plant_blob(self, tmp_path: Path, digest: BlobDigest, data: bytes) -> None:
        self.server.files[f"cas/{digest.sha256}"] = data

    def plant_entry(self, tmp_path: Path, name: BlobDigest, entry: bytes) -> None:
        self.server.files[f"ac/{name.sha256}"] = entry


@pytest.mark.parametrize(
    ("certificate", "tls", "reason"),
    [
        ("server.pem", None, "unable to get local issuer|self.signed"),
        ("expired.pem", CA, "certificate has expired"),
        ("stranger.pem", CA, "IP address mismatch"),
    ],
)
def test_a_server_that_cannot_be_believed_gets_no_request(serve, certificate, tls, reason):
    server = serve(certificate)
    with closing(open_engine(RemoteConfig(server.url, tls=tls))) as engine:
        for step in (lambda: engine.entries.get(BLOB), lambda: put(engine.blobs, LARGE)):
            with pytest.raises(RemoteProtocolError, match=f"encryption failed: .*({reason})"):
                step()
    assert server.requests == []


def test_a_client_without_a_certificate_is_not_let_in(serve):
    server = serve(clients=True)
    engine = open_engine(RemoteConfig(server.url, tls=CA))
    # Which of the two depends on whether the server's word comes before it hangs up.
    with pytest.raises((RemoteProtocolError, RemoteUnavailable)):
        engine.entries.get(BLOB)
    assert server.requests == []


def test_a_name_in_the_url_goes_along_encrypted_and_is_shown_nowhere(serve):
    server = serve()
    url = server.url.replace("//", "//name:sec%40ret@")
    with closing(open_engine(RemoteConfig(url, tls=CA))) as engine:
        assert fetch(engine.blobs, put(engine.blobs, b"x")) == b"x"
    for _, _, headers in server.requests:
        method, _, text = headers["Authorization"].partition(" ")
        assert (method, base64.b64decode(text)) == ("Basic", b"name:sec@ret")
    server.files[f"cas/{BLOB.sha256}"] = b"y"
    engine = open_engine(RemoteConfig(url, tls=CA))
    with closing(engine), pytest.raises(RemoteProtocolError) as caught:
        fetch(engine.blobs, BLOB)
    assert "sec" not in str(caught.value) and "name" not in str(caught.value)
