"""grpc:// against buildbox-casd: the contract of every engine, and what is of this one alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pypto_store.remote.blob_store import BlobDigest, Engine, RemoteUnavailable
from pypto_store.remote.engines import open_engine
from pypto_store.remote.testing import SMALL, EngineContract, fetch, put
from pypto_store.remote_config import RemoteConfig
from servers import running_casd

pytest.importorskip("grpc", reason="pypto[remote] is not installed")


class TestContract(EngineContract):
    """A server of its own for every test."""

    address: str

    @pytest.fixture(autouse=True)
    def _casd(self, programs: dict[str, Path], tmp_path: Path) -> Iterator[None]:
        with running_casd(programs["casd"], tmp_path) as self.address:
            yield

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        return open_engine(RemoteConfig(f"grpc://{self.address}", readonly=readonly))

    def plant_blob(self, tmp_path: Path, digest: BlobDigest, data: bytes) -> None:
        name = digest.sha256.hex
        path = tmp_path / "casd" / "cas" / "objects" / name[:2] / name[2:]
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(data)

    def plant_entry(self, tmp_path: Path, name: BlobDigest, entry: bytes) -> None:
        with closing(self.make_engine(tmp_path)) as engine:
            engine.entries.put(name, entry)


def test_a_server_that_went_away_is_unavailable(programs: dict[str, Path], tmp_path: Path) -> None:
    with running_casd(programs["casd"], tmp_path) as address:
        engine = open_engine(RemoteConfig(f"grpc://{address}"))
        digest = put(engine.blobs, SMALL)
        assert fetch(engine.blobs, digest) == SMALL
    with closing(engine):
        for step in (
            lambda: engine.blobs.get(digest),
            lambda: engine.blobs.find_missing([digest]),
            lambda: put(engine.blobs, SMALL),
        ):
            with pytest.raises(RemoteUnavailable, match="see whether the server is up"):
                step()
