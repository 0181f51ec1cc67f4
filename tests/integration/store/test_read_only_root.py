"""A root that cannot be written to: mounted so, owned by someone else, or only configured so."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
WAYS = ["configured", "mounted", "mounted and configured", "another user"]


def use(site: Any, way: str, **options: Any) -> dict[str, Any]:
    """Run a request in one of the ways; where the kernel refuses one, in the next best."""
    readonly = way in {"configured", "mounted and configured"}
    confined: list[list[str]] = [[]]
    if way.startswith("mounted"):
        confined = [["mount", str(site.root)], ["user", str(NOBODY)]]
    elif way == "another user":
        confined = [["user", str(NOBODY)], ["mount", str(site.root)]]
        for directory in (site.work, site.scratch):
            directory.chmod(0o777)
    for attempt in confined:
        try:
            report = site.run(readonly=readonly, confined=attempt, **options)
        except Exception as refused:
            if type(refused).__name__ != "Refused":
                raise
            # Loud: pytest shows it with every summary that Bazel keeps, and in the terminal.
            told = f"\nNOT TESTED AS ASKED ({way}; {' '.join(attempt)}): {refused}\n"
            sys.__stderr__.write(told)  # type: ignore[union-attr]
            continue
        if attempt[:1] == ["user"]:
            assert report["uid"] == NOBODY
        return report
    pytest.fail(f"this machine offers no way to use a root {way}, nor any other real one")


def share_for_reading(root: Path) -> None:
    """What the how-to says: let everyone read what is there."""
    for path in (root, *root.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))


def below(root: Path, report: dict[str, Any]) -> list[str]:
    return [path for path in report["touched"] if Path(path).is_relative_to(root)]


@pytest.mark.conforms("cache.80")
@pytest.mark.parametrize("way", WAYS)
def test_ready_is_served_and_nothing_is_written(filled: Any, snapshot_of: Any, way: str) -> None:
    share_for_reading(filled.root)
    before = snapshot_of(filled.root)
    report = use(filled, way)
    stats = report["stats"]
    assert report["correct"]
    assert report["programs"] == []
    assert stats["ready_hits"] == 1
    assert stats["generation_builds"] == stats["binary_builds"] == 0
    assert stats["misses"] == stats["storage_errors"] == stats["invalid_entries"] == 0
    assert below(filled.root, report) == []
    assert snapshot_of(filled.root) == before


@pytest.mark.conforms("cache.80")
@pytest.mark.parametrize("way", WAYS)
def test_sources_alone_are_restored_and_their_binaries_stay_private(
    filled: Any, snapshot_of: Any, way: str
) -> None:
    shutil.rmtree(filled.slot("ready").parent)
    share_for_reading(filled.root)
    before = snapshot_of(filled.root)
    report = use(filled, way)
    assert report["correct"]
    assert report["stats"]["generated_hits"] == report["stats"]["binary_builds"] == 1
    assert report["stats"]["generation_builds"] == 0
    if way in {"configured", "mounted and configured"}:
        assert below(filled.root, report) == []
    else:
        # The root let itself be tried, and the failure is counted.
        assert report["stats"]["storage_errors"] == 1
    assert snapshot_of(filled.root) == before


@pytest.mark.conforms("cache.80")
@pytest.mark.parametrize("way", WAYS)
def test_a_miss_builds_privately_and_writes_nothing(
    filled: Any, snapshot_of: Any, way: str
) -> None:
    share_for_reading(filled.root)
    before = snapshot_of(filled.root)
    filled.write_kernels((filled.modules / "kernels.py").read_text().replace("= 2.0", "= 5.0"))
    report = use(filled, way)
    assert report["correct"]
    assert report["stats"]["misses"] == 1
    assert report["stats"]["generation_builds"] == report["stats"]["binary_builds"] == 1
    if way in {"configured", "mounted and configured"}:
        assert below(filled.root, report) == []
        assert report["stats"]["storage_errors"] == 0
    else:
        assert report["stats"]["storage_errors"] == 1
    assert snapshot_of(filled.root) == before


def test_discovery_needs_no_more_than_reading(filled: Any, snapshot_of: Any) -> None:
    shutil.rmtree(filled.slot("generated"))
    before = snapshot_of(filled.root)
    report = use(filled, "mounted")
    assert report["correct"]
    assert report["stats"]["ready_hits"] == 1
    assert report["programs"] == []
    assert snapshot_of(filled.root) == before


def test_a_root_that_others_may_not_read_is_built_around(site: Any) -> None:
    """Without the documented chmod; tried by a process that keeps no right of ours."""
    from pypto_store import ArtifactStore, StorageError
    from pypto_store.testing import READY, payload_builder, sample_key

    ArtifactStore(site.root, lock_timeout=10).get_or_build(
        sample_key(), READY, payload_builder(), private_parent=site.top / "p"
    )
    if os.getuid() != 0:
        for path in sorted(site.root.rglob("*"), reverse=True):
            path.chmod(0)
        found = ArtifactStore(site.root).lookup(sample_key(), READY)
        for path in sorted(site.root.rglob("*")):
            path.chmod(0o700)
        assert isinstance(found, StorageError)
        return
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            found = ArtifactStore(site.root).lookup(sample_key(), READY)
            os._exit(0 if isinstance(found, StorageError) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
