"""The programs of the servers that tests here start, and the remotes behind them.

bazelw makes or finds the programs; with plain pytest, PYPTO_TEST_CACHE_SERVERS names the
servers.json of its cache directory, and PYPTO_TEST_BAZEL a file with {"bazel": "/path/of/bazel"}.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# The tests of this folder share modules that are no tests.
sys.path.insert(0, os.path.dirname(__file__))

from remotes import RUNNING

if TYPE_CHECKING:
    from pypto_store import RemoteConfig


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    """Server programs by name: buildgrid, casd and nginx."""
    listing = os.environ.get("PYPTO_TEST_CACHE_SERVERS")
    if not listing:
        pytest.skip("PYPTO_TEST_CACHE_SERVERS names no servers.json; bazelw sets it")
    text = Path(listing).read_text(encoding="utf-8")
    return {name: Path(path) for name, path in json.loads(text).items()}


@pytest.fixture(scope="session")
def bazel() -> Path:
    """The Bazel that runs these tests, to be run by them."""
    listing = os.environ.get("PYPTO_TEST_BAZEL")
    if not listing:
        pytest.skip("PYPTO_TEST_BAZEL names no bazel.json; bazelw sets it")
    return Path(json.loads(Path(listing).read_text(encoding="utf-8"))["bazel"])


@pytest.fixture(scope="module", params=RUNNING)
def remote(
    request: pytest.FixtureRequest,
    programs: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RemoteConfig]:
    """Each kind of remote in turn, read and written by whoever has this configuration.

    Its server runs as long as the tests of the module need this kind.
    """
    with RUNNING[request.param](programs, tmp_path_factory.mktemp(request.param)) as config:
        if config.scheme.startswith("grpc"):
            pytest.importorskip("grpc", reason="pypto[remote] is not installed")
        yield config
