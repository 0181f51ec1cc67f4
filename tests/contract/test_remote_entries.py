"""The shipped contract of entries, over every engine that needs no server of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from http_cache_server import HttpCacheServer
from pypto_store import RemoteConfig
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_testing import EntryContract

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pypto_store.remote.blob_store import Engine


class TestDiskCache(EntryContract):
    """A directory."""

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        return open_engine(RemoteConfig((tmp_path / "remote").as_uri(), readonly=readonly))


class TestHttpCache(EntryContract):
    """A server on loopback that all tests share."""

    url: str

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _serving(cls) -> Iterator[None]:
        server = HttpCacheServer()
        cls.url = server.url
        yield
        server.stop()

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        return open_engine(RemoteConfig(self.url, readonly=readonly))
