"""grpc:// against buildbox-casd: the contract of every engine, and what is of this one alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import RemoteUnavailable
from pypto_store.remote.engines import open_engine
from pypto_store.remote.testing import SMALL, fetch, put
from reapi_contract import ReapiContract
from servers import running_casd

pytest.importorskip("grpc", reason="pypto[remote] is not installed")


class TestContract(ReapiContract):
    """A server of its own for every test: it has one instance."""

    @pytest.fixture(autouse=True)
    def _casd(self, programs: dict[str, Path], tmp_path: Path) -> Iterator[None]:
        self.directory = tmp_path / "casd"
        with running_casd(programs["casd"], tmp_path) as address:
            self.config = RemoteConfig(f"grpc://{address}")
            yield


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
