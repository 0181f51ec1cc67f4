"""The contract of engines over servers of the Remote Execution API that keep blobs as files.

casd and BuildGrid lay a directory out alike, and both keep what they have of a blob, whatever is
sent later under the same digest.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pypto_store import RemoteConfig
from pypto_store.remote.blob_store import BlobDigest, CorruptBlob, Engine
from pypto_store.remote.engines import open_engine
from pypto_store.remote.testing import LARGE, SMALL, EngineContract, fetch, put


def object_file(directory: Path, digest: BlobDigest) -> Path:
    """The file in which the server that keeps its blobs below `directory` has this one."""
    name = digest.sha256.hex
    return directory / "cas" / "objects" / name[:2] / name[2:]


class ReapiContract(EngineContract):
    """A subclass sets `config` and `directory` before each test; the remote is then empty."""

    config: RemoteConfig
    directory: Path

    def make_engine(self, tmp_path: Path, *, readonly: bool = False) -> Engine:
        return open_engine(replace(self.config, readonly=readonly))

    def plant_blob(self, tmp_path: Path, digest: BlobDigest, data: bytes) -> None:
        path = object_file(self.directory, digest)
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(data)

    def plant_entry(self, tmp_path: Path, name: BlobDigest, entry: bytes) -> None:
        with closing(self.make_engine(tmp_path)) as engine:
            engine.entries.put(name, entry)

    def test_what_is_damaged_can_be_stored_again(self, tmp_path: Path) -> None:
        """Not at these servers, but nobody is given the wrong bytes."""
        for data in (SMALL, LARGE):
            digest = BlobDigest.of(data)
            self.plant_blob(tmp_path, digest, data[:-1] + b"x")
            with closing(self.make_engine(tmp_path)) as engine:
                put(engine.blobs, data)
                with pytest.raises(CorruptBlob):
                    fetch(engine.blobs, digest)
