"""http:// against nginx: the contract of every engine, and who may read and write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import servers
from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import BlobDigest, Engine, RemoteRefused
from pypto_store.remote.engines import open_engine
from pypto_store.remote.testing import ACTION, SMALL, EngineContract, encoded_entry, fetch, put
from remotes import authorization

_DIGEST = BlobDigest.of(SMALL)


def _engine(address: str, user: tuple[str, str] | None = None, *, readonly: bool = False) -> Engine:
    headers = () if user is None else authorization(user)
    return open_engine(RemoteConfig(f"http://{address}/pypto", headers=headers, readonly=readonly))


class NginxContract(EngineContract):
    """The contract over an nginx in which every client gives the writer's name."""

    access = servers.OPEN
    address: str

    @pytest.fixture(autouse=True)
    def _nginx(self, programs: dict[str, Path], tmp_path: Path) -> Iterator[None]:
        with servers.running_nginx(programs["nginx"], tmp_path, self.access) as self.address:
            yield

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        user = None if self.access == servers.OPEN else servers.WRITER
        return _engine(self.address, user, readonly=readonly)

    def _plant(self, tmp_path: Path, kind: str, name: BlobDigest, data: bytes) -> None:
        place = tmp_path / "data" / "pypto" / kind / name.sha256.hex
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def plant_blob(self, tmp_path: Path, digest: BlobDigest, data: bytes) -> None:
        self._plant(tmp_path, "cas", digest, data)

    def plant_entry(self, tmp_path: Path, name: BlobDigest, entry: bytes) -> None:
        self._plant(tmp_path, "ac", name, entry)


class TestOpen(NginxContract):
    """Anyone reads and writes."""


class TestOnlyUsers(NginxContract):
    """Readers and writers give a name."""

    access = servers.ONLY_USERS

    def test_nobody_without_a_name_is_let_in(self, tmp_path: Path) -> None:
        with closing(self.make_engine(tmp_path)) as writer:
            put(writer.blobs, SMALL)
        for user in (None, ("writer", "guessed"), ("nobody", "x")):
            with closing(_engine(self.address, user)) as engine:
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
        _check_reader(self.make_engine(tmp_path), _engine(self.address, servers.READER))


class TestOnlyUsersWrite(NginxContract):
    """Anyone reads; writers give a name."""

    access = servers.ONLY_USERS_WRITE

    def test_a_reader_may_not_write(self, tmp_path: Path) -> None:
        _check_reader(self.make_engine(tmp_path), _engine(self.address))


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
