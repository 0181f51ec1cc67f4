"""The shipped contract of entries, over every kind of remote that tests here start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import Engine
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_testing import EntryContract


class TestEntries(EntryContract):
    """One server of a kind for all tests."""

    remote: RemoteConfig

    @pytest.fixture(autouse=True)
    def _remote(self, remote: RemoteConfig) -> None:
        self.remote = remote

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        return open_engine(replace(self.remote, readonly=readonly))
