"""grpc:// against buildbox-casd: the contract of every engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pypto_store import RemoteConfig
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
