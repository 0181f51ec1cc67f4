"""grpc:// against BuildGrid: another server of the same API, and instances that have names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import BlobDigest, RemoteProtocolError, RemoteRefused
from pypto_store.remote.engines import open_engine
from pypto_store.remote.testing import ACTION, LARGE, SMALL, encoded_entry, put
from reapi_contract import ReapiContract
from servers import READ_ONLY_INSTANCE, running_buildgrid

pytest.importorskip("grpc", reason="pypto[remote] is not installed")

_OTHER = "fleet/other"


@pytest.fixture(scope="module")
def server(
    programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RemoteConfig, Path]]:
    """A server with three instances, as whoever uses the first, and where that keeps its blobs."""
    directory = tmp_path_factory.mktemp("buildgrid")
    instances = ["fleet/a", _OTHER, READ_ONLY_INSTANCE]
    with running_buildgrid(programs["buildgrid"], directory, instances) as address:
        yield RemoteConfig(f"grpc://{address}", instance="fleet/a"), directory / "fleet" / "a"


class TestContract(ReapiContract):
    """A server that takes seconds to start: every test has it with another empty directory."""

    @pytest.fixture(autouse=True)
    def _emptied(self, server: tuple[RemoteConfig, Path]) -> Iterator[None]:
        self.config, self.directory = server
        yield
        # Entries are kept as blobs too; in memory is where.
        for part in (self.directory / "cas" / "objects").iterdir():
            shutil.rmtree(part)

    def test_instances_are_apart(self, tmp_path: Path) -> None:
        other = replace(self.config, instance=_OTHER)
        with closing(self.make_engine(tmp_path)) as engine, closing(open_engine(other)) as apart:
            digest = put(engine.blobs, SMALL)
            engine.entries.put(ACTION, encoded_entry(SMALL))
            assert apart.blobs.find_missing([digest]) == {digest}
            assert apart.entries.get(ACTION) is None


def test_nothing_can_be_stored_where_all_may_read(server: tuple[RemoteConfig, Path]) -> None:
    config = replace(server[0], instance=READ_ONLY_INSTANCE)
    with closing(open_engine(config)) as engine:
        assert engine.entries.get(ACTION) is None
        for step in (
            lambda: engine.blobs.put_many({BlobDigest.of(SMALL): SMALL}),
            lambda: put(engine.blobs, SMALL),
            lambda: put(engine.blobs, LARGE),
            lambda: engine.entries.put(ACTION, encoded_entry(SMALL)),
        ):
            with pytest.raises(RemoteRefused):
                step()


def test_an_instance_that_is_not_there_is_named(server: tuple[RemoteConfig, Path]) -> None:
    with closing(open_engine(replace(server[0], instance="nowhere"))) as engine:
        for step in (
            lambda: engine.blobs.find_missing([ACTION]),
            lambda: engine.entries.get(ACTION),
            lambda: put(engine.blobs, SMALL),
        ):
            with pytest.raises(RemoteProtocolError, match=r"nowhere.*RemoteConfig\.instance"):
                step()
