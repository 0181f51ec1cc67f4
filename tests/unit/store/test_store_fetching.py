"""What a store asks a remote for, when, and what becomes of the answer."""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
from pathlib import Path

import pypto_store
import pytest
from pypto_store import (
    ArtifactStore,
    Failure,
    Fetched,
    Hit,
    Invalid,
    Miss,
    Private,
    Published,
    crash_points,
    fetching,
    linux,
)
from pypto_store.locks import acquire, try_acquire
from pypto_store.remote.stocked import StockedRemote
from pypto_store.testing import (
    EXECUTABLES,
    GENERATED,
    PAYLOAD,
    READY,
    payload_builder,
    sample_key,
    snapshot,
)

KEY = sample_key()
NAME = (KEY.digest.hex, READY.digest.hex)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


@pytest.fixture
def remote(tmp_path):
    return StockedRemote(tmp_path / "far" / "root")


@pytest.fixture
def stocked(remote, tmp_path):
    """The remote has the entry."""
    made = remote.store.get_or_build(
        KEY, READY, payload_builder(), private_parent=tmp_path / "far" / "p"
    )
    assert isinstance(made, Published)
    return remote


def ask(root, remote, calls=None, *, spec=READY, readonly=False, timeout=20.0, **more):
    store = ArtifactStore(root, readonly=readonly, lock_timeout=timeout, remote=remote)
    return store.get_or_build(
        KEY, spec, payload_builder(calls=calls), private_parent=root.parent / "p", **more
    )


def nothing_private(root):
    return not (root.parent / "p").exists()


def forbidden(*_):
    raise AssertionError("must not be called")


def test_what_a_remote_has_is_published_and_not_built(root, stocked):
    result = ask(root, stocked, calls := [], recheck=forbidden)
    assert isinstance(result, Fetched)
    assert (result.private, result.failure, result.damaged_blobs) == (False, None, ())
    assert calls == [] and stocked.offered == [] and stocked.asked == [NAME]
    assert {path: result.entry.read(path) for path in PAYLOAD} == PAYLOAD
    found = ArtifactStore(root).lookup(KEY, READY)
    assert isinstance(found, Hit) and found.entry == result.entry
    assert {file.path for file in found.entry.manifest.files if file.executable} == EXECUTABLES
    assert nothing_private(root)


def test_what_is_here_is_not_asked_for(root, remote):
    ask(root, None)
    assert isinstance(ask(root, remote), Hit)
    assert remote.asked == remote.offered == []


def test_a_remote_that_has_nothing_is_offered_what_was_published(root, remote):
    assert isinstance(ask(root, remote, calls := []), Published)
    assert len(calls) == 1
    assert (remote.asked, remote.offered) == ([NAME], [NAME])
    assert isinstance(remote.store.lookup(KEY, READY), Hit)
    assert nothing_private(root)


def test_it_is_asked_under_the_lock_and_offered_to_after_it(root, tmp_path, remote, stocked):
    steps = []

    class Watching(StockedRemote):
        def fetch(self, key, spec, directory):
            assert try_acquire(str(root / "locks" / f"{KEY.digest.hex}.lock"), shared=False) is None
            assert os.listdir(directory) == []
            assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
            assert not Path(directory).is_relative_to(root)
            steps.append("asked")
            return super().fetch(key, spec, directory)

        def offer(self, entry):
            with try_acquire(str(root / "locks" / f"{KEY.digest.hex}.lock"), shared=False):
                assert isinstance(ArtifactStore(root).lookup(entry.key, entry.spec), Hit)
            steps.append("offered")

    watching = Watching(tmp_path / "empty" / "root")
    with crash_points.armed(steps.append):
        assert isinstance(ask(root, watching), Published)
    told = [
        step
        for step in steps
        if step.startswith(("fetch", "build", "offer", "asked", "publish.done"))
    ]
    assert told == [
        "build.leased",
        "build.locked",
        "fetch.asked",
        "asked",
        "fetch.missed",
        "build.built",
        "publish.done",
        "build.released",
        "offered",
        "offer.done",
    ]


