"""grpcs:// to an nginx before casd: who is let in with a name, and who with a certificate to read.

The faults of nginx are answers of HTTP, which gRPC makes statuses of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import servers
from pypto_store import RemoteConfig, TlsConfig
from pypto_store.remote.blob_store import (
    BlobDigest,
    Engine,
    RemoteProtocolError,
    RemoteRefused,
    RemoteUnavailable,
)
from pypto_store.remote.engines import open_engine
from pypto_store.remote.testing import (
    ACTION,
    LARGE,
    SMALL,
    encoded_entry,
    fetch,
    put,
    put_action,
)
from reapi_contract import ReapiContract
from servers import PKI

pytest.importorskip("grpc", reason="pypto[remote] is not installed")

CA = PKI / "ca.pem"


class TestNamed(ReapiContract):
    """Whoever gives a writer's name reads and writes."""

    @pytest.fixture(autouse=True)
    def _servers(self, programs: dict[str, Path], tmp_path: Path) -> Iterator[None]:
        with (
            servers.running_casd(programs["casd"], tmp_path) as behind,
            servers.running_front(
                programs["nginx"], tmp_path / "front", behind, servers.ONLY_WRITERS
            ) as self.address,
        ):
            self.directory = tmp_path / "casd"
            self.config = self._named(*servers.WRITER)
            yield

    def _named(self, name: str, password: str) -> RemoteConfig:
        return RemoteConfig(f"grpcs://{name}:{password}@{self.address}", tls=TlsConfig(CA))

    def test_nobody_else_is_let_in(self) -> None:
        nobody = RemoteConfig(f"grpcs://{self.address}", tls=TlsConfig(CA))
        for config in (nobody, self._named("writer", "guessed"), self._named("nobody", "x")):
            with closing(open_engine(config)) as engine:
                for step in (*_reading(engine), *_writing(engine)):
                    with pytest.raises(RemoteRefused) as refusal:
                        step()
                    assert "guessed" not in str(refusal.value)


@pytest.fixture(scope="module")
def stocked(
    programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, RemoteConfig]]:
    """A casd that has something, and who asks for it with a certificate through nginx."""
    directory = tmp_path_factory.mktemp("certified")
    with (
        servers.running_casd(programs["casd"], directory) as behind,
        servers.running_front(
            programs["nginx"], directory / "front", behind, servers.ONLY_CERTIFIED_READ
        ) as address,
    ):
        with closing(open_engine(RemoteConfig(f"grpc://{behind}"))) as engine:
            for data in (SMALL, LARGE):
                put(engine.blobs, data)
            put_action(engine.blobs)
            engine.entries.put(ACTION, encoded_entry(SMALL))
        tls = TlsConfig(CA, PKI / "client.pem")
        yield behind, RemoteConfig(f"grpcs://{address}", tls=tls)


def test_who_has_a_certificate_reads(stocked: tuple[str, RemoteConfig]) -> None:
    with closing(open_engine(stocked[1])) as engine:
        small, large, other = (BlobDigest.of(data) for data in (SMALL, LARGE, b"other"))
        assert fetch(engine.blobs, small) == SMALL
        assert fetch(engine.blobs, large) == LARGE
        assert engine.blobs.get_many([small, large, other]) == {small: SMALL, large: LARGE}
        assert engine.blobs.find_missing([small, other]) == {other}
        assert engine.entries.get(ACTION) == encoded_entry(SMALL)
        assert engine.entries.get(other) is None


def test_nothing_that_a_reader_stores_is_taken(stocked: tuple[str, RemoteConfig]) -> None:
    behind, config = stocked
    with closing(open_engine(config)) as engine:
        for step in _writing(engine):
            with pytest.raises(RemoteRefused, match="403"):
                step()
    with closing(open_engine(RemoteConfig(f"grpc://{behind}"))) as engine:
        refused = {BlobDigest.of(data) for data in _REFUSED}
        assert engine.blobs.find_missing(refused) == refused
        assert engine.entries.get(ACTION) == encoded_entry(SMALL)


@pytest.mark.parametrize("certificate", [None, "expired.pem", "unknown.pem"])
def test_who_has_none_that_counts_is_not_let_in(
    stocked: tuple[str, RemoteConfig], certificate: str | None
) -> None:
    tls = TlsConfig(CA, None if certificate is None else PKI / certificate)
    with closing(open_engine(replace(stocked[1], tls=tls))) as engine:
        for step in (*_reading(engine), *_writing(engine)):
            # What nginx says of it, gRPC has no better status for.
            with pytest.raises(RemoteProtocolError, match="status: 400"):
                step()


@pytest.mark.parametrize(
    ("certificate", "reason"),
    [
        ("expired.pem", "certificate has expired"),
        ("stranger.pem", "Hostname Verification"),
        ("unknown.pem", "self.signed"),
    ],
)
def test_a_front_that_cannot_be_believed_is_told_nothing(
    programs: dict[str, Path], tmp_path: Path, certificate: str, reason: str
) -> None:
    # Nobody is behind it: who believed it would hear of that.
    with servers.running_front(
        programs["nginx"], tmp_path, "127.0.0.1:1", servers.ONLY_WRITERS, certificate
    ) as address:
        config = RemoteConfig(f"grpcs://writer:touch@{address}", tls=TlsConfig(CA))
        engine = open_engine(config)
        with closing(engine), pytest.raises(RemoteUnavailable, match=reason):
            engine.entries.get(ACTION)


_REFUSED = (b"refused", LARGE + b"refused")


def _reading(engine: Engine) -> list[Callable[[], object]]:
    digest = BlobDigest.of(SMALL)
    return [
        lambda: engine.blobs.get(digest),
        lambda: engine.blobs.get_many([digest]),
        lambda: engine.blobs.find_missing([digest]),
        lambda: engine.entries.get(ACTION),
    ]


def _writing(engine: Engine) -> list[Callable[[], object]]:
    blobs = {BlobDigest.of(data): data for data in _REFUSED}
    return [
        *(partial(put, engine.blobs, data) for data in _REFUSED),
        lambda: engine.blobs.put_many(blobs),
        lambda: engine.entries.put(ACTION, encoded_entry(b"refused")),
    ]
