"""Exports and imports that are killed at every step, and run again."""

from __future__ import annotations

import os
import signal

import pytest
from killed_commands import (
    WANTED,
    assert_filled,
    assert_halfway,
    command,
    killed,
    published,
    rehearse,
)
from pypto_store import ArtifactStore, Hit, crash_points
from pypto_store.testing import snapshot


@pytest.fixture(autouse=True)
def _bounded(no_sync):
    """Durability is not what is tested here."""


@pytest.fixture
def source(tmp_path):
    return published(tmp_path)


def test_every_point_of_bundles_is_reached(source, tmp_path):
    bundle, there = tmp_path / "b", tmp_path / "there"
    reached = set(rehearse("export", "--root", source, "--all", "-o", bundle))
    reached |= set(rehearse("import", "--root", there, "--scratch", tmp_path, bundle))
    assert set(crash_points.BUNDLE_POINTS) <= reached
    assert reached <= set(crash_points.BUNDLE_POINTS) | set(crash_points.POINTS)


def test_an_import_is_killed_at_every_point_and_goes_on(source, child, tmp_path):
    bundle = tmp_path / "b"
    assert command("export", "--root", source, "--all", "-o", bundle) == 0
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ("--scratch", scratch, bundle)
    points = rehearse("import", "--root", tmp_path / "rehearsal", *words)
    verified = points.index("import.verified")
    for number, point in enumerate(points):
        root = tmp_path / f"root-{number}"
        killed(child, number, "import", "--root", root, *words)
        if number <= verified:
            assert not root.exists(), point
        assert_halfway(root, point)
        assert command("import", "--root", root, *words) == 0, point
        assert_filled(root, point)
    # What a killed import leaves outside the store says whose it is.
    left = {path.name.rpartition("-")[0] for path in scratch.iterdir()}
    assert left == {"pypto-import"}


def test_one_root_takes_an_import_that_is_killed_again_and_again(source, child, tmp_path):
    bundle, root = tmp_path / "b", tmp_path / "root"
    assert command("export", "--root", source, "--all", "-o", bundle) == 0
    words = ("import", "--root", root, "--scratch", tmp_path, bundle)
    count = len(rehearse("import", "--root", tmp_path / "r", "--scratch", tmp_path, bundle))
    for number in range(0, count, 3):
        left = [number]

        def strike(_, left=left):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

        def crash(strike=strike):
            with crash_points.armed(strike):
                return command(*words)

        if child(crash).wait() == 0:
            break
    assert command(*words) == 0
    store = ArtifactStore(root)
    assert all(isinstance(store.lookup(key, spec), Hit) for key, spec in WANTED)


def test_an_export_is_killed_at_every_point_and_leaves_the_old_file_or_the_new(
    source, child, tmp_path
):
    bundle = tmp_path / "out" / "b"
    bundle.parent.mkdir()
    words = ("export", "--root", source, "--all", "-o", bundle)
    points = rehearse(*words)
    new = bundle.read_bytes()
    before = snapshot(source)
    for number, point in enumerate(points):
        bundle.write_bytes(b"old")
        killed(child, number, *words)
        assert bundle.read_bytes() == (new if point == "output.named" else b"old"), point
        assert snapshot(source) == before
        assert command(*words) == 0
        assert bundle.read_bytes() == new
    left = [path.name for path in bundle.parent.iterdir() if path != bundle]
    assert left
    assert all(name.startswith(".b.") and name.endswith(".partial") for name in left)
