"""The shipped contract of engines, run over every engine that needs no server of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from http_cache_server import HttpCacheServer
from pypto_store import RemoteConfig
from pypto_store.remote.engines import open_engine
from pypto_store.remote.memory import MemoryRemote
from pypto_store.remote.read_only import ReadOnlyEngine
from pypto_store.remote.testing import EngineContract

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pypto_store.remote.blob_store import BlobDigest, Engine


class TestMemory(EngineContract):
    """The remote of tests is one as well."""

    @pytest.fixture(autouse=True)
    def _remote(self) -> None:
        self.remote = MemoryRemote()

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        engine = self.remote.open()
        return ReadOnlyEngine(engine, "memory:") if readonly else engine

    def plant_blob(self, tmp_path: Path, digest: BlobDigest, data: bytes) -> None:
        self.remote.held[digest] = data

    def plant_entry(self, tmp_path: Path, name: BlobDigest, entry: bytes) -> None:
        self.remote.entries[name] = entry


class TestDiskCache(EngineContract):
    """A directory, in a place that has to be quoted in a URL."""

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        url = (tmp_path / "a cache of ü").as_uri()
        return open_engine(RemoteConfig(url, readonly=readonly))

    def _plant(self, tmp_path: Path, kind: str, name: BlobDigest, data: bytes) -> None:
        place = tmp_path / "a cache of ü" / kind / name.sha256.hex[:2] / name.sha256.hex
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def plant_blob(self, tmp_path: Path, digest: BlobDigest, data: bytes) -> None:
        self._plant(tmp_path, "cas", digest, data)

    def plant_entry(self, tmp_path: Path, name: BlobDigest, entry: bytes) -> None:
        self._plant(tmp_path, "ac", name, entry)


class TestHttpCache(EngineContract):
    """A server on loopback, with a path before /ac and /cas."""

    server: HttpCacheServer

    @pytest.fixture(autouse=True)
    def _serving(self) -> Iterator[None]:
        self.server = HttpCacheServer()
        yield
        self.server.stop()

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        return open_engine(RemoteConfig(f"{self.server.url}/a/b/", readonly=readonly, timeout=60))

    def plant_blob(self, tmp_path: Path, digest: BlobDigest, data: bytes) -> None:
        self.server.files[f"cas/{digest.sha256}"] = data

    def plant_entry(self, tmp_path: Path, name: BlobDigest, entry: bytes) -> None:
        self.server.files[f"ac/{name.sha256}"] = entry
