"""http:// and https:// against nginx: the contract of every engine, and who may read and write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import servers
from pypto_store import RemoteConfig, TlsConfig
from pypto_store.remote.blob_store import BlobDigest, Engine, RemoteProtocolError, RemoteRefused
from pypto_store.remote.engines import open_engine
from pypto_store.remote.testing import ACTION, SMALL, EngineContract, encoded_entry, fetch, put
from remotes import authorization
from servers import PKI

_DIGEST = BlobDigest.of(SMALL)


@pytest.fixture(scope="class")
def served(
    request: pytest.FixtureRequest,
    programs: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, Path]]:
    """The address of the server that the tests of a class share, and its directory."""
    directory = tmp_path_factory.mktemp("nginx")
    with servers.running_nginx(
        programs["nginx"], directory, request.cls.access, request.cls.certificate
    ) as address:
        yield address, directory


class NginxContract(EngineContract):
    """The contract over an nginx in which every client gives the writer's name.

    Every test has a path of its own there.
    """

    access = servers.OPEN
    certificate: str | None = None
    address: str
    directory: Path

    @pytest.fixture(autouse=True)
    def _served(self, served: tuple[str, Path], tmp_path: Path) -> None:
        self.path = f"pypto/{tmp_path.name}"
        self.address, directory = served
        self.directory = directory / "data" / self.path

    def engine_of(self, user: tuple[str, str] | None, *, readonly: bool = False) -> Engine:
        headers = () if user is None else authorization(user)
        url = f"http://{self.address}/{self.path}"
        return open_engine(RemoteConfig(url, headers=headers, readonly=readonly))

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        user = None if self.access == servers.OPEN else servers.WRITER
        return self.engine_of(user, readonly=readonly)

    def _plant(self, kind: str, name: BlobDigest, data: bytes) -> None:
        place = self.directory / kind / name.sha256.hex
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def plant_blob(self, tmp_path: Path, digest: BlobDigest, data: bytes) -> None:
        self._plant("cas", digest, data)

    def plant_entry(self, tmp_path: Path, name: BlobDigest, entry: bytes) -> None:
        self._plant("ac", name, entry)


class TestOpen(NginxContract):
    """Anyone reads and writes."""


class TestOnlyUsers(NginxContract):
    """Readers and writers give a name."""

    access = servers.ONLY_USERS

    def test_nobody_without_a_name_is_let_in(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path)) as writer:
            put(writer.blobs, SMALL)
        for user in (None, ("writer", "guessed"), ("nobody", "x")):
            with closing(self.engine_of(user)) as engine:
                for step in (
                    lambda e=engine: e.blobs.get(_DIGEST),
                    lambda e=engine: e.blobs.find_missing([_DIGEST]),
                    lambda e=engine: e.entries.get(ACTION),
                    lambda e=engine: put(e.blobs, SMALL),
                ):
                    with pytest.raises(RemoteRefused) as refusal:
                        step()
                    assert "guessed" not in str(refusal.value)

    def test_a_reader_may_not_write(self, tmp_path: Path) -> None:
        _check_reader(self.make_engine(tmp_path), self.engine_of(servers.READER))


class TestOnlyUsersWrite(NginxContract):
    """Anyone reads; writers give a name."""

    access = servers.ONLY_USERS_WRITE

    def test_a_reader_may_not_write(self, tmp_path: Path) -> None:
        _check_reader(self.make_engine(tmp_path), self.engine_of(None))


class TestEncrypted(TestOnlyUsers):
    """As before, encrypted; the name is in the URL."""

    certificate = "server.pem"

    def engine_of(self, user: tuple[str, str] | None, *, readonly: bool = False) -> Engine:
        name = "" if user is None else ":".join(user) + "@"
        url = f"https://{name}{self.address}/{self.path}"
        return open_engine(RemoteConfig(url, tls=TlsConfig(PKI / "ca.pem"), readonly=readonly))

    def test_a_server_that_cannot_be_believed(self) -> None:
        url = f"https://writer:touch@{self.address}/{self.path}"
        for ca in (None, PKI / "unknown.pem"):
            engine = open_engine(RemoteConfig(url, tls=TlsConfig(ca)))
            with closing(engine), pytest.raises(RemoteProtocolError, match="encryption failed"):
                put(engine.blobs, SMALL)
        assert not self.directory.exists()


def _check_reader(writer: Engine, reader: Engine) -> None:
    """What the writer stored the reader reads, and nothing that it stores is taken."""
    with closing(writer), closing(reader):
        put(writer.blobs, SMALL)
        writer.entries.put(ACTION, encoded_entry(SMALL))
        assert fetch(reader.blobs, _DIGEST) == SMALL
        assert reader.entries.get(ACTION) == encoded_entry(SMALL)
        for step in (
            lambda: put(reader.blobs, b"another"),
            lambda: reader.blobs.put_many({BlobDigest.of(b"another"): b"another"}),
            lambda: reader.entries.put(ACTION, b""),
        ):
            with pytest.raises(RemoteRefused):
                step()
        assert fetch(reader.blobs, BlobDigest.of(b"another")) is None
        assert writer.entries.get(ACTION) == encoded_entry(SMALL)