def test_crash_points_of_remotes_are_in_their_table_and_reached(root, stocked):
    package = Path(pypto_store.__file__).parent
    named = set()
    for module in (package / "fetching.py", package / "building.py"):
        named |= set(re.findall(r'reach\("((?:fetch|offer)\.[^"]+)"\)', module.read_text()))
    reached = []
    with crash_points.armed(reached.append):
        ask(root, stocked)
        ask(root, stocked, spec=GENERATED)
        ask(root.parent / "other", stocked, readonly=True)
    assert named == set(crash_points.REMOTE_POINTS) == set(reached) - set(crash_points.POINTS)


@pytest.mark.parametrize("trouble", ["half", "disk"])
def test_half_an_answer_is_thrown_away_and_built(root, stocked, trouble):
    class Half(StockedRemote):
        def fetch(self, key, spec, directory):
            super().fetch(key, spec, directory)
            if trouble == "disk":
                raise OSError(errno.ENOSPC, "No space left on device")

    result = ask(root, Half(stocked.store.root), calls := [])
    assert isinstance(result, Published) and len(calls) == 1
    assert {path: result.entry.read(path) for path in PAYLOAD} == PAYLOAD
    assert nothing_private(root)


@pytest.mark.parametrize("lie", ["more", "less", "other", "mode"])
def test_nothing_is_published_that_makes_another_manifest(root, stocked, lie):
    class Lying(StockedRemote):
        def fetch(self, key, spec, directory):
            manifest = super().fetch(key, spec, directory)
            if lie == "more":
                Path(directory, "more").write_bytes(b"")
            elif lie == "less":
                Path(directory, "empty").unlink()
            elif lie == "other":
                Path(directory, "kernel_config.json").write_bytes(b"{}")
            else:
                Path(directory, "empty").chmod(0o755)
            return manifest

    result = ask(root, Lying(stocked.store.root), calls := [])
    assert isinstance(result, Published) and len(calls) == 1
    assert {file.path for file in result.entry.manifest.files} == set(PAYLOAD)
    assert nothing_private(root)


def test_an_interruption_leaves_nothing(root, stocked):
    class Interrupted(StockedRemote):
        def fetch(self, key, spec, directory):
            super().fetch(key, spec, directory)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(root, Interrupted(stocked.store.root))
    assert nothing_private(root)
    assert isinstance(ask(root, stocked), Fetched)


def check_private(result, root):
    """A private entry is one that can be used as any other, and looked at again."""
    assert isinstance(result, Fetched) and result.private
    entry = result.entry
    assert not entry.path.is_relative_to(root)
    assert stat.S_IMODE(entry.path.stat().st_mode) == 0o700
    assert {path: entry.read(path) for path in PAYLOAD} == PAYLOAD
    for path in PAYLOAD:
        entry.verify(path)
    entry.materialize(root.parent / "out")
    store = ArtifactStore(root, readonly=True)
    found = store.look_again(entry)
    assert isinstance(found, Hit) and found.entry == entry
    (entry.path / "empty").write_bytes(b"x")
    assert isinstance(store.look_again(entry), Invalid)


def test_a_read_only_store_asks_without_a_lock_and_keeps_what_arrives_private(root, stocked):
    ask(root, None, spec=GENERATED)
    before = snapshot(root)
    with acquire(str(root / "locks" / f"{KEY.digest.hex}.lock"), shared=False, timeout=1):
        result = ask(root, stocked, calls := [], readonly=True)
    assert (result.failure, result.reason, calls) == (None, "the store is read-only", [])
    assert snapshot(root) == before
    check_private(result, root)


def test_a_read_only_store_whose_remote_has_nothing_builds(root, remote):
    result = ask(root, remote, readonly=True)
    assert isinstance(result, Private) and result.failure is None
    assert (remote.asked, remote.offered) == ([NAME], [])
    assert not root.exists()


