"""Pushes and pulls that are killed at every step, and run again."""

from __future__ import annotations

import os
import signal
import threading

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
from pypto_store.remote import disk_cache
from pypto_store.remote.arrival import fetch_entry
from pypto_store.remote.collections import fetch_collection
from pypto_store.remote.engines import open_engine
from pypto_store.remote.trust import ANYONE
from pypto_store.remote_config import RemoteConfig
from pypto_store.testing import PAYLOAD, snapshot
from pypto_store.tools import pull, pushing


@pytest.fixture(autouse=True)
def _bounded(no_sync):
    """Durability is not what is tested here."""


@pytest.fixture
def _in_order(monkeypatch):
    """One entry at a time, so that points come in one order."""
    monkeypatch.setattr(pushing, "LANES", 1)
    monkeypatch.setattr(pull, "LANES", 1)


@pytest.fixture
def source(tmp_path):
    return published(tmp_path)


def is_whole(url, tmp_path):
    """Every entry that a reader finds is one; how many there are."""
    engine = open_engine(RemoteConfig(url))
    count = 0
    for number, (key, spec) in enumerate(WANTED):
        directory = tmp_path / f"read-{number}-{os.urandom(4).hex()}"
        directory.mkdir()
        manifest = fetch_entry(engine, url, key, spec, str(directory), ANYONE)
        if manifest is not None:
            found = {path: (directory / path).read_bytes() for path in PAYLOAD}
            assert found == PAYLOAD
            count += 1
    found = fetch_collection(engine, url, "default", ANYONE)
    listed = 0 if found is None else len(found.collection.entries)
    assert listed <= count, "what is listed is there"
    return count


def test_every_point_of_the_fleet_is_reached(source, tmp_path):
    url = f"file://{tmp_path}/remote"
    reached = set(rehearse("push", "--root", source, "--remote", url))
    reached |= set(rehearse("pull", "--root", tmp_path / "there", "--remote", url))
    assert set(crash_points.FLEET_POINTS) <= reached
    assert reached <= set(crash_points.FLEET_POINTS) | set(crash_points.POINTS)


@pytest.mark.usefixtures("_in_order")
def test_a_push_is_killed_at_every_point_and_goes_on(source, child, tmp_path):
    points = rehearse("push", "--root", source, "--remote", f"file://{tmp_path}/rehearsal")
    assert points == ["push.entry"] * 3 + ["push.listed"]
    before = snapshot(source)
    for number, point in enumerate(points):
        url = f"file://{tmp_path}/remote-{number}"
        killed(child, number, "push", "--root", source, "--remote", url)
        assert is_whole(url, tmp_path) >= min(number + 1, 3), point
        assert command("push", "--root", source, "--remote", url) == 0
        assert is_whole(url, tmp_path) == 3
        assert command("pull", "--root", tmp_path / f"there-{number}", "--remote", url) == 0
    assert snapshot(source) == before


def test_a_push_that_is_killed_between_two_writes_shows_no_half_of_an_entry(
    source, child, tmp_path, monkeypatch
):
    """Killed before each single thing that it stores, whichever lane stores it."""
    stored = [0]
    lock = threading.Lock()
    limit = [-1]
    real = disk_cache._Directory.store

    def counted(self, *arguments, **named):
        with lock:
            stored[0] += 1
            if stored[0] == limit[0]:
                os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *arguments, **named)

    monkeypatch.setattr(disk_cache._Directory, "store", counted)
    command("push", "--root", source, "--remote", f"file://{tmp_path}/rehearsal")
    total, url = stored[0], f"file://{tmp_path}/remote"
    assert total >= 3 * 3
    for number in range(1, total + 1):
        stored[0], limit[0] = 0, number

        def crash():
            return command("push", "--root", source, "--remote", url)

        ended = child(crash).wait()
        assert ended in (0, -signal.SIGKILL)
        is_whole(url, tmp_path)
        if ended == 0:
            break
    limit[0] = -1
    assert command("push", "--root", source, "--remote", url) == 0
    assert is_whole(url, tmp_path) == 3


@pytest.mark.usefixtures("_in_order")
def test_a_pull_is_killed_at_every_point_and_goes_on(source, child, tmp_path):
    url = f"file://{tmp_path}/remote"
    assert command("push", "--root", source, "--remote", url) == 0
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ("--remote", url, "--scratch", scratch)
    points = rehearse("pull", "--root", tmp_path / "rehearsal", *words)
    assert points.count("pull.entry") == 3 and points.count("publish.renamed") == 3
    for number, point in enumerate(points):
        root = tmp_path / f"root-{number}"
        killed(child, number, "pull", "--root", root, *words)
        assert_halfway(root, point)
        assert command("pull", "--root", root, *words) == 0, point
        assert_filled(root, point)
    # What a killed pull leaves outside the store says whose it is.
    left = {path.name.rpartition("-")[0] for path in scratch.iterdir()}
    assert left == {"pypto-pull"}


def test_one_root_takes_a_pull_that_is_killed_again_and_again(source, child, tmp_path):
    url, root = f"file://{tmp_path}/remote", tmp_path / "root"
    assert command("push", "--root", source, "--remote", url) == 0
    words = ("pull", "--root", root, "--remote", url, "--scratch", tmp_path)
    for number in range(0, 60, 7):
        left, lock = [number], threading.Lock()

        def strike(_, left=left, lock=lock):
            with lock:
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


def test_two_pushes_and_two_pulls_at_once_agree(source, child, tmp_path):
    url, root = f"file://{tmp_path}/remote", tmp_path / "root"
    pushes = [child(lambda: command("push", "--root", source, "--remote", url)) for _ in range(2)]
    assert [push.wait() for push in pushes] == [0, 0]
    pulls = [child(lambda: command("pull", "--root", root, "--remote", url)) for _ in range(2)]
    assert [pull_.wait() for pull_ in pulls] == [0, 0]
    store = ArtifactStore(root)
    assert all(isinstance(store.lookup(key, spec), Hit) for key, spec in WANTED)
