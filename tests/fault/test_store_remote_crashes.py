"""SIGKILL at every named point of a request that asks a remote, then it is made again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from pypto_store import (
    ArtifactStore,
    Fetched,
    Hit,
    Invalid,
    Miss,
    Private,
    Published,
    StorageError,
    crash_points,
)
from pypto_store.remote.stocked import StockedRemote
from pypto_store.testing import PAYLOAD, READY, payload_builder, sample_key, snapshot

VISIBLE = frozenset(
    {
        "publish.renamed",
        "publish.slot_synced",
        "publish.adopted",
        "publish.done",
        "build.released",
        "offer.done",
    }
)
KEY = sample_key()

pytestmark = pytest.mark.usefixtures("no_sync")


def request(top, *, readonly=False, calls=None):
    remote = StockedRemote(top / "far" / "root")
    store = ArtifactStore(top / "root", readonly=readonly, lock_timeout=20, remote=remote)
    return store.get_or_build(
        KEY, READY, payload_builder(calls=calls), private_parent=top / "private"
    )


def stock(top):
    StockedRemote(top / "far" / "root").store.get_or_build(
        KEY, READY, payload_builder(), private_parent=top / "far" / "private"
    )


def interrupted(number, action):
    """`action`, in which the process is killed at its point of that number."""
    left = [number]

    def strike(_):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def crash():
        with crash_points.armed(strike):
            action()

    return crash


SITUATIONS = {
    "remote has it": (True, False, Fetched),
    "remote has nothing": (False, False, Published),
    "read-only": (True, True, Fetched),
    "read-only, remote has nothing": (False, True, Private),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_kill_at_every_point(tmp_path, child, situation):
    stocked, readonly, expected = SITUATIONS[situation]

    def prepared(name):
        top = tmp_path / name
        top.mkdir()
        if stocked:
            stock(top)
        return top

    points, rehearsal = [], prepared("rehearsal")
    with crash_points.armed(points.append):
        assert isinstance(request(rehearsal, readonly=readonly), expected)
    assert any(point.startswith("fetch.") for point in points)
    for number, point in enumerate(points):
        top = prepared(f"{number}")
        crash = interrupted(number, lambda top=top: request(top, readonly=readonly))
        assert child(crash).wait() == -signal.SIGKILL, point
        found = ArtifactStore(top / "root").lookup(KEY, READY)
        far = StockedRemote(top / "far" / "root").store.lookup(KEY, READY)
        assert isinstance(found, (Hit, Miss)) and isinstance(far, (Hit, Miss)), point
        if readonly:
            assert not (top / "root").exists(), point
        elif stocked:
            assert isinstance(found, Hit) == (point in VISIBLE), point
        calls = []
        result = request(top, readonly=readonly, calls=calls)
        assert not isinstance(result, Private) or readonly, point
        if not isinstance(result, Private):
            assert {path: result.entry.read(path) for path in PAYLOAD} == PAYLOAD, point
            left = [result.entry.path] if readonly else []
        else:
            left = [result.path]
        assert len(calls) == (not isinstance(found, Hit) and not isinstance(far, Hit)), point
        if not isinstance(result, Hit):
            # Whatever the killed process had made there is gone.
            assert list((top / "private").glob("*")) == left, point
        if not readonly:
            assert not [path for path in snapshot(top / "root") if ".tmp." in path], point
            assert isinstance(ArtifactStore(top / "root").lookup(KEY, READY), Hit), point


def test_whoever_waits_for_a_killed_process_that_was_fetching_goes_on(tmp_path, child):
    for number, point in enumerate(("fetch.asked", "fetch.arrived", "publish.marker")):
        top = tmp_path / str(number)
        top.mkdir()
        stock(top)

        def ask(top=top):
            calls = []
            result = request(top, calls=calls)
            return 0 if isinstance(result, (Hit, Fetched)) and not calls else 1

        def die(reached, wanted=point):
            if reached == wanted:
                os.kill(os.getpid(), signal.SIGKILL)

        def crash(ask=ask, die=die):
            with crash_points.armed(die):
                return ask()

        victim = child(crash)
        others = [child(ask) for _ in range(2)]
        # One of the others may have fetched it before the victim came to the point.
        assert victim.wait() in (-signal.SIGKILL, 0), point
        assert [other.wait() for other in others] == [0, 0], point
        found = ArtifactStore(top / "root").lookup(KEY, READY)
        assert isinstance(found, Hit), point


def test_storage_that_fails_at_any_step_never_fails_a_request(tmp_path, monkeypatch):
    """Each call that writes fails in turn, in the store or in the private directory."""
    names = ("mkdir", "open", "write", "fsync", "rename", "link")
    real = {name: getattr(os, name) for name in names}
    refused = OSError(28, "No space left on device")
    for name in names:
        for number in range(40):
            top = tmp_path / f"{name}-{number}"
            top.mkdir()
            stock(top)
            left = [number]

            def failing(*args, name=name, left=left, top=top, **kwargs):
                place = os.fsdecode(args[0]) if isinstance(args[0], (str, bytes)) else ""
                writes = name != "open" or args[1] & os.O_CREAT
                if writes and not place.startswith(str(top / "far")):
                    left[0] -= 1
                    if left[0] == -1:
                        raise refused
                return real[name](*args, **kwargs)

            monkeypatch.setattr(os, name, failing)
            try:
                result = request(top)
            except OSError as error:
                # Only where no directory can be made for a build, either.
                result = error
            finally:
                monkeypatch.setattr(os, name, real[name])
            if isinstance(result, OSError):
                assert result is refused and name in ("mkdir", "open"), (name, number)
            found = ArtifactStore(top / "root").lookup(KEY, READY)
            assert not isinstance(found, (Invalid, StorageError)), (name, number)
            if isinstance(result, Fetched):
                assert result.private != isinstance(found, Hit), (name, number)
                assert {path: result.entry.read(path) for path in PAYLOAD} == PAYLOAD
            assert not list(Path(top / "root").rglob(".tmp.*")), (name, number)
            if left[0] >= 0:
                break  # it went through without meeting the call
