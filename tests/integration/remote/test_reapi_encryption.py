"""grpcs://: which servers a client believes, and what it shows of itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from pypto_store.remote.blob_store import RemoteUnavailable
from pypto_store.remote.engines import open_engine
from pypto_store.remote.reapi_protocol import GET_ENTRY
from pypto_store.remote.testing import ACTION
from pypto_store.remote_config import RemoteConfig, TlsConfig
from servers import PKI

grpc = pytest.importorskip("grpc", reason="pypto[remote] is not installed")
from scripted_reapi import ScriptedReapi  # noqa: E402 - needs grpc

SERVER, CLIENT, CA = (PKI / name for name in ("server.pem", "client.pem", "ca.pem"))
_KEY = "-----BEGIN PRIVATE KEY-----"


@pytest.fixture(params=[False, True], ids=["server", "both"])
def server(request: pytest.FixtureRequest) -> Iterator[ScriptedReapi]:
    """A server with a certificate; in the second run it wants one of the client too."""
    # The key and the certificate are in one file, and either is found there.
    pair = (SERVER.read_bytes(), SERVER.read_bytes())
    credentials = grpc.ssl_server_credentials([pair], CA.read_bytes(), request.param)
    server = ScriptedReapi(credentials)
    server.answer(GET_ENTRY, lambda asked, context: b"")
    server.wants_certificate = request.param
    yield server
    server.stop()


@pytest.fixture
def tls(tmp_path: Path) -> TlsConfig:
    """The authority, and a certificate of the client with its key in another file."""
    certificate, key = CLIENT.read_text("ascii").split(_KEY)
    (tmp_path / "certificate.pem").write_text(certificate, encoding="ascii")
    (tmp_path / "key.pem").write_text(_KEY + key, encoding="ascii")
    return TlsConfig(CA, tmp_path / "certificate.pem", tmp_path / "key.pem")


def test_a_trusted_server_is_told_the_name_in_the_url(
    server: ScriptedReapi, tls: TlsConfig
) -> None:
    config = RemoteConfig(f"grpcs://me:secret@{server.address}", tls=tls)
    with closing(open_engine(config)) as engine:
        assert engine.entries.get(ACTION) == b""
    assert server.metadata["authorization"] == "Basic bWU6c2VjcmV0"


def test_a_key_may_be_in_the_file_of_its_certificate(server: ScriptedReapi) -> None:
    config = RemoteConfig(f"grpcs://{server.address}", tls=TlsConfig(CA, CLIENT))
    with closing(open_engine(config)) as engine:
        assert engine.entries.get(ACTION) == b""


def test_a_client_without_a_certificate(server: ScriptedReapi, tls: TlsConfig) -> None:
    config = RemoteConfig(f"grpcs://{server.address}", tls=TlsConfig(tls.ca))
    with closing(open_engine(config)) as engine:
        if server.wants_certificate:
            with pytest.raises(RemoteUnavailable):
                engine.entries.get(ACTION)
        else:
            assert engine.entries.get(ACTION) == b""


def test_a_server_of_another_authority_is_not_believed(server: ScriptedReapi) -> None:
    config = RemoteConfig(f"grpcs://me:secret@{server.address}")
    with closing(open_engine(config)) as engine, pytest.raises(RemoteUnavailable) as fault:
        engine.entries.get(ACTION)
    assert "secret" not in str(fault.value)
    assert "certificate is one that RemoteConfig.tls believes" in fault.value.remedy
    assert server.calls == []


def test_an_unencrypted_server_is_not_spoken_to(tls: TlsConfig) -> None:
    server = ScriptedReapi()
    try:
        config = RemoteConfig(f"grpcs://{server.address}", tls=tls)
        with closing(open_engine(config)) as engine, pytest.raises(RemoteUnavailable) as fault:
            engine.entries.get(ACTION)
        assert "the server is one of grpcs://" in fault.value.remedy
        assert server.calls == []
    finally:
        server.stop()


def test_a_server_of_http_is_told_from_one_that_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        answering = threading.Thread(target=_answer_as_http_does, args=(listening,), daemon=True)
        answering.start()
        config = RemoteConfig(f"grpc://127.0.0.1:{port}", timeout=5)
        with closing(open_engine(config)) as engine, pytest.raises(RemoteUnavailable) as fault:
            engine.entries.get(ACTION)
        listening.shutdown(socket.SHUT_RDWR)
        answering.join()
    assert "must begin with http://" in fault.value.remedy


def _answer_as_http_does(listening: socket.socket) -> None:
    """To whoever comes, until nobody can come any more."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection, suppress(ConnectionError):
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            while connection.recv(4096):  # a reset could overtake the answer
                pass


def test_files_that_cannot_be_used_are_named_at_once(tls: TlsConfig, tmp_path: Path) -> None:
    (tmp_path / "garbage.pem").write_text("no certificate")
    absent, garbage = tmp_path / "absent.pem", tmp_path / "garbage.pem"
    for wrong in (
        TlsConfig(absent),
        TlsConfig(garbage),
        TlsConfig(tls.ca, absent),
        TlsConfig(tls.ca, garbage),
        TlsConfig(tls.ca, tls.certificate),
        TlsConfig(tls.ca, tls.certificate, garbage),
    ):
        with pytest.raises(ValueError, match=r"RemoteConfig\.tls cannot be used: .*TlsConfig\("):
            open_engine(RemoteConfig("grpcs://127.0.0.1:1", tls=wrong))