def test_what_is_damaged_here_is_asked_of_nobody(root, stocked):
    entry = ask(root, None).entry
    (entry.path / "empty").write_bytes(b"x")
    before = snapshot(root)
    for readonly in (False, True):
        result = ask(root, stocked, readonly=readonly)
        assert isinstance(result, Private) and result.failure is Failure.INVALID
    assert stocked.asked == stocked.offered == []
    assert snapshot(root) == before


def test_what_cannot_be_published_is_used_all_the_same(root, stocked, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(linux, "rename_new", full)
    result = ask(root, stocked, calls := [])
    assert (result.failure, calls) == (Failure.STORAGE, [])
    assert "No space left" in result.reason
    assert not [path for path in snapshot(root) if ".tmp." in path]
    check_private(result, root)
    monkeypatch.undo()
    assert isinstance(ask(root, stocked), Fetched)


def test_where_it_cannot_be_kept_either_it_is_built(root, stocked, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetching, "publish", lambda *_, expected: full())
    monkeypatch.setattr(fetching, "write_all", full)
    assert isinstance(ask(root, stocked, calls := []), Published)
    assert len(calls) == 1
    assert nothing_private(root)


def test_a_slot_that_is_taken_meanwhile_wins(root, stocked, monkeypatch):
    rename_new = linux.rename_new

    def second(source, target):
        if target.endswith(READY.digest.hex):
            os.mkdir(target)
        rename_new(source, target)

    monkeypatch.setattr(linux, "rename_new", second)
    result = ask(root, stocked)
    assert isinstance(result, Fetched) and result.private
    assert result.failure is Failure.INVALID
    monkeypatch.undo()

    class Overtaken(StockedRemote):
        def fetch(self, key, spec, directory):
            manifest = super().fetch(key, spec, directory)
            monkeypatch.setattr(pypto_store.store.ArtifactStore, "try_writer_lock", unlocked)
            assert isinstance(ask(other, None), Published)
            monkeypatch.undo()
            return manifest

    def unlocked(self, key):
        return acquire(str(other / "locks" / "elsewhere.lock"), shared=False, timeout=1)

    other = root.parent / "other"
    assert isinstance(ask(other, Overtaken(stocked.store.root), calls := []), Hit)
    assert calls == []


def test_a_store_that_cannot_be_locked_or_read_uses_what_the_remote_has(root, stocked, tmp_path):
    ask(root, None, spec=GENERATED)
    with acquire(str(root / "locks" / f"{KEY.digest.hex}.lock"), shared=False, timeout=1):
        result = ask(root, stocked, calls := [], timeout=0.1)
    assert (result.private, result.failure, calls) == (True, Failure.LOCK, [])
    broken = tmp_path / "broken"
    broken.write_bytes(b"")
    result = ask(broken, stocked, calls := [])
    assert (result.private, result.failure, calls) == (True, Failure.STORAGE, [])
    assert isinstance(ArtifactStore(broken).look_again(result.entry), Hit)


def test_overlapping_threads_and_stores_ask_once(root, stocked):
    started = threading.Barrier(8)
    shared = ArtifactStore(root, lock_timeout=20, remote=stocked)
    stores = [shared] * 4 + [ArtifactStore(root, lock_timeout=20, remote=stocked) for _ in range(4)]
    results = []

    def request(store):
        started.wait()
        results.append(store.get_or_build(KEY, READY, forbidden, private_parent=root.parent / "p"))

    threads = [threading.Thread(target=request, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 8
    assert stocked.asked == [NAME]
    assert all(isinstance(result, (Fetched, Hit)) for result in results)


def test_states_are_asked_for_by_themselves(root, stocked):
    assert isinstance(ask(root, stocked, spec=GENERATED), Published)
    assert isinstance(ask(root, stocked), Fetched)
    assert stocked.offered == [(KEY.digest.hex, GENERATED.digest.hex)]
    assert ArtifactStore(root).lookup(sample_key("other"), READY) == Miss()
