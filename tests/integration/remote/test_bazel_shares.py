"""Bazel and the store in one cache: each has what it stored, whatever the other stores after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from bazel import ACTIONS, Workspace, running_bazel
from pypto_store.remote.blob_store import BlobDigest
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_testing import URL, fetched, publish
from pypto_store.remote.sending import send_entry
from pypto_store.remote.testing import fetch
from pypto_store.remote.trust import ANYONE
from pypto_store.testing import GENERATED, PAYLOAD, sample_key
from remotes import RUNNING


@pytest.fixture(scope="module")
def workspace(bazel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One Bazel for all: it takes seconds to start."""
    with running_bazel(bazel, tmp_path_factory.mktemp("bazel")) as workspace:
        yield workspace


@pytest.mark.parametrize("kind", ["casd", "buildgrid", "nginx", "file"])
def test_each_hits_its_own_after_the_other_wrote(
    kind: str, programs: dict[str, Path], workspace: Workspace, tmp_path: Path
) -> None:
    with (
        RUNNING[kind](programs, tmp_path) as remote,
        closing(open_engine(remote)) as engine,
        closing(open_engine(remote)) as other_machine,
    ):
        before = publish(tmp_path / "a", sample_key("before"), GENERATED, PAYLOAD)
        assert send_entry(engine, URL, before, ANYONE, None).entry_sent

        processes, made = workspace.build(remote)
        assert processes == {"local": ACTIONS}
        assert made == b"1\n2\n3\n4\n"
        assert fetch(engine.blobs, BlobDigest.of(made)) == made  # it is one cache

        # A payload that has a file of Bazel's among its own.
        payload = {**PAYLOAD, "numbers.txt": made}
        after = publish(tmp_path / "b", sample_key("after"), GENERATED, payload)
        assert send_entry(engine, URL, after, ANYONE, None).entry_sent

        hit = "disk cache hit" if kind == "file" else "remote cache hit"
        assert workspace.build(remote) == ({hit: ACTIONS}, made)
        for number, entry in enumerate((before, after)):
            place = tmp_path / f"fetched{number}"
            assert fetched(other_machine, entry.key, GENERATED, place) == entry.manifest
