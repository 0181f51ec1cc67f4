"""Users, roots and directories that share one compile, through every kind of remote."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pypto_store import RemoteConfig
from shared_kernels import Home

# It need not exist.
BOB = 64002


@pytest.fixture
def homes() -> Iterator[tuple[Home, Home]]:
    """Two directories that their users can reach, which below pytest's own no other one can."""
    top = Path(tempfile.mkdtemp(prefix="pypto-test-", dir="/tmp"))
    top.chmod(0o755)
    # Without the right to become somebody else it is two homes of one user.
    yield Home(top / "one", None), Home(top / "two", BOB if os.getuid() == 0 else None)
    shutil.rmtree(top)


def test_two_users_share_one_compile(remote: RemoteConfig, homes: tuple[Home, Home]) -> None:
    first, second = homes
    made = first.ask(remote)
    stats = made["stats"]
    assert (stats["remote_misses"], stats["remote_errors"]) == (2, 0)
    assert (stats["generation_builds"], stats["binary_builds"]) == (1, 1)
    found = second.ask(remote, run=True, readonly=True)
    assert found["correct"] and found["key"] == made["key"]
    stats = found["stats"]
    assert (stats["remote_hits"], stats["remote_errors"]) == (2, 0), stats["last_remote_error"]
    assert (stats["generation_builds"], stats["binary_builds"]) == (0, 0)
    assert stats["storage_errors"] == stats["bypasses"] == 0
    assert (found["user"] != made["user"]) == (os.getuid() == 0)
    entries = [sorted(str(path.relative_to(home.root)) for path in home.root.rglob("*.json"))
               for home in homes]  # fmt: skip
    assert entries[0] == entries[1]


def test_a_herd_over_two_roots_compiles_once_a_root_and_sends_once(
    remote: RemoteConfig, tmp_path: Path
) -> None:
    roots = [Home(tmp_path / name, None, factor=5.0) for name in ("one", "two")]
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(roots[i % 2].ask, remote, upload="sync") for i in range(8)]
        herd = [future.result()["stats"] for future in asked]
    for root in (herd[0::2], herd[1::2]):
        for built in ("generation_builds", "binary_builds"):
            assert sum(stats[built] for stats in root) <= 1
    assert sum(stats["remote_uploads"] for stats in herd) == 2
    assert {stats["last_remote_error"] for stats in herd} == {None}
    later = Home(tmp_path / "later", None, factor=5.0).ask(remote, run=True)
    assert later["correct"]
    assert later["stats"]["remote_hits"] == 2
